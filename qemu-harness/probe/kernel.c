/* Kernel features that programs in a sandbox do not need, and other ways to make system calls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

static long try_clone3(void)
{
    uint64_t arguments[8] = {[4] =
                                 SIGCHLD}; /* struct clone_args: exit_signal is its fifth member */
    long pid = syscall(SYS_clone3, arguments, sizeof(arguments));
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return pid;
}

static long try_bpf(void)
{
    union bpf_attr map = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    CLEANUP_FD int fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map));
    return fd < 0 ? -1 : 0;
}

static long try_perf(void)
{
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof(event),
                                    .config = PERF_COUNT_SW_TASK_CLOCK,
                                    .exclude_kernel = 1};
    CLEANUP_FD int fd = (int)syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
    return fd < 0 ? -1 : 0;
}

static long try_reboot(void)
{
    /* Only disables Ctrl-Alt-Del: harmless where it works, and needs the same right as a reboot. */
    return syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_CAD_OFF,
                   NULL);
}

static long try_kexec(void)
{
    return syscall(SYS_kexec_load, 0, 0, NULL, 0);
}

static long try_module(void)
{
    return syscall(SYS_init_module, "", 0, "");
}

static long try_module_file(void)
{
    CLEANUP_FD int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : syscall(SYS_finit_module, fd, "", 0);
}

static long try_keyctl(void)
{
    return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1);
}

static long try_add_key(void)
{
    return syscall(SYS_add_key, "user", "probe", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}

static long try_userfaultfd(void)
{
    CLEANUP_FD int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* UFFD_USER_MODE_ONLY */);
    return fd < 0 ? -1 : 0;
}

static long try_file_handle(void)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head.handle_bytes = sizeof(handle.bytes)};
    int mount_id;
    if (name_to_handle_at(AT_FDCWD, "/tmp", &handle.head, &mount_id, 0) < 0)
        handle.head.handle_bytes =
            8; /* this file system has no handles: the call must be refused before */
    CLEANUP_FD int mount = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_FD int fd = open_by_handle_at(mount, &handle.head, O_RDONLY);
    return fd < 0 ? -1 : 0;
}

static long try_swapon(void)
{
    return swapon("/proc/self/exe", 0);
}

static long try_settime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return clock_settime(CLOCK_REALTIME, &now);
}

static long try_hostname(void)
{
    return sethostname("probe", 5);
}

static long try_syslog(void)
{
    char text[64];
    return syscall(SYS_syslog, 3 /* SYSLOG_ACTION_READ_ALL */, text, sizeof(text));
}

/* Writes code to memory and runs it. Language runtimes need this, so it must work. */
static int probe_jit(int argc, char **argv)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int error = page == MAP_FAILED || mprotect(page, 4096, PROT_READ | PROT_EXEC) < 0 ? errno : 0;
    printf("%s: %s\n", probe_words(argc, argv), error ? probe_errno_name(error) : "worked");
    return error ? PROBE_BROKEN : PROBE_DONE;
}

#ifdef __x86_64__
static long try_x32(void)
{
    return syscall(0x40000000L | SYS_getppid);
}

/* By interrupt 0x80, in a child: a kernel without ia32 answers with SIGSEGV. */
static long try_ia32(void)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        long result;
        __asm__ volatile("int $0x80"
                         : "=a"(result)
                         : "a"(64L /* getppid */)
                         : "memory", "r8", "r9", "r10", "r11");
        _exit((int)result > 0 ? 0 : (int)-result);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -1;
    errno = WIFSIGNALED(status) ? ENOSYS : WEXITSTATUS(status);
    return errno ? -1 : 0;
}
#endif

static const struct probe_verb verbs[] = {
    {"clone3", "", "a child by clone3, whose flags no filter sees", try_clone3, NULL, 0, 0},
    {"bpf", "", "a BPF map", try_bpf, NULL, 0, 0},
    {"perf", "", "a performance counter", try_perf, NULL, 0, 0},
    {"reboot", "", "reboot(2), of the harmless kind", try_reboot, NULL, 0, 0},
    {"kexec", "", "another kernel", try_kexec, NULL, 0, 0},
    {"module", "", "a kernel module from memory", try_module, NULL, 0, 0},
    {"module-file", "", "a kernel module from a file", try_module_file, NULL, 0, 0},
    {"keyctl", "", "the kernel's key rings", try_keyctl, NULL, 0, 0},
    {"add-key", "", "a key in a ring", try_add_key, NULL, 0, 0},
    {"userfaultfd", "", "page faults in our own hands", try_userfaultfd, NULL, 0, 0},
    {"file-handle", "", "a file by handle, past its folders", try_file_handle, NULL, 0, 0},
    {"swapon", "", "swap", try_swapon, NULL, 0, 0},
    {"settime", "", "the clock", try_settime, NULL, 0, 0},
    {"hostname", "", "another host name", try_hostname, NULL, 0, 0},
    {"syslog", "", "the kernel's messages", try_syslog, NULL, 0, 0},
#ifdef __x86_64__
    {"x32", "", "a system call of the x32 ABI", try_x32, NULL, 0, 0},
    {"ia32", "", "a system call of the 32-bit ABI", try_ia32, NULL, 0, 0},
#endif
    {"jit", "", "executable memory (a tool: must work)", NULL, probe_jit, 0, 0},
};
const struct probe_verbs kernel_verbs = {verbs, ARRAY_LENGTH(verbs)};
