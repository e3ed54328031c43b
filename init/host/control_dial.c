/* Dials the host: where, how often, and what counts as connected.
 *
 * The host may be slower to start than the guest, and hybrid vsock proxies accept a connection for
 * a host that does not listen and then close it; so only bytes from the host end the dialling. The
 * first waits are short, since the host usually listens already.
 */
#include "init/host/control_dial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/number.h"

#define COMMAND_LINE_MAX 4096
#define DIAL_WAIT_FIRST_MS 2
#define DIAL_WAIT_MOST_MS 200

static const char port_key[] = "codev.control=vsock:";

int control_port_find(const char *command_line, uint32_t *port)
{
    const size_t key_length = sizeof(port_key) - 1;

    *port = CONTROL_PORT_DEFAULT;
    for (const char *word = command_line; *word != '\0'; word += strcspn(word, " \t\n")) {
        word += strspn(word, " \t\n");
        if (strncmp(word, port_key, key_length) != 0)
            continue;
        uint32_t value;
        const char *end = number_read(word + key_length, 10, &value);
        if (!end || value == 0 || value == VMADDR_PORT_ANY ||
            (*end != '\0' && !strchr(" \t\n", *end)))
            return -EINVAL;
        *port = value;
    }
    return 0;
}

static int find_port(uint32_t *port, struct failure *why)
{
    char text[COMMAND_LINE_MAX];
    ssize_t length = io_read_file(AT_FDCWD, "/proc/cmdline", 0, text, sizeof(text));

    if (length < 0)
        return failure_errno(why, (int)-length, "read /proc/cmdline");
    if (control_port_find(text, port) < 0)
        return failure_set(why, EINVAL, "kernel command line: %sPORT is malformed", port_key);
    return 0;
}

static void pause_ms(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}

/* A connected descriptor, or a negative errno. */
static int connect_once(const struct endpoint *host, int64_t deadline)
{
    CLEANUP_FD int fd = endpoint_dial(host);
    int error = 0;
    socklen_t size = sizeof(error);

    if (fd < 0)
        return fd;
    if (!io_wait(fd, POLLOUT, deadline))
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    return error != 0 ? -error : fd_steal(&fd);
}

/* Sends what is queued (hello and the stages so far) and waits for the host's first byte. */
static int await_host(struct control *control, int64_t deadline)
{
    int result = 0;

    while (result == 0 && control->in.end == 0) {
        short events = control_wants_write(control) ? POLLIN | POLLOUT : POLLIN;
        if (!io_wait(control->fd, events, deadline))
            return -ETIMEDOUT;
        result = control_flush(control);
        if (result == 0)
            result = control_receive(control);
    }
    return result;
}

/* One attempt. When it fails, what was sent is queued again for the next connection. A connection
 * that is open when the time is up is kept: the failure can be reported over it. */
static int try_host(struct control *control, const struct endpoint *host, int64_t deadline)
{
    const size_t queued = control->events_end;
    int fd = connect_once(host, deadline);

    if (fd < 0)
        return fd;
    control_attach(control, fd);
    int result = await_host(control, deadline);
    if (result < 0 && result != -ETIMEDOUT) {
        fd_close(&control->fd);
        control->events_start = 0;
        control->events_end = queued;
        control->writing = CONTROL_IDLE;
    }
    return result;
}

int control_dial(struct control *control, int64_t deadline, struct failure *why)
{
    struct endpoint host = {.kind = ENDPOINT_VSOCK, .cid = VMADDR_CID_HOST};
    int wait_ms = DIAL_WAIT_FIRST_MS;
    int result = find_port(&host.port, why);

    if (result < 0)
        return result;
    for (;;) {
        result = try_host(control, &host, deadline);
        if (result == 0)
            return 0;
        if (control->fd >= 0)
            return failure_set(why, ETIMEDOUT, "the host at vsock:2:%u accepts and sends nothing",
                               (unsigned)host.port);
        bool hopeless = result == -ENODEV || result == -EAFNOSUPPORT;
        if (hopeless || deadline - io_monotonic_ns() <= wait_ms * MILLISECONDS)
            return failure_errno(why, -result, "no host at vsock:2:%u", (unsigned)host.port);
        pause_ms(wait_ms);
        wait_ms = wait_ms * 2 < DIAL_WAIT_MOST_MS ? wait_ms * 2 : DIAL_WAIT_MOST_MS;
    }
}
