/* One connection of the way in. Interest is computed from the state; every step is tried without
 * blocking, and what cannot go on waits for the next wake-up. */
#include "qemu-harness/launcher/guest/way_in_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/wire/preface.h"
#include "common/wire/protocol.h"

#define MS 1000000LL

void way_in_connection_begin(struct way_in_connection *connection, int client, int64_t now)
{
    connection->state = WAY_IN_WAITING;
    connection->client = client;
    connection->guest = -1;
    connection->client_poll = connection->guest_poll = -1;
    connection->client_gone = false;
    connection->give_up = now + WAY_IN_TRY_MS * MS;
    connection->next_try = now;
    connection->last = now;
    connection->line_length = 0;
    connection->in.ended = connection->out.ended = false;
    connection->in.start = connection->in.end = 0;
    connection->out.start = connection->out.end = 0;
}

void way_in_connection_end(struct way_in_connection *connection)
{
    if (connection->state == WAY_IN_FREE)
        return;
    fd_close(&connection->client);
    fd_close(&connection->guest);
    connection->state = WAY_IN_FREE;
}

static bool pending(const struct way_in_direction *direction)
{
    return direction->start < direction->end;
}

static short client_interest(const struct way_in_connection *connection)
{
    if (connection->state != WAY_IN_JOINED)
        return 0;
    bool read = !connection->in.ended && !pending(&connection->in) && !connection->out.ended;
    return (short)((read ? POLLIN : 0) | (pending(&connection->out) ? POLLOUT : 0));
}

static short guest_interest(const struct way_in_connection *connection)
{
    switch (connection->state) {
    case WAY_IN_DIALLING:
        return connection->asked ? POLLIN : POLLOUT;
    case WAY_IN_GREETING:
        return POLLIN;
    case WAY_IN_JOINED:
        return (short)((!connection->out.ended && !pending(&connection->out) ? POLLIN : 0) |
                       (pending(&connection->in) && !connection->out.ended ? POLLOUT : 0));
    case WAY_IN_FREE:
    case WAY_IN_WAITING:
    case WAY_IN_STATE_COUNT:
        break;
    }
    return 0;
}

unsigned way_in_connection_poll(struct way_in_connection *connection, struct pollfd *fds,
                                unsigned base)
{
    unsigned count = 0;
    short client = client_interest(connection), guest = guest_interest(connection);
    connection->client_poll = connection->guest_poll = -1;
    /* without interest still: poll(2) then tells that the client has closed whole */
    if (client || !connection->client_gone) {
        connection->client_poll = (int)(base + count);
        fds[count++] = (struct pollfd){.fd = connection->client, .events = client};
    }
    if (guest) {
        connection->guest_poll = (int)(base + count);
        fds[count++] = (struct pollfd){.fd = connection->guest, .events = guest};
    }
    return count;
}

int64_t way_in_connection_due(const struct way_in_connection *connection)
{
    switch (connection->state) {
    case WAY_IN_WAITING:
        return connection->next_try;
    case WAY_IN_DIALLING:
    case WAY_IN_GREETING:
        return connection->give_up;
    case WAY_IN_JOINED:
        return connection->in.ended ? connection->last + WAY_IN_IDLE_MS * MS : INT64_MAX;
    case WAY_IN_FREE:
    case WAY_IN_STATE_COUNT:
        break;
    }
    return INT64_MAX;
}

/* The guest did not answer: once more a little later, as long as there is time. */
static void try_again(struct way_in_connection *connection, int64_t now)
{
    fd_close(&connection->guest);
    connection->state = WAY_IN_WAITING;
    connection->next_try = now + WAY_IN_RETRY_MS * MS;
    if (connection->next_try > connection->give_up)
        way_in_connection_end(connection);
}

static bool say(int fd, const char *text, size_t length)
{
    return send(fd, text, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static bool connected(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, 0) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 &&
           error == 0;
}

static void dial(struct way_in_connection *connection, const struct vsock *vsock, int64_t now)
{
    connection->state = WAY_IN_DIALLING;
    connection->asked = false;
    connection->line_length = 0;
    connection->guest = vsock_dial(vsock, WAY_IN_VSOCK_PORT);
    if (connection->guest < 0)
        try_again(connection, now);
}

/* Says the secret: from here on the guest's agent answers. */
static void greet(struct way_in_connection *connection, const char *secret, int64_t now)
{
    char preface[PREFACE_WAY_IN_LENGTH];
    preface_write_way_in(preface, secret);
    connection->state = WAY_IN_GREETING;
    connection->line_length = 0;
    if (!say(connection->guest, preface, sizeof(preface)))
        try_again(connection, now);
    secret_wipe(preface, sizeof(preface));
}

/* The connection stands: hybrid vsock wants to hear which port. */
static void ask(struct way_in_connection *connection, const struct vsock *vsock, const char *secret,
                int64_t now)
{
    char text[32];
    if (!connected(connection->guest)) {
        try_again(connection, now);
        return;
    }
    connection->asked = true;
    if (vsock->kind != VSOCK_HYBRID) {
        greet(connection, secret, now);
        return;
    }
    int length = snprintf(text, sizeof(text), "CONNECT %d\n", WAY_IN_VSOCK_PORT);
    if (!say(connection->guest, text, (size_t)length))
        try_again(connection, now);
}

/* Reads an answer byte by byte, since behind it the server's bytes begin. 1 when it is whole, 0 when
 * more is to come, -1 at the end of the connection. */
static int read_line(struct way_in_connection *connection)
{
    while (connection->line_length < sizeof(connection->line) - 1) {
        char *at = connection->line + connection->line_length;
        ssize_t length = read(connection->guest, at, 1);
        if (length < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (length <= 0)
            return -1;
        connection->line_length++;
        if (*at == '\n') {
            at[1] = '\0';
            return 1;
        }
    }
    return -1;
}

static void answer(struct way_in_connection *connection, const char *secret, int64_t now)
{
    int result = read_line(connection);
    if (result == 0)
        return;
    if (connection->client_gone) { /* it was only this answer that was still awaited */
        way_in_connection_end(connection);
        return;
    }
    bool greeting = connection->state == WAY_IN_GREETING;
    bool right = result > 0 && (greeting ? strcmp(connection->line, PREFACE_WAY_IN_ANSWER) == 0
                                         : strncmp(connection->line, "OK", 2) == 0);
    if (!right) {
        try_again(connection, now);
    } else if (greeting) {
        connection->state = WAY_IN_JOINED;
        connection->last = now;
    } else {
        greet(connection, secret, now);
    }
}

/* Moves what can be moved from one side to the other. False when the writing side is broken. */
static bool move(struct way_in_direction *direction, int from, int to, bool readable, int64_t now,
                 int64_t *last)
{
    if (readable && !pending(direction) && !direction->ended) {
        ssize_t length = read(from, direction->bytes, sizeof(direction->bytes));
        if (length > 0) {
            direction->start = 0;
            direction->end = (unsigned)length;
            *last = now;
        } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
            direction->ended = true;
            *last = now;
        }
    }
    while (pending(direction)) {
        ssize_t length = send(to, direction->bytes + direction->start,
                              direction->end - direction->start, MSG_NOSIGNAL);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return errno == EAGAIN;
        direction->start += (unsigned)length;
        *last = now;
    }
    return true;
}

/* For a client that has left: nobody misses what the server still says, but a server that has to say it before it
 * reads on would never come to the client's last bytes. */
static void discard(struct way_in_direction *direction, int from, bool readable)
{
    direction->start = direction->end = 0;
    if (!readable || direction->ended)
        return;
    ssize_t length = read(from, direction->bytes, sizeof(direction->bytes));
    direction->ended = length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR);
}

static void join(struct way_in_connection *connection, short client, short guest, int64_t now)
{
    bool alive = true;
    /* a server that has closed takes no more, but its last bytes are still to be read */
    if (!connection->out.ended &&
        !move(&connection->in, connection->client, connection->guest,
              client & (POLLIN | POLLHUP | POLLERR), now, &connection->last)) {
        connection->in.ended = true;
        connection->in.start = connection->in.end;
    }
    if (connection->client_gone)
        discard(&connection->out, connection->guest, guest & (POLLIN | POLLHUP | POLLERR));
    else
        alive = move(&connection->out, connection->guest, connection->client,
                     guest & (POLLIN | POLLHUP | POLLERR), now, &connection->last);
    bool guest_done = connection->out.ended && !pending(&connection->out);
    bool client_done = connection->client_gone && connection->in.ended && !pending(&connection->in);
    bool idle = connection->in.ended && now - connection->last >= WAY_IN_IDLE_MS * MS;
    if (!alive || guest_done || client_done || idle)
        way_in_connection_end(connection);
}

static short revents_of(const struct pollfd *all, int place)
{
    return place < 0 ? 0 : all[place].revents;
}

/* vhost-device-vsock 0.3 dies when it has to answer "OK" to somebody who has left, and every other connection
 * of the sandbox with it: so its answer is waited for, even for a client that has left. */
static bool unanswered(const struct way_in_connection *connection, const struct vsock *vsock)
{
    return vsock->kind == VSOCK_HYBRID && connection->state == WAY_IN_DIALLING && connection->asked;
}

void way_in_connection_work(struct way_in_connection *connection, const struct vsock *vsock,
                            const char *secret, const struct pollfd *all, int64_t now)
{
    short client = revents_of(all, connection->client_poll);
    short guest = revents_of(all, connection->guest_poll);
    connection->client_poll = connection->guest_poll = -1;
    if (client & (POLLHUP | POLLERR | POLLNVAL))
        connection->client_gone = true;
    if (connection->state != WAY_IN_JOINED && connection->client_gone &&
        !unanswered(connection, vsock)) {
        way_in_connection_end(connection);
        return;
    }
    if (connection->state == WAY_IN_WAITING && now >= connection->next_try)
        dial(connection, vsock, now);
    else if (connection->state == WAY_IN_DIALLING && guest && !connection->asked)
        ask(connection, vsock, secret, now);
    else if (connection->state == WAY_IN_JOINED)
        join(connection, client, guest, now);
    else if (connection->state != WAY_IN_WAITING && guest)
        answer(connection, secret, now);
    else if (connection->state != WAY_IN_WAITING && now >= connection->give_up)
        way_in_connection_end(connection);
}
