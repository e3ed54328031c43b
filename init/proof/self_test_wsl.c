/* The self-test's checks for WSL: live listeners outside, WSL's own files, a Windows executable.
 *
 * All distributions share the kernel's binfmt entry for Windows executables, and the entry holds
 * its interpreter open, so exec(2) of such a file may start the interpreter. It runs with the
 * rights, the filter and the namespaces of this process, where neither the socket nor the vsock to
 * Windows can be reached, so it must fail.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "init/proof/self_test_internal.h"

#define EXECUTABLE_LIMIT_MS 5000
#define STATUS_NOT_EXECUTED 126

bool check_no_live_listener(const struct self_test_context *context,
                            struct self_test_detail *detail)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM};

    for (unsigned i = 0; i < context->witness_count; i++) {
        struct sockaddr_storage address;
        int length = endpoint_sockaddr(&context->witnesses[i].endpoint, &address);
        for (unsigned type = 0; type < ARRAY_LENGTH(types); type++) {
            if (length >= 0 && self_test_reach(&address, (socklen_t)length, types[type]) != 0)
                continue;
            char text[ENDPOINT_TEXT_MAX];
            endpoint_format(&context->witnesses[i].endpoint, text);
            return self_test_say(detail, false, "%.80s is not refused", text);
        }
    }
    return self_test_say(detail, true, "%u listeners outside, TCP and UDP", context->witness_count);
}

bool check_windows_hidden(const struct self_test_context *context, struct self_test_detail *detail)
{
    static const char *const places[] = {
        "/init", "/run/WSL", "/mnt/wsl", "/mnt/wslg", "/proc/sys/fs/binfmt_misc/register",
    };
    struct stat status;

    (void)context;
    for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
        if (lstat(places[i], &status) == 0)
            return self_test_say(detail, false, "%s is there", places[i]);
    return self_test_say(detail, true, "no socket, program or folder of WSL");
}

/* Just enough for the kernel's entry to match; Windows itself would refuse it. */
static int make_executable(void)
{
    static const char text[] = "MZ: not a program";
    int fd = memfd_create("codev-self-test.exe", 0);

    if (fd >= 0 && (write(fd, text, sizeof(text)) < 0 || fchmod(fd, 0755) < 0))
        fd_close(&fd);
    return fd;
}

static _Noreturn void execute(int fd)
{
    char path[32], *const arguments[] = {path, NULL}, *const environment[] = {NULL};

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    execve(path, arguments, environment);
    _exit(STATUS_NOT_EXECUTED);
}

bool check_no_windows_executable(const struct self_test_context *context,
                                 struct self_test_detail *detail)
{
    CLEANUP_FD int fd = make_executable();
    siginfo_t end = {.si_status = 0};

    (void)context;
    if (fd < 0)
        return self_test_say(detail, false, "make one: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        return self_test_say(detail, false, "fork: %s", strerror(errno));
    if (child == 0)
        execute(fd);
    for (int waited = 0; waited < EXECUTABLE_LIMIT_MS && end.si_pid == 0; waited += 10) {
        if (waitid(P_PID, (id_t)child, &end, WEXITED | WNOHANG | WNOWAIT) < 0)
            break;
        if (end.si_pid == 0)
            poll(NULL, 0, 10);
    }
    child_end(child);
    if (end.si_pid == 0)
        return self_test_say(detail, false, "it runs");
    if (end.si_code == CLD_EXITED && end.si_status == STATUS_NOT_EXECUTED)
        return self_test_say(detail, true, "the kernel knows no interpreter for it");
    return self_test_say(detail, end.si_code != CLD_EXITED || end.si_status != 0,
                         "its interpreter ends with %d", end.si_status);
}
