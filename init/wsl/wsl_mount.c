/* Mounts a Windows drive with Microsoft's helper, /sbin/mount.drvfs (a link to WSL's /init).
 *
 * As with `mount -t drvfs`, the helper runs in the distribution's namespaces, where it finds its
 * sockets, and with the environment that WSL gave us. The distribution does not see the mount: a
 * child works in a copy of the mount namespace, on a tmpfs of its own. It shares our descriptors
 * (CLONE_FILES), puts a detached copy of the mount at a number that was reserved for it, and ends;
 * the copy of the namespace ends with it. A bind is made in the same way without the helper.
 */
#include "init/wsl/wsl_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/escape.h"
#include "common/wire/guest_path.h"
#include "init/system/mount_api.h"

#define HELPER "/sbin/mount.drvfs"
#define PLACE "/tmp" /* every distribution has it; in the copy our tmpfs is mounted there */
#define TARGET "/tmp/codev"
#define WORK_LIMIT_MS 30000
#define HELPER_LIMIT_MS 25000
#define SAID_MAX 200

extern char **environ;

static unsigned attributes(const struct wsl_message *message)
{
    return MOUNT_FLAG_NOSUID | MOUNT_FLAG_NODEV | (message->readonly ? MOUNT_FLAG_READONLY : 0);
}

static int enter_copy(struct failure *why)
{
    if (unshare(CLONE_NEWNS) < 0)
        return failure_errno(why, errno, "new mount namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return failure_errno(why, errno, "make the mounts private");
    return 0;
}

/* The arguments that mount(8) passes. metadata: chmod works; uid and gid: the account owns the
 * files. */
static _Noreturn void become_helper(const struct wsl_message *message, int said)
{
    char options[96];
    char *arguments[] = {(char *)"mount.drvfs",
                         (char *)message->source,
                         (char *)TARGET,
                         (char *)"-o",
                         options,
                         NULL};

    snprintf(options, sizeof(options), "%smetadata,uid=%u,gid=%u,umask=022",
             message->readonly ? "ro," : "", message->uid, message->gid);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive us */
    signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(null, 0) >= 0 && dup2(said, 1) >= 0 && dup2(said, 2) >= 0)
        execve(HELPER, arguments, environ);
    _exit(127);
}

/* The helper's output, escaped to one line. */
static void read_said(int fd, char out[SAID_MAX])
{
    char text[SAID_MAX / 2];
    ssize_t length = read(fd, text, sizeof(text));

    while (length > 0 && text[length - 1] == '\n')
        length--;
    escape_text(out, SAID_MAX, text, length < 0 ? 0 : (size_t)length, 0);
}

static int run_helper(const struct wsl_message *message, struct failure *why)
{
    char said[SAID_MAX];
    int ends[2], status = -1;

    if (access(HELPER, X_OK) < 0)
        return failure_errno(why, errno, "%s, which mounts Windows drives", HELPER);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int from = ends[0];
    CLEANUP_FD int to = ends[1];
    pid_t child = fork();
    if (child < 0)
        return failure_errno(why, errno, "fork");
    if (child == 0)
        become_helper(message, to);
    if (!child_wait(child, HELPER_LIMIT_MS, &status)) {
        child_end(child);
        return failure_set(why, ETIMEDOUT, "%s did not end in time", HELPER);
    }
    read_said(from, said);
    if (status != 0)
        return failure_set(why, EIO, "%s failed (%s %d)%s%s", HELPER,
                           WIFSIGNALED(status) ? "signal" : "exit status",
                           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                           said[0] != '\0' ? ": " : "", said);
    return 0;
}

static int open_drive(const struct wsl_message *message, struct failure *why)
{
    struct stat before, after;

    if (mount("tmpfs", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=64k") < 0 ||
        mkdir(TARGET, 0700) < 0 || stat(PLACE, &before) < 0)
        return failure_errno(why, errno, "a place for the drive");
    int result = run_helper(message, why);
    if (result < 0)
        return result;
    int drive = open(TARGET, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (drive < 0 || fstat(drive, &after) < 0)
        return failure_errno(why, errno, "open the drive");
    if (after.st_dev == before.st_dev) {
        close(drive);
        return failure_set(why, EIO, "%s mounted nothing", HELPER);
    }
    return drive;
}

/* Without following links, which files of the distribution could redirect. */
static int open_folder(const struct wsl_message *message, struct failure *why)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
        .resolve = RESOLVE_NO_SYMLINKS,
    };
    const char *fault = guest_folder_fault(message->source);
    if (fault)
        return failure_set(why, EINVAL, "the source %s", fault);
    int folder = (int)syscall(SYS_openat2, AT_FDCWD, message->source, &how, sizeof(how));
    return folder < 0 ? failure_errno(why, errno, "open the source") : folder;
}

struct work {
    const struct wsl_message *message;
    int into; /* the descriptor that becomes the mount */
};

static int make(void *argument, int *report_fd, struct failure *why)
{
    const struct work *work = argument;
    (void)report_fd;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int result = enter_copy(why);
    if (result < 0)
        return result;
    CLEANUP_FD int folder =
        work->message->drvfs ? open_drive(work->message, why) : open_folder(work->message, why);
    if (folder < 0)
        return folder;
    CLEANUP_FD int tree = mount_copy_tree(folder, attributes(work->message));
    if (tree < 0)
        return failure_errno(why, -tree, "take the mount");
    return dup3(tree, work->into, O_CLOEXEC) < 0 ? failure_errno(why, errno, "keep the mount") : 0;
}

int wsl_mount_make(const struct wsl_message *message, struct failure *why)
{
    CLEANUP_FD int into = open("/", O_PATH | O_CLOEXEC); /* the child replaces what is there */
    struct work work = {.message = message, .into = into};

    if (into < 0)
        return failure_errno(why, errno, "open /");
    int result = child_work(make, &work, CLONE_FILES, WORK_LIMIT_MS, why);
    return result < 0 ? result : fd_steal(&into);
}
