/* The allow list in a child: calls that the relay needs work, any other ends it with a message. */
#include "test/harness/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/confine.h"

#if defined(__SANITIZE_ADDRESS__)
#define SKIP_UNDER_SANITIZERS() skip()
#else
#define SKIP_UNDER_SANITIZERS() (void)0
#endif

#define REFUSED 70

static char message[256]; /* what the last child wrote to its standard error */

/* Runs one system call in a confined child. Returns the wait status; 33 << 8: the call returned. */
static int confined(long number, long a, long b, long c)
{
    int pipes[2], status = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        struct failure why;
        dup2(pipes[1], STDERR_FILENO);
        if (confine_process(&why) < 0 || confine_system_calls(&why) < 0)
            syscall(SYS_exit_group, 1);
        syscall(number, a, b, c, 0, 0, 0);
        syscall(SYS_exit_group, 33);
    }
    close(pipes[1]);
    ssize_t length = read(pipes[0], message, sizeof(message) - 1);
    message[length > 0 ? length : 0] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void what_serving_needs_passes(void **state)
{
    (void)state;
    SKIP_UNDER_SANITIZERS();
    static const int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_VSOCK};
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        assert_int_equal(confined(SYS_socket, families[i], SOCK_STREAM, 0), 33 << 8);
    assert_int_equal(confined(SYS_close, 99, 0, 0), 33 << 8);
    assert_int_equal(confined(SYS_epoll_ctl, 99, 0, 0), 33 << 8);
    assert_int_equal(confined(SYS_madvise, 0, 0, MADV_DONTNEED), 33 << 8);
}

static void refuses(long number, long a, long b, long c)
{
    char expected[64];
    int status = confined(number, a, b, c);
    snprintf(expected, sizeof(expected), "system call %04ld is not on the list", number);
    assert_int_equal(status, REFUSED << 8);
    if (!strstr(message, expected))
        fail_msg("'%s' does not say '%s'", message, expected);
}

static void anything_else_ends_the_process(void **state)
{
    (void)state;
    SKIP_UNDER_SANITIZERS();
    refuses(SYS_getpid, 0, 0, 0);
    refuses(SYS_openat, -100, (long)"/etc/passwd", 0);
    refuses(SYS_execve, (long)"/bin/true", 0, 0);
    refuses(SYS_clone, SIGCHLD, 0, 0);
    refuses(SYS_ptrace, 0, 0, 0);
    refuses(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC);
    refuses(SYS_mprotect, 0, 4096, PROT_EXEC);
    refuses(SYS_bind, 0, 0, 0);
    refuses(SYS_prctl, PR_SET_DUMPABLE, 1, 0);
    refuses(SYS_io_uring_setup, 1, 0, 0);
    refuses(SYS_socket, AF_NETLINK, SOCK_RAW, 0);
    refuses(SYS_socket, AF_PACKET, SOCK_RAW, 0);
    refuses(SYS_madvise, 0, 0, MADV_FREE);
}

#ifdef __x86_64__
static void another_abi_is_killed(void **state)
{
    (void)state;
    SKIP_UNDER_SANITIZERS();
    int status = confined(0x40000000L | SYS_close, 99, 0, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    assert_string_equal(message, "");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_serving_needs_passes),
        cmocka_unit_test(anything_else_ends_the_process),
#ifdef __x86_64__
        cmocka_unit_test(another_abi_is_killed),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
