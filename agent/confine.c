/* The allow-list and what else the agent gives up, see confine.h.
 *
 * Why a refused call ends the process instead of failing with EPERM: the agent is one loop of our own
 * over a dozen calls. A call outside the list is a fault or somebody else's code in our memory; in
 * both cases going on means holding the token in a process that does what it was not written to do.
 * codev-init starts a fresh agent, and only the streams in flight break. SECCOMP_RET_TRAP lets a
 * handler name the call before the end; where the handler cannot run, the signal kills anyway. Another
 * ABI (ia32, x32) has no use here at all and is killed at once.
 */
#include "agent/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"

#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_WITHOUT_SECCOMP 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_WITHOUT_SECCOMP 1
#endif
#endif

#define EXIT_REFUSED_CALL 70 /* EX_SOFTWARE */

int confine_process(struct failure *why)
{
    struct rlimit no_core = {0, 0};
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return failure_errno(why, errno, "PR_SET_DUMPABLE");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return failure_errno(why, errno, "PR_SET_PDEATHSIG");
    if (setrlimit(RLIMIT_CORE, &no_core) < 0)
        return failure_errno(why, errno, "RLIMIT_CORE");
    return 0;
}

#ifndef CONFINE_WITHOUT_SECCOMP

#if defined(__x86_64__)
#define THIS_ABI AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ABI AUDIT_ARCH_AARCH64
#else
#error "no seccomp filter for this architecture"
#endif

#define X32_BIT 0x40000000u
#define CHECKED_VALUES 4

/* One allowed call; with `values`, only when its argument (the low 32 bits, all that the kernel looks
 * at in an int) under `mask` is one of them. */
struct allowed_call {
    int number;
    uint32_t mask, argument, value_count, values[CHECKED_VALUES];
};

#define SYSTEM_CALL(name)                                                                          \
    {                                                                                              \
        .number = SYS_##name                                                                       \
    }

static const struct allowed_call allowed_calls[] = {
/* the loop and its clock (most often answered by the vDSO) */
#ifdef SYS_epoll_wait
    SYSTEM_CALL(epoll_wait),
#endif
    SYSTEM_CALL(epoll_pwait),
    SYSTEM_CALL(epoll_ctl),
    SYSTEM_CALL(clock_gettime),
    /* bytes in and out: recv, send; read of the configuration pipe; write of a last message */
    SYSTEM_CALL(recvfrom),
    SYSTEM_CALL(sendto),
    SYSTEM_CALL(read),
    SYSTEM_CALL(write),
    /* clients come and go */
    SYSTEM_CALL(accept4),
    SYSTEM_CALL(close),
    SYSTEM_CALL(shutdown),
    SYSTEM_CALL(setsockopt),
    SYSTEM_CALL(getsockopt),
    /* dialling: streams of the four families that an address can have. No bind and no listen: every
     * listener was inherited */
    {.number = SYS_socket,
     .argument = 0,
     .mask = ~0u,
     .value_count = 4,
     .values = {AF_UNIX, AF_INET, AF_INET6, AF_VSOCK}},
    SYSTEM_CALL(connect),
    SYSTEM_CALL(pread64), /* the table of routes, for tcp:gateway */
    /* pages of a ring go back; no other advice, and no mmap, brk or mprotect at all */
    {.number = SYS_madvise,
     .argument = 2,
     .mask = ~0u,
     .value_count = 1,
     .values = {MADV_DONTNEED}},
    /* the end, and the way out of the handler below */
    SYSTEM_CALL(exit_group),
    SYSTEM_CALL(rt_sigreturn),
};

#define FILTER_MAX (16 + 12 * ARRAY_LENGTH(allowed_calls))

struct filter {
    struct sock_filter code[FILTER_MAX];
    unsigned short length;
};

static void emit(struct filter *filter, struct sock_filter instruction)
{
    if (filter->length < FILTER_MAX)
        filter->code[filter->length++] = instruction;
}

#define LOAD(field)                                                                                \
    ((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define VERDICT(action) ((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (action)))
#define SKIP_UNLESS(value, count)                                                                  \
    ((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count)))

static void emit_call(struct filter *filter, const struct allowed_call *call)
{
    if (call->value_count == 0) {
        emit(filter, SKIP_UNLESS((uint32_t)call->number, 1));
        emit(filter, VERDICT(SECCOMP_RET_ALLOW));
        return;
    }
    /* load, mask, a comparison and a verdict for each value, refusal: both ABIs are little-endian, so
     * the low half of an argument comes first */
    emit(filter, SKIP_UNLESS((uint32_t)call->number, (uint8_t)(3 + 2 * call->value_count)));
    struct sock_filter load = LOAD(args);
    load.k += call->argument * sizeof(uint64_t);
    emit(filter, load);
    emit(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call->mask));
    for (uint32_t i = 0; i < call->value_count; i++) {
        emit(filter, SKIP_UNLESS(call->values[i], 1));
        emit(filter, VERDICT(SECCOMP_RET_ALLOW));
    }
    emit(filter, VERDICT(SECCOMP_RET_TRAP));
}

static void build_filter(struct filter *filter)
{
    filter->length = 0;
    emit(filter, LOAD(arch));
    emit(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, THIS_ABI, 1, 0));
    emit(filter, VERDICT(SECCOMP_RET_KILL_PROCESS));
    emit(filter, LOAD(nr));
#ifdef __x86_64__
    emit(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    emit(filter, VERDICT(SECCOMP_RET_KILL_PROCESS));
#endif
    for (size_t i = 0; i < ARRAY_LENGTH(allowed_calls); i++)
        emit_call(filter, &allowed_calls[i]);
    emit(filter, VERDICT(SECCOMP_RET_TRAP));
}

static void refused_call(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)context;
    static char text[] = "codev-agent: system call 0000 is not on the list, ended\n";
    int number = info->si_syscall;
    for (char *digit = strchr(text, '0') + 3; *digit == '0' && number > 0; digit--, number /= 10)
        *digit = (char)('0' + number % 10);
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    _exit(EXIT_REFUSED_CALL);
}

int confine_system_calls(struct failure *why)
{
    static struct filter filter;
    build_filter(&filter);
    struct sock_fprog program = {.len = filter.length, .filter = filter.code};
    struct sigaction action = {.sa_sigaction = refused_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (sigaction(SIGSYS, &action, NULL) < 0)
        return failure_errno(why, errno, "handler for refused system calls");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return failure_errno(why, errno, "PR_SET_NO_NEW_PRIVS");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return failure_errno(why, errno, "seccomp");
    return 0;
}

#else

int confine_system_calls(struct failure *why)
{
    (void)why;
    return 0;
}

#endif
