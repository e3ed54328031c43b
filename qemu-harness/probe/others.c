/* Access to other processes: their memory, their files in /proc, ptrace, signals.
 *
 * A process that /proc hides still has a PID, and kill(2) shows whether it exists, so `others`
 * tries all possible PIDs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"

#define PROCESS_MAX 65536

/* Finds a process by its number or its name (/proc/PID/comm). */
static pid_t find_process(const char *text)
{
    if (*text >= '0' && *text <= '9')
        return (pid_t)probe_number(text, INT32_MAX);
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    while (folder && !found && (entry = readdir(folder))) {
        char path[300], name[64];
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            io_read_file(AT_FDCWD, path, 0, name, sizeof(name)) < 0)
            continue;
        name[strcspn(name, "\n")] = '\0';
        if (strcmp(name, text) == 0)
            found = atoi(entry->d_name);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* A process that /proc does not show cannot be found by its name; that is reported as the
 * refusal. */
static pid_t find_or_tell(int argc, char **argv)
{
    pid_t pid = find_process(argv[1]);
    if (!pid)
        printf("%s: refused (no such process is to be seen)\n", probe_words(argc, argv));
    return pid;
}

static int probe_ptrace(int argc, char **argv)
{
    pid_t pid = find_or_tell(argc, argv);
    if (!pid)
        return PROBE_REFUSED;
    int error = ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0 ? errno : 0;
    if (error == 0) {
        waitpid(pid, NULL, 0);
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    return probe_report(probe_words(argc, argv), error, -1);
}

static const char *const process_files[] = {"mem", "maps", "environ", "fd", "stack", "auxv"};

/* 0 when the file of that process can be opened and gives a byte, else an errno. */
static int read_process_file(pid_t pid, const char *name)
{
    char path[64], byte;
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    if (strcmp(name, "fd") == 0) {
        DIR *folder = opendir(path);
        if (!folder)
            return errno;
        closedir(folder);
        return 0;
    }
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (strcmp(name, "mem") == 0)
        return 0; /* it opens only where it may be read; its first page is never mapped */
    ssize_t got = read(fd, &byte, 1);
    return got > 0 ? 0 : got < 0 ? errno : ENOENT; /* a kernel thread's files are empty */
}

static int read_process_memory(pid_t pid)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {(void *)4096, 1};
    /* rights are checked first, so EFAULT (nothing is mapped there) means that they were granted */
    return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT ? errno : 0;
}

static int probe_procmem(int argc, char **argv)
{
    pid_t pid = find_or_tell(argc, argv);
    int status = PROBE_REFUSED;
    if (!pid)
        return PROBE_REFUSED;
    for (size_t i = 0; i < ARRAY_LENGTH(process_files); i++) {
        char what[128];
        snprintf(what, sizeof(what), "procmem %s %s", argv[1], process_files[i]);
        int result = probe_report(what, read_process_file(pid, process_files[i]), -1);
        status = result > status ? result : status;
    }
    int result = probe_report("procmem process_vm_readv", read_process_memory(pid), -1);
    return result > status ? result : status;
}

static int probe_kill(int argc, char **argv)
{
    pid_t pid = find_or_tell(argc, argv);
    if (!pid)
        return PROBE_REFUSED;
    return probe_report(probe_words(argc, argv), kill(pid, 0) < 0 ? errno : 0, -1);
}

/* Counts and prints the ways to inspect a process of another account that work. */
static int look_into(pid_t pid)
{
    int ways = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(process_files); i++) {
        if (read_process_file(pid, process_files[i]) == 0)
            ways += printf("others: worked (/proc/%d/%s)\n", (int)pid, process_files[i]) > 0;
    }
    if (read_process_memory(pid) == 0)
        ways += printf("others: worked (process_vm_readv of %d)\n", (int)pid) > 0;
    if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0) {
        ways += printf("others: worked (ptrace of %d)\n", (int)pid) > 0;
        waitpid(pid, NULL, 0);
        ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
    return ways;
}

static int probe_others(int argc, char **argv)
{
    int foreign = 0, ways = 0;
    (void)argc, (void)argv;
    for (pid_t pid = 1; pid < PROCESS_MAX; pid++) {
        if (kill(pid, 0) < 0 && errno == EPERM) {
            foreign++;
            ways += look_into(pid);
        }
    }
    if (foreign == 0) {
        printf("others: unclear (there is no foreign process)\n");
        return PROBE_UNCLEAR;
    }
    if (ways == 0)
        printf("others: refused (%d foreign processes)\n", foreign);
    return ways ? PROBE_WORKED : PROBE_REFUSED;
}

static const struct probe_verb verbs[] = {
    {"ptrace", "PID|NAME", "attach to a process", NULL, probe_ptrace, 1, 1},
    {"procmem", "PID|NAME", "a process's memory and what /proc tells of it", NULL, probe_procmem, 1,
     1},
    {"kill", "PID|NAME", "a signal to a process (number 0)", NULL, probe_kill, 1, 1},
    {"others", "", "all that, on every process of another account", NULL, probe_others, 0, 0},
};
const struct probe_verbs others_verbs = {verbs, ARRAY_LENGTH(verbs)};
