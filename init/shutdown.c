/* The ends of a sandbox.
 *
 * Nothing here waits without a limit: a process that does not die, a host that does not answer or a
 * file system that hangs must not keep the machine running. sync(2) itself cannot be limited; an
 * alarm powers off when it takes longer than SYNC_LIMIT_S.
 */
#include "init/shutdown.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/command.h"
#include "init/folders/mounts.h"
#include "init/host/events.h"
#include "init/system/console.h"
#include "init/wsl/wsl_progress.h"

#define KILL_LIMIT_MS 1000
#define SYNC_LIMIT_S 30

/* In WSL the exit status tells the process outside which event was sent last. */
#define STATUS_EXIT 0
#define STATUS_FAILED 1
#define STATUS_FAULT 2 /* none */

static bool ends_by_exit;

void shutdown_by_exit(void)
{
    ends_by_exit = true;
}

/* Powers the machine off. reboot(2) fails only without CAP_SYS_BOOT, and returns where the power
 * cannot be switched; then a restart, which the launcher and every VMM take as the end. */
static noreturn void power_off(int status)
{
    if (ends_by_exit)
        _exit(status);
    if (getpid() == 1) {
        reboot(RB_POWER_OFF);
        reboot(RB_AUTOBOOT);
        for (;;)
            pause();
    }
    _exit(125); /* not PID 1: the machine is not ours */
}

static void power_off_at_once(int signal)
{
    (void)signal;
    power_off(STATUS_FAULT);
}

static void report_fault(int signal)
{
    static const char before[] = "a fault of its own (signal ";
    char line[] = "a fault of its own (signal 00): the end";
    char *digits = line + sizeof(before) - 1;

    digits[0] = (char)('0' + signal / 10);
    digits[1] = (char)('0' + signal % 10);
    console_write(line);
    power_off(STATUS_FAULT);
}

void shutdown_guard_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

    for (unsigned number = 0; number < ARRAY_LENGTH(faults); number++)
        signal(faults[number], report_fault);
}

void sandbox_abort(const char *text)
{
    console_write(text);
    power_off(STATUS_FAULT);
}

/* Kills a group and reaps until nothing of it is left, for KILL_LIMIT_MS at most. */
static void end_group(int group_fd)
{
    const int64_t deadline = io_monotonic_ns() + KILL_LIMIT_MS * MILLISECONDS;
    const struct timespec pause = {.tv_nsec = 20 * MILLISECONDS};
    sigset_t children;

    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    (void)cgroup_kill(group_fd);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (!cgroup_populated(group_fd) || io_monotonic_ns() >= deadline)
            return;
        sigtimedwait(&children, NULL, &pause);
    }
}

static void sync_all(const struct sandbox *sandbox)
{
    signal(SIGALRM, power_off_at_once);
    alarm(SYNC_LIMIT_S);
    if (sandbox->mounted)
        mounts_undo(&sandbox->config);
    if (!ends_by_exit) /* in WSL all distributions share the disks */
        sync();
    alarm(0);
}

static void end_everything(struct sandbox *sandbox)
{
    end_group(sandbox->cgroups.server_fd);
    server_io_close(&sandbox->io);
    relay_stop(&sandbox->relay);
    end_group(sandbox->cgroups.relay_fd);
    sync_all(sandbox);
}

/* Sends what is queued and waits for the host's `ack`, CONTROL_ACK_TIMEOUT_MS at most. */
static void await_acknowledgement(struct sandbox *sandbox)
{
    const int64_t deadline = io_monotonic_ns() + CONTROL_ACK_TIMEOUT_MS * MILLISECONDS;
    struct control *control = &sandbox->control;

    while (!sandbox->acknowledged && io_monotonic_ns() < deadline) {
        struct pollfd polls[] = {{.fd = control->fd, .events = POLLIN},
                                 {.fd = control_write_fd(control), .events = POLLOUT}};
        char *line;
        size_t length;
        if (control_flush(control) < 0)
            return;
        if (!control_wants_write(control))
            polls[1].fd = -1;
        if (control->fd < 0 && polls[1].fd < 0)
            return; /* everything was sent, and nothing can be received */
        (void)io_poll(polls, ARRAY_LENGTH(polls), deadline);
        if (polls[0].revents != 0)
            (void)control_receive(control);
        while (control_next_line(control, &line, &length) > 0)
            command_run(sandbox, line, length);
    }
}

void sandbox_end(struct sandbox *sandbox)
{
    end_everything(sandbox);
    (void)event_exit(&sandbox->control, sandbox->server.wait_status);
    wsl_progress_end();
    await_acknowledgement(sandbox);
    power_off(STATUS_EXIT);
}

void sandbox_fail(struct sandbox *sandbox, enum stage_id stage, const struct failure *why)
{
    char text[FAILURE_TEXT_MAX + 64];

    (void)event_failed(&sandbox->control, stage_names[stage], why->text);
    wsl_progress_end();
    if (control_write_fd(&sandbox->control) < 0) {
        snprintf(text, sizeof(text), "stage %s failed: %s", stage_names[stage], why->text);
        console_write(text);
    }
    (void)control_flush(&sandbox->control);
    end_everything(sandbox);
    if (control_write_fd(&sandbox->control) >= 0)
        await_acknowledgement(sandbox);
    power_off(STATUS_FAILED);
}
