/* Unit tests of common/os/seccomp_filter_linux.c: tables in an interpreter, among them random ones
 * against a direct reading of the rules, and a table in the kernel. */
#include "test/harness/child.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "common/os/cleanup.h"
#include "test/harness/seccomp_interpreter.h"

static struct seccomp_filter filter;

static uint32_t action(unsigned number, uint64_t first, uint64_t second)
{
    struct seccomp_data data = {
        .nr = (int)number, .arch = OWN_ARCH, .args = {first, second, 0, 0, 0, 0}};
    return seccomp_interpret(&filter, &data);
}

static int build(const struct seccomp_rule *rules, size_t count)
{
    seccomp_filter_start(&filter, KILL);
    seccomp_filter_add(&filter, rules, count);
    return seccomp_filter_end(&filter, ALLOW);
}

static void first_match_decides(void **state)
{
    static const struct seccomp_rule rules[] = {
        RULE(socket, REFUSE(1), ARGUMENT_IS(0, 7), ARGUMENT_MASKED(1, 0xf, 3)),
        RULE(socket, REFUSE(2), ARGUMENT_IS(0, 7)),
        RULE(socket, REFUSE(3), ARGUMENT_IS_NOT(0, 8), ARGUMENT_IS_NOT(0, 9)),
        RULE(socket, REFUSE(4), ARGUMENT_HAS_ANY(1, 0x30)),
        RULE(bpf, TRAP),
        RULE(socket, REFUSE(5), ARGUMENT_IS(1, 0x40)), /* reached after the block of bpf */
    };

    (void)state;
    assert_int_equal(build(rules, ARRAY_LENGTH(rules)), 0);
    assert_int_equal(action(SYS_socket, 7, 0xf3), REFUSE(1));
    assert_int_equal(action(SYS_socket, 7, 0xf4), REFUSE(2));
    assert_int_equal(action(SYS_socket, 6, 0x20), REFUSE(3));
    assert_int_equal(action(SYS_socket, 8, 0x20), REFUSE(4));
    assert_int_equal(action(SYS_socket, 9, 0x50), REFUSE(4));
    assert_int_equal(action(SYS_socket, 9, 0x40), REFUSE(5));
    assert_int_equal(action(SYS_socket, 9, 0xc0), ALLOW);
    assert_int_equal(action(SYS_bpf, 7, 3), TRAP);
    assert_int_equal(action(SYS_close, 7, 3), ALLOW);
}

static void upper_halves_do_not_count(void **state)
{
    static const struct seccomp_rule rules[] = {
        RULE(socket, REFUSE(1), ARGUMENT_IS(0, 7)),
        RULE(socket, REFUSE(2), ARGUMENT_HAS_ANY(1, ~0u)),
    };

    (void)state;
    assert_int_equal(build(rules, ARRAY_LENGTH(rules)), 0);
    assert_int_equal(action(SYS_socket, 0xdead00000007ull, 0), REFUSE(1));
    assert_int_equal(action(SYS_socket, 0x700000000ull, 0x100000000ull), ALLOW);
}

static void other_abis(void **state)
{
    static const struct seccomp_rule rules[] = {RULE(read, ALLOW)};
#ifdef __x86_64__
    static const uint32_t others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, AUDIT_ARCH_AARCH64};
#else
    static const uint32_t others[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, AUDIT_ARCH_X86_64};
#endif

    (void)state;
    assert_int_equal(build(rules, ARRAY_LENGTH(rules)), 0);
    for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
        struct seccomp_data data = {.nr = SYS_read, .arch = others[i]};
        assert_int_equal(seccomp_interpret(&filter, &data), KILL);
    }
#ifdef __x86_64__
    assert_int_equal(action(0x40000000, 0, 0), KILL);
    assert_int_equal(action(0x3fffffff, 0, 0), ALLOW);
    assert_int_equal(action(~0u, 0, 0), KILL);
#endif
}

static void no_rules(void **state)
{
    (void)state;
    assert_int_equal(build(NULL, 0), 0);
    assert_int_equal(action(SYS_read, 0, 0), ALLOW);
}

/* The meaning of a table as the header defines it. */
static uint32_t reference(const struct seccomp_rule *rules, size_t count,
                          const struct seccomp_data *data)
{
    for (size_t i = 0; i < count; i++) {
        bool matches = rules[i].number == (uint32_t)data->nr;
        for (size_t j = 0; j < SECCOMP_CONDITIONS_MAX; j++) {
            const struct seccomp_condition *condition = &rules[i].conditions[j];
            uint32_t masked = (uint32_t)data->args[condition->argument] & condition->mask;
            if (condition->test == SECCOMP_EQUAL)
                matches = matches && masked == condition->value;
            else if (condition->test == SECCOMP_NOT_EQUAL)
                matches = matches && masked != condition->value;
            else if (condition->test == SECCOMP_ANY_BIT)
                matches = matches && masked != 0;
        }
        if (matches)
            return rules[i].action;
    }
    return ALLOW;
}

static struct seccomp_rule random_rule(void)
{
    struct seccomp_rule rule = {.number = (uint32_t)rand() % 5, .action = REFUSE(rand() % 100)};
    int conditions = rand() % (SECCOMP_CONDITIONS_MAX + 1);
    for (int i = 0; i < conditions; i++)
        rule.conditions[i] = (struct seccomp_condition){
            .test = (uint8_t)(SECCOMP_EQUAL + rand() % 3),
            .argument = (uint8_t)(rand() % 6),
            .mask = rand() % 2 ? ~0u : (uint32_t)rand() % 8,
            .value = (uint32_t)rand() % 4,
        };
    return rule;
}

static void random_tables(void **state)
{
    struct seccomp_rule rules[30];

    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        size_t count = (size_t)rand() % ARRAY_LENGTH(rules);
        for (size_t i = 0; i < count; i++)
            rules[i] = random_rule();
        assert_int_equal(build(rules, count), 0);
        for (int call = 0; call < 100; call++) {
            struct seccomp_data data = {.nr = rand() % 6, .arch = OWN_ARCH};
            for (int i = 0; i < 6; i++)
                data.args[i] = (uint64_t)rand() << 32 | (uint64_t)(rand() % 4);
            assert_int_equal(seccomp_interpret(&filter, &data), reference(rules, count, &data));
        }
    }
}

/* Neither more instructions than there is room for, nor a block that a jump cannot skip, becomes a
 * filter. */
static void too_long(void **state)
{
    struct seccomp_rule rules[SECCOMP_FILTER_MAX] = {{0}};
    size_t one_call = 0, many_calls = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        rules[i] = (struct seccomp_rule)RULE(socket, REFUSE(1), ARGUMENT_IS(0, 1));
    while (build(rules, one_call + 1) == 0)
        one_call++;
    assert_int_equal(build(rules, one_call + 1), -E2BIG);
    assert_true(one_call * 3 < UINT8_MAX && (one_call + 1) * 3 + 1 > UINT8_MAX);
    assert_int_equal(build(rules, ARRAY_LENGTH(rules)), -E2BIG);
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        rules[i] = (struct seccomp_rule){.number = (uint32_t)i, .action = REFUSE(1)};
    while (build(rules, many_calls + 1) == 0)
        many_calls++;
    assert_true(filter.too_long && filter.length == SECCOMP_FILTER_MAX);
    assert_int_equal(build(rules, many_calls), 0);
    assert_int_equal(action((unsigned)many_calls - 1, 0, 0), REFUSE(1));
    assert_int_equal(action((unsigned)many_calls, 0, 0), ALLOW);
}

static void load_in_the_kernel(void)
{
    static const struct seccomp_rule rules[] = {
        RULE(socket, REFUSE(EXDEV), ARGUMENT_IS(0, AF_UNIX), ARGUMENT_MASKED(1, 0xf, SOCK_DGRAM)),
        RULE(madvise, REFUSE(EDOM), ARGUMENT_HAS_ANY(2, MADV_DONTNEED)),
        RULE(getppid, REFUSE(ENOTTY)),
    };
    CHILD_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_ASSERT(seccomp_filter_load_table(rules, ARRAY_LENGTH(rules), ALLOW, KILL) == 0);
    CHILD_ASSERT(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) == -1 && errno == EXDEV);
    CHILD_ASSERT(socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    CHILD_ASSERT(syscall(SYS_madvise, NULL, 0, MADV_DONTNEED) == -1 && errno == EDOM);
    CHILD_ASSERT(syscall(SYS_getppid) == -1 && errno == ENOTTY);
    CHILD_ASSERT(syscall(SYS_getpid) > 0);
}

static void in_the_kernel(void **state)
{
    (void)state;
    in_child(load_in_the_kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_match_decides), cmocka_unit_test(upper_halves_do_not_count),
        cmocka_unit_test(other_abis),          cmocka_unit_test(no_rules),
        cmocka_unit_test(random_tables),       cmocka_unit_test(too_long),
        cmocka_unit_test(in_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
