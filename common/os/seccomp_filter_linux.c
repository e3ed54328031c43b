/* Translates tables of rules into the classic BPF of seccomp(2).
 *
 * Consecutive rules for one call make a block that every other call skips by one comparison. Inside
 * it a condition that does not hold jumps to the next rule. The accumulator holds the call's number
 * wherever a block begins. The kernel finds out at load which calls are allowed whatever their
 * arguments and never runs the filter for them (kernel/seccomp.c, the action cache).
 */
#include "common/os/seccomp_filter_linux.h"

#include <assert.h>
#include <linux/audit.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#define OWN_ABI AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u /* asm/unistd.h: __X32_SYSCALL_BIT */
#elif defined(__aarch64__)
#define OWN_ABI AUDIT_ARCH_AARCH64
#else
#error "system call filters: this architecture is not supported"
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the low 32 bits of an argument come first");

/* Returns the place of the instruction, for jump_to_here(). */
static size_t emit(struct seccomp_filter *filter, uint16_t code, uint32_t k)
{
    if (filter->length == SECCOMP_FILTER_MAX) {
        filter->too_long = true;
        return 0;
    }
    filter->code[filter->length] = (struct sock_filter){.code = code, .k = k};
    return filter->length++;
}

/* Makes the comparison at `place` jump to the next instruction when its result is `result`. */
static void jump_to_here(struct seccomp_filter *filter, size_t place, bool result)
{
    size_t distance = filter->length - place - 1;
    if (distance > UINT8_MAX)
        filter->too_long = true;
    else if (result)
        filter->code[place].jt = (uint8_t)distance;
    else
        filter->code[place].jf = (uint8_t)distance;
}

static void emit_load(struct seccomp_filter *filter, size_t offset)
{
    emit(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void emit_action(struct seccomp_filter *filter, uint32_t action)
{
    emit(filter, BPF_RET | BPF_K, action);
}

/* Returns the place of the comparison. */
static size_t emit_condition(struct seccomp_filter *filter,
                             const struct seccomp_condition *condition)
{
    emit_load(filter, offsetof(struct seccomp_data, args) + sizeof(uint64_t) * condition->argument);
    if (condition->test == SECCOMP_ANY_BIT)
        return emit(filter, BPF_JMP | BPF_JSET | BPF_K, condition->mask);
    if (condition->mask != ~0u)
        emit(filter, BPF_ALU | BPF_AND | BPF_K, condition->mask);
    return emit(filter, BPF_JMP | BPF_JEQ | BPF_K, condition->value);
}

static void emit_rule(struct seccomp_filter *filter, const struct seccomp_rule *rule)
{
    size_t places[SECCOMP_CONDITIONS_MAX], count = 0;

    for (; count < SECCOMP_CONDITIONS_MAX && rule->conditions[count].test; count++)
        places[count] = emit_condition(filter, &rule->conditions[count]);
    emit_action(filter, rule->action);
    for (size_t i = 0; i < count; i++)
        jump_to_here(filter, places[i], rule->conditions[i].test == SECCOMP_NOT_EQUAL);
}

/* The rules from `rules` on that are for the same call, at most `count`. */
static size_t block_length(const struct seccomp_rule *rules, size_t count)
{
    size_t length = 1;
    while (length < count && rules[length].number == rules[0].number)
        length++;
    return length;
}

void seccomp_filter_start(struct seccomp_filter *filter, uint32_t other_abis)
{
    filter->length = 0;
    filter->too_long = false;
    emit_load(filter, offsetof(struct seccomp_data, arch));
    size_t own_abi = emit(filter, BPF_JMP | BPF_JEQ | BPF_K, OWN_ABI);
    emit_action(filter, other_abis);
    jump_to_here(filter, own_abi, true);
    emit_load(filter, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    /* -1 as an unsigned number (a tracer skips a call with it) is above X32_BIT, too */
    size_t x32 = emit(filter, BPF_JMP | BPF_JGE | BPF_K, X32_BIT);
    emit_action(filter, other_abis);
    jump_to_here(filter, x32, false);
#endif
}

void seccomp_filter_add(struct seccomp_filter *filter, const struct seccomp_rule *rules,
                        size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t end = done + block_length(rules + done, count - done);
        size_t skip = emit(filter, BPF_JMP | BPF_JEQ | BPF_K, rules[done].number);
        for (; done < end; done++)
            emit_rule(filter, &rules[done]);
        /* When the last conditions fail, the accumulator holds an argument: load the number. */
        if (rules[end - 1].conditions[0].test)
            emit_load(filter, offsetof(struct seccomp_data, nr));
        jump_to_here(filter, skip, false);
    }
}

int seccomp_filter_end(struct seccomp_filter *filter, uint32_t default_action)
{
    emit_action(filter, default_action);
    return filter->too_long ? -E2BIG : 0;
}

int seccomp_filter_load(const struct seccomp_filter *filter)
{
    struct sock_fprog program = {.len = (unsigned short)filter->length,
                                 .filter = (struct sock_filter *)filter->code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int seccomp_filter_load_table(const struct seccomp_rule *rules, size_t count,
                              uint32_t default_action, uint32_t other_abis)
{
    struct seccomp_filter filter;

    seccomp_filter_start(&filter, other_abis);
    seccomp_filter_add(&filter, rules, count);
    int result = seccomp_filter_end(&filter, default_action);
    return result < 0 ? result : seccomp_filter_load(&filter);
}
