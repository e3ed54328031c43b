/* Messages of one fixed size; a shorter one was truncated and is refused. */
#include "init/wsl/wsl_link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define ANSWER_LIMIT_MS 60000

union descriptor_room {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
};

int wsl_link_send(int link, struct wsl_message *message, int fd)
{
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    union descriptor_room room = {.bytes = ""};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (fd >= 0) {
        header.msg_control = room.bytes;
        header.msg_controllen = sizeof(room.bytes);
        struct cmsghdr *control = CMSG_FIRSTHDR(&header);
        *control = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(control), &fd, sizeof(fd));
    }
    do
        sent = sendmsg(link, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    int result = sent < 0 ? -errno : 0;
    secret_wipe(&message->relay, sizeof(message->relay));
    secret_wipe(&message->way_in, sizeof(message->way_in));
    return result;
}

static int descriptor_of(struct msghdr *header)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(header);
    int fd = -1;

    if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(control), sizeof(fd));
    return fd;
}

int wsl_link_receive(int link, struct wsl_message *message, int *fd)
{
    struct iovec part = {.iov_base = message, .iov_len = sizeof(*message)};
    union descriptor_room room;
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = room.bytes,
                            .msg_controllen = sizeof(room.bytes)};
    ssize_t got;

    do
        got = recvmsg(link, &header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    CLEANUP_FD int came = descriptor_of(&header);
    if (got == 0)
        return -EPIPE;
    if (got != (ssize_t)sizeof(*message) || message->kind >= WSL_MESSAGE_KIND_COUNT)
        return -EPROTO;
    if (fd)
        *fd = fd_steal(&came);
    return 0;
}

/* ---- PID 1's side ---- */

static struct wsl_message kept_report;
static bool report_is_kept;

static int await_answer(int link, struct wsl_message *message, int *fd)
{
    const int64_t deadline = io_monotonic_ns() + ANSWER_LIMIT_MS * MILLISECONDS;

    for (;;) {
        if (!io_wait(link, POLLIN, deadline))
            return -ETIMEDOUT;
        int result = wsl_link_receive(link, message, fd);
        if (result < 0 || message->kind == WSL_ANSWER)
            return result;
        kept_report = *message;
        report_is_kept = true;
    }
}

int wsl_link_ask(int link, struct wsl_message *message, int *fd, struct failure *why)
{
    int result = wsl_link_send(link, message, -1);

    if (result == 0)
        result = await_answer(link, message, fd);
    if (result < 0)
        return failure_errno(why, -result, "ask the process outside the sandbox");
    if (message->result < 0)
        return failure_set(why, -message->result, "%s", message->why.text);
    return 0;
}

int wsl_link_take_report(int link, struct failure *why)
{
    static struct wsl_message message;
    int result = 0;

    if (!report_is_kept)
        result = wsl_link_receive(link, &kept_report, NULL);
    if (result < 0)
        return failure_errno(why, -result, "the process outside the sandbox is gone");
    message = kept_report;
    report_is_kept = false;
    *why = message.why;
    if (message.kind == WSL_AGENT_LOST)
        return -ECHILD;
    return message.kind == WSL_WARNING;
}

int wsl_link_update(int link, const struct boot_relay *relay, struct failure *why)
{
    static struct wsl_message message;

    memset(&message, 0, sizeof(message));
    message.kind = WSL_UPDATE;
    message.relay = *relay;
    return wsl_link_ask(link, &message, NULL, why);
}

int wsl_link_mount(int link, const struct boot_mount *mount, const struct account *account,
                   struct failure *why)
{
    static struct wsl_message message;
    int tree = -1;

    memset(&message, 0, sizeof(message));
    message.kind = WSL_MOUNT;
    message.drvfs = mount->type == MOUNT_DRVFS;
    message.readonly = mount->readonly;
    message.uid = account->uid;
    message.gid = account->gid;
    if (strlen(mount->source) >= sizeof(message.source))
        return failure_set(why, ENAMETOOLONG, "the source is too long");
    strcpy(message.source, mount->source);
    int result = wsl_link_ask(link, &message, &tree, why);
    if (result < 0)
        return result;
    return tree >= 0 ? tree : failure_set(why, EPROTO, "no mount came from outside");
}
