/* Breakout: access to PID 1 and the relay by signals, system calls and their files in /proc. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/breakout.h"

#define KCMP_VM_NUMBER 1

static long send_signal(const struct breakout_vector *vector)
{
    return kill(breakout_pid(vector), (int)vector->number);
}

static long send_thread_signal(const struct breakout_vector *vector)
{
    pid_t pid = breakout_pid(vector);
    return syscall(SYS_tgkill, pid, pid, (int)vector->number);
}

static long queue_signal(const struct breakout_vector *vector)
{
    return sigqueue(breakout_pid(vector), (int)vector->number, (union sigval){0});
}

static int open_process(const struct breakout_vector *vector)
{
    return (int)syscall(SYS_pidfd_open, breakout_pid(vector), 0);
}

static long signal_by_descriptor(const struct breakout_vector *vector)
{
    CLEANUP_FD int process = open_process(vector);
    return process < 0 ? -1 : syscall(SYS_pidfd_send_signal, process, (int)vector->number, NULL, 0);
}

static long take_descriptor(const struct breakout_vector *vector)
{
    CLEANUP_FD int process = open_process(vector);
    CLEANUP_FD int taken = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, 0, 0);
    return taken < 0 ? -1 : 0;
}

static long attach(const struct breakout_vector *vector)
{
    pid_t pid = breakout_pid(vector);
    if (ptrace((int)vector->number, pid, NULL, NULL) < 0)
        return -1;
    if (vector->number == PTRACE_ATTACH) {
        waitpid(pid, NULL, __WALL);
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    return 0;
}

/* The kernel checks the rights first, so EFAULT (nothing is mapped there) means that they were
 * granted. */
static long copy_memory(const struct breakout_vector *vector)
{
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)4096, 1};
    long result = syscall(vector->number, breakout_pid(vector), &here, 1, &there, 1, 0);
    return result < 0 && errno == EFAULT ? 0 : result;
}

static long compare(const struct breakout_vector *vector)
{
    return syscall(SYS_kcmp, getpid(), breakout_pid(vector), KCMP_VM_NUMBER, 0, 0);
}

static long change_limit(const struct breakout_vector *vector)
{
    struct rlimit limit = {1024, 4096};
    return prlimit(breakout_pid(vector), RLIMIT_CORE, &limit, NULL);
}

static long change_priority(const struct breakout_vector *vector)
{
    return setpriority(PRIO_PROCESS, (id_t)breakout_pid(vector), 19);
}

static long change_processors(const struct breakout_vector *vector)
{
    unsigned long all = ~0ul;
    return syscall(SYS_sched_setaffinity, breakout_pid(vector), sizeof(all), &all);
}

#define BOTH(text, function, value)                                                                \
    {.name = text " PID 1", .attempt = (function), .target = BREAKOUT_INIT, .number = (value)},    \
    {                                                                                              \
        .name = text " the agent", .attempt = (function), .target = BREAKOUT_AGENT,                \
        .number = (value)                                                                          \
    }

static const struct breakout_vector processes[] = {
    BOTH("a signal to", send_signal, SIGCONT),
    BOTH("tgkill of", send_thread_signal, SIGCONT),
    BOTH("a queued signal to", queue_signal, SIGCONT),
    BOTH("a signal by descriptor to", signal_by_descriptor, SIGCONT),
    BOTH("a descriptor out of", take_descriptor, 0),
    BOTH("ptrace attach to", attach, PTRACE_ATTACH),
    BOTH("ptrace seize of", attach, PTRACE_SEIZE),
    BOTH("process_vm_readv of", copy_memory, SYS_process_vm_readv),
    BOTH("process_vm_writev of", copy_memory, SYS_process_vm_writev),
    BOTH("kcmp with", compare, 0),
    BOTH("limits of", change_limit, 0),
    BOTH("priority of", change_priority, 0),
    BOTH("processors of", change_processors, 0),
};
const struct breakout_group breakout_processes = {"signals and calls at processes", processes,
                                                  ARRAY_LENGTH(processes), 0};

static long list_folder(const struct breakout_vector *vector)
{
    DIR *folder = opendir(breakout_path(vector));
    if (!folder)
        return -1;
    closedir(folder);
    return 0;
}

static long read_link(const struct breakout_vector *vector)
{
    char text[PATH_MAX];
    return readlink(breakout_path(vector), text, sizeof(text));
}

#define FILE_OF_BOTH(file, function)                                                               \
    {.name = "/proc/1/" file, .attempt = (function), .path = (file), .target = BREAKOUT_INIT},     \
    {                                                                                              \
        .name = "/proc/AGENT/" file, .attempt = (function), .path = (file),                        \
        .target = BREAKOUT_AGENT                                                                   \
    }

static long find_pid(const struct breakout_vector *vector)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d", (int)breakout_pid(vector));
    return access(path, F_OK);
}

static const struct breakout_vector process_files[] = {
    FILE_OF_BOTH("mem", breakout_open_read),
    FILE_OF_BOTH("environ", breakout_read),
    FILE_OF_BOTH("cmdline", breakout_read),
    FILE_OF_BOTH("maps", breakout_read),
    FILE_OF_BOTH("auxv", breakout_read),
    FILE_OF_BOTH("syscall", breakout_read),
    FILE_OF_BOTH("pagemap", breakout_open_read),
    FILE_OF_BOTH("fd", list_folder),
    FILE_OF_BOTH("fdinfo", list_folder),
    FILE_OF_BOTH("map_files", list_folder),
    FILE_OF_BOTH("root/", list_folder),
    FILE_OF_BOTH("cwd/", list_folder),
    FILE_OF_BOTH("exe", read_link),
    FILE_OF_BOTH("ns/net", breakout_open_read),
    FILE_OF_BOTH("oom_score_adj", breakout_open_write),
    FILE_OF_BOTH("fd/0", breakout_open_read),
    {.name = "that PID 1 exists, by /proc", .attempt = find_pid, .target = BREAKOUT_INIT},
    {.name = "that the agent exists, by /proc", .attempt = find_pid, .target = BREAKOUT_AGENT},
};
const struct breakout_group breakout_process_files = {"files of PID 1 and the agent", process_files,
                                                      ARRAY_LENGTH(process_files), 0};
