/* Runs a program and makes each nf_tables batch that it sends fail (seccomp_unotify(2)).
 *
 *     first-rule, last-rule   changes the name of that rule's last expression, in the sender's
 *                             memory, to one that no kernel knows
 *     killed                  refuses the batch with ENOTSOCK, as if its socket were closed
 *
 * This process is the program's supervisor. It ends with the program's status, or with 3 when no
 * batch was changed. Needs root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

#define BATCH_MAX 8192
#define LOOK_MS 100

static const char word[] = "immediate"; /* of every rule the last expression */

static int install_filter(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = ARRAY_LENGTH(filter), .filter = filter};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

/* One descriptor over a socket pair, by sendmsg(2), which the filter lets pass. */
static int pass_descriptor(int over, int fd, int receive)
{
    char byte = 0;
    struct iovec data = {.iov_base = &byte, .iov_len = 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (receive) {
        if (recvmsg(over, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
            return -1;
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
        return fd;
    }
    *head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    return sendmsg(over, &message, 0) == 1 ? 0 : -1;
}

static const char *find_word(const char *bytes, size_t length, int last)
{
    const char *found = NULL;
    for (const char *at = bytes;
         (at = memmem(at, length - (size_t)(at - bytes), word, sizeof(word))); at++) {
        found = at;
        if (!last)
            break;
    }
    return found;
}

/* True when this was a batch and was changed; *error is the errno for its sender, or 0 to let the
 * call continue. */
static int spoil(const struct seccomp_notif *notice, const char *how, int *error)
{
    char bytes[BATCH_MAX], path[64];
    snprintf(path, sizeof(path), "/proc/%u/mem", notice->pid);
    CLEANUP_FD int memory = open(path, O_RDWR | O_CLOEXEC);
    off_t address = (off_t)notice->data.args[1];
    size_t wanted = notice->data.args[2] < BATCH_MAX ? notice->data.args[2] : BATCH_MAX;
    ssize_t length = memory < 0 ? -1 : pread(memory, bytes, wanted, address);
    const char *found =
        length <= 0 ? NULL : find_word(bytes, (size_t)length, strcmp(how, "last-rule") == 0);
    if (!found)
        return 0;
    if (strcmp(how, "killed") == 0) {
        *error = -ENOTSOCK;
        return 1;
    }
    return pwrite(memory, "x", 1, address + (found - bytes)) == 1;
}

static int answer(int listener, const char *how, int spoiled)
{
    struct seccomp_notif notice = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) < 0)
        return spoiled;
    struct seccomp_notif_resp response = {.id = notice.id};
    spoiled |= spoil(&notice, how, &response.error);
    if (response.error == 0)
        response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    return spoiled;
}

static void run_program(int over, char **argv)
{
    int listener = install_filter();
    if (listener < 0 || pass_descriptor(over, listener, 0) < 0)
        probe_die("seccomp: %s", strerror(errno));
    close(listener);
    execv(argv[0], argv);
    probe_die("%s: %s", argv[0], strerror(errno));
}

static int probe_spoil(int argc, char **argv)
{
    int pair[2], status = 0, spoiled = 0;
    (void)argc;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        probe_die("socketpair: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        probe_die("fork: %s", strerror(errno));
    if (child == 0)
        run_program(pair[1], argv + 2);
    close(STDIN_FILENO); /* only the program reads it */
    close(pair[1]);
    CLEANUP_FD int listener = pass_descriptor(pair[0], -1, 1);
    while (waitpid(child, &status, WNOHANG) == 0) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, LOOK_MS) > 0 && wait.revents & POLLIN)
            spoiled = answer(listener, argv[1], spoiled);
    }
    return spoiled && WIFEXITED(status) ? WEXITSTATUS(status) : PROBE_BROKEN;
}

static const struct probe_verb verbs[] = {
    {"spoil", "first-rule|last-rule|killed PROGRAM [ARGUMENT...]",
     "runs a program and spoils its nf_tables batches", NULL, probe_spoil, 2, 16},
};
const struct probe_verbs spoil_verbs = {verbs, ARRAY_LENGTH(verbs)};
