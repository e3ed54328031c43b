/* Handles the ports and their frames in one loop over poll(2). A port without a client would always
 * be ready, so it is not polled; SIGIO reports that a client connects or disconnects. */
#include "qemu-harness/wsl-rig/channel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/wsl-rig/rig.h"

#define POLLS_PER_PORT 4
#define BACKUP_MS 500 /* in case a SIGIO was missed */

static struct channel_port ports[CHANNEL_PORTS_MAX];
static unsigned port_count;

static size_t back_room(const struct channel_port *port)
{
    return sizeof(port->back) - port->back_end;
}

static void back_put(struct channel_port *port, char type, const void *bytes, size_t length)
{
    unsigned char *at = port->back + port->back_end;
    if (back_room(port) < CHANNEL_HEAD + length)
        return;
    at[0] = (unsigned char)type;
    for (unsigned i = 0; i < 4; i++)
        at[1 + i] = (unsigned char)(length >> (8 * i));
    memcpy(at + CHANNEL_HEAD, bytes, length);
    port->back_end += CHANNEL_HEAD + length;
}

static void back_flush(struct channel_port *port)
{
    while (port->back_start < port->back_end) {
        ssize_t length =
            write(port->fd, port->back + port->back_start, port->back_end - port->back_start);
        if (length <= 0)
            return;
        port->back_start += (size_t)length;
    }
    port->back_start = port->back_end = 0;
}

/* The client on the host has left; its pending output is dropped. */
static void hang_up(struct channel_port *port)
{
    char drain[4096];
    while (read(port->fd, drain, sizeof(drain)) > 0)
        ;
    port->have = port->used = 0;
    port->back_start = port->back_end = 0;
    bool running = port->state == CHANNEL_RUNNING && port->pid > 0 && !port->exited;
    pid_t pid = port->pid;
    execution_forget(port);
    port->pid = running ? pid : 0;
    port->state = running ? CHANNEL_DYING : CHANNEL_CLOSED;
}

static void welcome(struct channel_port *port)
{
    port->state = CHANNEL_OPEN;
    port->have = port->used = 0;
    back_put(port, 'R', "", 0);
}

static uint32_t frame_length(const struct channel_port *port)
{
    const unsigned char *at = port->frame + 1;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Passes input on. True when all of it was taken. */
static bool pass_input(struct channel_port *port, size_t length)
{
    while (port->used < length && port->in >= 0) {
        ssize_t written =
            write(port->in, port->frame + CHANNEL_HEAD + port->used, length - port->used);
        if (written < 0 && errno == EAGAIN)
            return false;
        if (written < 0)
            fd_close(&port->in);
        else
            port->used += (size_t)written;
    }
    return true;
}

static void end_input(struct channel_port *port)
{
    port->in_ended = true;
    if (port->in >= 0 && port->pid == 0)
        (void)shutdown(port->in, SHUT_WR);
    fd_close(&port->in);
}

/* Handles a complete frame. True when all of it was used. */
static bool use_frame(struct channel_port *port, size_t length)
{
    switch (port->frame[0]) {
    case 'S':
        if (port->state != CHANNEL_OPEN)
            return true;
        port->state = CHANNEL_RUNNING;
        port->status = 0;
        if (!execution_start(port, (char *)port->frame + CHANNEL_HEAD, length)) {
            execution_forget(port);
            port->exited = true;
            port->status = 127;
        }
        return true;
    case 'I':
        return port->state != CHANNEL_RUNNING || pass_input(port, length);
    case 'E':
        end_input(port);
        return true;
    default: /* unknown types are ignored */
        return true;
    }
}

/* Reads and handles one frame. */
static void take_frames(struct channel_port *port)
{
    for (;;) {
        size_t want = CHANNEL_HEAD;
        if (port->have >= CHANNEL_HEAD)
            want += frame_length(port);
        if (want > sizeof(port->frame)) {
            hang_up(port);
            return;
        }
        if (port->have >= CHANNEL_HEAD && port->have == want) {
            if (!use_frame(port, want - CHANNEL_HEAD))
                return; /* the pipe is full */
            port->have = port->used = 0;
            continue;
        }
        ssize_t length = read(port->fd, port->frame + port->have, want - port->have);
        if (length <= 0)
            return; /* nothing to read; POLLHUP reports an end */
        port->have += (size_t)length;
    }
}

static void take_output(struct channel_port *port, int *fd, char type)
{
    unsigned char bytes[CHANNEL_FRAME_MAX];
    while (*fd >= 0 && back_room(port) >= sizeof(port->back) / 2) {
        ssize_t length = read(*fd, bytes, sizeof(bytes));
        if (length > 0)
            back_put(port, type, bytes, (size_t)length);
        else if (length == 0 || errno != EAGAIN)
            fd_close(fd);
        else
            return;
    }
}

/* Sends X when the process has ended and its output was read. A child that keeps the pipes open
 * does not delay that (wsl.exe ends with its process too). */
static void finish(struct channel_port *port)
{
    char text[16];
    bool connection = port->pid == 0 && !port->exited;
    if (port->state != CHANNEL_RUNNING || (connection && port->out >= 0) ||
        (!connection && !port->exited) || back_room(port) < sizeof(port->back) / 2)
        return;
    int length = snprintf(text, sizeof(text), "%d", port->status);
    back_put(port, 'X', text, (size_t)length);
    execution_forget(port);
    port->state = CHANNEL_OPEN;
}

static void reap(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (unsigned i = 0; i < port_count; i++) {
            struct channel_port *port = &ports[i];
            if (port->pid != pid)
                continue;
            port->exited = true;
            port->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            if (port->state == CHANNEL_DYING) {
                port->pid = 0;
                port->state = CHANNEL_CLOSED;
            }
        }
    }
}

static void look_at_host(struct channel_port *port)
{
    struct pollfd look = {.fd = port->fd, .events = POLLIN};
    (void)poll(&look, 1, 0);
    bool connected = !(look.revents & POLLHUP);
    if (connected && port->state == CHANNEL_CLOSED)
        welcome(port);
    else if (!connected && (port->state == CHANNEL_OPEN || port->state == CHANNEL_RUNNING))
        hang_up(port);
}

static void work(struct channel_port *port)
{
    if (port->state != CHANNEL_OPEN && port->state != CHANNEL_RUNNING)
        return;
    take_frames(port);
    take_output(port, &port->out, 'O');
    take_output(port, &port->err, 'D');
    finish(port);
    back_flush(port);
}

static unsigned watch(const struct channel_port *port, struct pollfd *fds)
{
    unsigned count = 0;
    if (port->state != CHANNEL_OPEN && port->state != CHANNEL_RUNNING)
        return 0;
    bool blocked = port->have >= CHANNEL_HEAD && port->have == CHANNEL_HEAD + frame_length(port);
    bool room = back_room(port) >= sizeof(port->back) / 2;
    short events = (short)((blocked ? 0 : POLLIN) | (port->back_end ? POLLOUT : 0));
    if (events)
        fds[count++] = (struct pollfd){.fd = port->fd, .events = events};
    if (port->in >= 0 && blocked)
        fds[count++] = (struct pollfd){.fd = port->in, .events = POLLOUT};
    if (port->out >= 0 && room)
        fds[count++] = (struct pollfd){.fd = port->out, .events = POLLIN};
    if (port->err >= 0 && room)
        fds[count++] = (struct pollfd){.fd = port->err, .events = POLLIN};
    return count;
}

static void open_ports(void)
{
    DIR *folder = opendir("/dev");
    if (!folder)
        rig_die("/dev");
    for (struct dirent *entry; (entry = readdir(folder)) && port_count < CHANNEL_PORTS_MAX;) {
        if (strncmp(entry->d_name, "vport", 5) != 0)
            continue;
        int fd = openat(dirfd(folder), entry->d_name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fcntl(fd, F_SETOWN, getpid()) ||
            fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK | O_ASYNC))
            rig_die(entry->d_name);
        ports[port_count++] = (struct channel_port){.fd = fd, .in = -1, .out = -1, .err = -1};
    }
    closedir(folder);
}

int rig_channel(int argc, char **argv)
{
    static struct pollfd fds[1 + CHANNEL_PORTS_MAX * POLLS_PER_PORT];
    sigset_t signals;
    (void)argc;
    (void)argv;
    sigemptyset(&signals);
    sigaddset(&signals, SIGIO);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int events = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    open_ports();
    for (;;) {
        unsigned count = 1;
        fds[0] = (struct pollfd){.fd = events, .events = POLLIN};
        for (unsigned i = 0; i < port_count; i++)
            count += watch(&ports[i], fds + count);
        (void)poll(fds, count, BACKUP_MS);
        struct signalfd_siginfo ignored;
        while (read(events, &ignored, sizeof(ignored)) > 0)
            ;
        reap();
        for (unsigned i = 0; i < port_count; i++) {
            look_at_host(&ports[i]);
            work(&ports[i]);
        }
    }
}
