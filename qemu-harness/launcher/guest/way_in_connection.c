/* The steps of one connection. The events to wait for follow from the state; a step that would
 * block is tried again at the next wake-up. */
#include "qemu-harness/launcher/guest/way_in_connection_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/preface.h"
#include "common/wire/protocol.h"

/* A TCP client reads a reset when its socket is closed, also by the kernel after a crash of this
 * program. This is turned off once the client has got all bytes; it then reads an end of file. */
static void set_reset_at_close(int client, bool on)
{
    const struct linger at_once = {.l_onoff = on};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

void way_in_connection_begin(struct way_in_connection *connection, int client, bool over_tcp,
                             int64_t now)
{
    connection->state = WAY_IN_WAITING;
    connection->client = client;
    set_reset_at_close(client, true);
    connection->guest = -1;
    connection->client_poll = connection->guest_poll = -1;
    connection->over_tcp = over_tcp;
    connection->begun = connection->client_gone = connection->client_told = false;
    connection->give_up = now + WAY_IN_TRY_MS * MILLISECONDS;
    connection->next_try = now;
    connection->last = now;
    connection->line_length = 0;
    connection->pieces = (struct piece_reader){0};
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

bool way_in_connection_half_open(const struct way_in_connection *connection)
{
    return connection->in.ended || connection->client_told || connection->client_gone;
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
    /* also without events to wait for: poll(2) then reports that the client has closed */
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

/* The time at which a half-open connection is given up. Over a Unix socket a client that has closed
 * is recognised, so one that only waits may wait for ever; over TCP it is not. */
static int64_t half_open_until(const struct way_in_connection *connection)
{
    bool stalled = pending(&connection->in) || pending(&connection->out);
    if (connection->client_told && connection->pieces.closed)
        return connection->give_up;
    bool waits = !connection->over_tcp && !connection->client_gone;
    if (!way_in_connection_half_open(connection) || waits)
        return NEVER;
    return connection->last + (stalled ? WAY_IN_STALLED_MS : WAY_IN_IDLE_MS) * MILLISECONDS;
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
        return half_open_until(connection);
    case WAY_IN_FREE:
    case WAY_IN_STATE_COUNT:
        break;
    }
    return NEVER;
}

/* The guest did not answer: tries again a little later, until `give_up`. */
static void try_again(struct way_in_connection *connection, int64_t now)
{
    fd_close(&connection->guest);
    connection->out.ended = false;
    connection->state = WAY_IN_WAITING;
    connection->next_try = now + WAY_IN_RETRY_MS * MILLISECONDS;
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

static void dial(struct way_in_connection *connection, const struct guest_link *link, int64_t now)
{
    connection->state = WAY_IN_DIALLING;
    connection->asked = false;
    connection->line_length = 0;
    connection->guest = endpoint_dial(&link->way_in);
    if (connection->guest < 0)
        try_again(connection, now);
}

/* Sends the secret, which the relay answers. */
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

/* The connection is made. On hybrid vsock the port is sent next. */
static void ask(struct way_in_connection *connection, const struct guest_link *link,
                const char *secret, int64_t now)
{
    char text[32];
    if (!connected(connection->guest)) {
        try_again(connection, now);
        return;
    }
    connection->asked = true;
    if (!link->way_in_hybrid) {
        greet(connection, secret, now);
        return;
    }
    int length = snprintf(text, sizeof(text), "CONNECT %d\n", WAY_IN_VSOCK_PORT);
    if (!say(connection->guest, text, (size_t)length))
        try_again(connection, now);
}

/* Reads an answer byte by byte, since the server's bytes follow it. 1 when it is complete, 0 when
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
    if (connection->client_gone) { /* only this answer was still awaited: see unanswered */
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

/* The number of bytes; 0: there are none yet; negative: the end (errno 0), or an error (errno). */
static ssize_t read_some(int fd, uint8_t *bytes, size_t size)
{
    errno = 0;
    ssize_t length = read(fd, bytes, size);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return length > 0 ? length : -1;
}

/* Reads from the client and makes one piece of it, or the end. A Unix client that closes while
 * bytes for it are unread causes an error after its last byte, which counts as the end. Over TCP
 * an error is a loss of bytes, and no end is passed on. */
static void read_client(struct way_in_connection *connection, int64_t now)
{
    struct way_in_direction *in = &connection->in;
    ssize_t length =
        read_some(connection->client, in->bytes + PIECE_HEAD, WAY_IN_BUFFER - PIECE_HEAD);
    if (length == 0)
        return;
    connection->last = now;
    connection->begun = true;
    in->ended = length < 0;
    if (in->ended && errno != 0 && connection->over_tcp)
        return;
    if (in->ended)
        length = 0;
    piece_write_head(in->bytes, (size_t)length);
    in->start = 0;
    in->end = PIECE_HEAD + (unsigned)length;
}

static void read_guest(struct way_in_connection *connection, int64_t now)
{
    struct way_in_direction *out = &connection->out;
    ssize_t length = read_some(connection->guest, out->bytes, WAY_IN_BUFFER);
    if (length == 0)
        return;
    connection->last = now;
    connection->begun |= length > 0;
    out->ended = length < 0;
    out->start = 0;
    out->end = out->ended ? 0 : (unsigned)length;
}

/* The number of bytes sent; 0: no room; negative: the other side accepts nothing any more. */
static ssize_t send_some(int fd, const uint8_t *bytes, size_t length)
{
    ssize_t sent;
    do {
        sent = send(fd, bytes, length, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 && errno == EAGAIN ? 0 : sent;
}

/* False when the guest accepts nothing any more. */
static bool write_guest(struct way_in_connection *connection, int64_t now)
{
    struct way_in_direction *in = &connection->in;
    while (pending(in)) {
        ssize_t sent = send_some(connection->guest, in->bytes + in->start, in->end - in->start);
        if (sent <= 0)
            return sent == 0;
        in->start += (unsigned)sent;
        connection->last = now;
    }
    return true;
}

/* False when the client accepts nothing any more. */
static bool write_client(struct way_in_connection *connection, int64_t now)
{
    struct way_in_direction *out = &connection->out;
    while (pending(out)) {
        const uint8_t *bytes = out->bytes + out->start;
        unsigned length = out->end - out->start;
        unsigned head = (unsigned)piece_read_head(&connection->pieces, bytes, length);
        out->start += head;
        length -= head;
        if (length > connection->pieces.left)
            length = connection->pieces.left;
        if (length == 0 || connection->pieces.ended) { /* an unfinished length, or the end */
            out->start = out->end;
            return true;
        }
        ssize_t sent = send_some(connection->client, bytes + head, length);
        if (sent <= 0)
            return sent == 0;
        out->start += (unsigned)sent;
        connection->pieces.left -= (uint16_t)sent;
        connection->last = now;
    }
    return true;
}

static void pass_end_to_client(struct way_in_connection *connection)
{
    if (!connection->pieces.ended || pending(&connection->out) || connection->client_told)
        return;
    shutdown(connection->client, SHUT_WR);
    set_reset_at_close(connection->client, false);
    connection->client_told = true;
    connection->give_up = NEVER;
}

/* Ends the connection when both directions are done, or when it was half open for too long. */
static void settle(struct way_in_connection *connection, int64_t now)
{
    bool client_done = connection->in.ended && !pending(&connection->in);
    bool guest_done = connection->out.ended && !pending(&connection->out);
    bool has_all = connection->client_told || connection->client_gone;
    if (guest_done && !connection->begun && !connection->client_gone)
        try_again(connection, now); /* the server was ending or starting */
    else if (guest_done || (client_done && has_all) || now >= half_open_until(connection))
        way_in_connection_end(connection);
}

static void join(struct way_in_connection *connection, bool client_ready, bool guest_ready,
                 int64_t now)
{
    struct way_in_direction *in = &connection->in, *out = &connection->out;
    /* a guest that has closed accepts no more, but its last bytes are still read */
    if (!out->ended) {
        if (client_ready && !in->ended && !pending(in))
            read_client(connection, now);
        if (!write_guest(connection, now)) {
            in->ended = true;
            in->start = in->end;
        }
    }
    /* For a client that has closed, the server's bytes are read and discarded: a server that must
     * send before it reads on would otherwise never read the client's last bytes. */
    if (connection->client_gone)
        out->start = out->end;
    if (guest_ready && !out->ended && !pending(out))
        read_guest(connection, now);
    if (!connection->client_gone && !write_client(connection, now))
        connection->client_gone = true;
    pass_end_to_client(connection);
    if (connection->client_told && connection->pieces.closed && connection->give_up == NEVER)
        connection->give_up = now + WAY_IN_CLOSED_MS * MILLISECONDS;
    settle(connection, now);
}

static short revents_of(const struct pollfd *all, int place)
{
    return place < 0 ? 0 : all[place].revents;
}

/* vhost-device-vsock 0.3 ends, with every connection of the sandbox, when it answers "OK" to a
 * socket that was closed. So its answer is awaited even when the client has closed. */
static bool unanswered(const struct way_in_connection *connection, const struct guest_link *link)
{
    return link->way_in_hybrid && connection->state == WAY_IN_DIALLING && connection->asked;
}

void way_in_connection_work(struct way_in_connection *connection, const struct guest_link *link,
                            const char *secret, const struct pollfd *all, int64_t now)
{
    short client = revents_of(all, connection->client_poll);
    short guest = revents_of(all, connection->guest_poll);
    connection->client_poll = connection->guest_poll = -1;
    if (client & (POLLHUP | POLLERR | POLLNVAL))
        connection->client_gone = true;
    if (connection->state != WAY_IN_JOINED && connection->client_gone &&
        !unanswered(connection, link)) {
        way_in_connection_end(connection);
        return;
    }
    if (connection->state == WAY_IN_WAITING && now >= connection->next_try)
        dial(connection, link, now);
    else if (connection->state == WAY_IN_DIALLING && guest && !connection->asked)
        ask(connection, link, secret, now);
    else if (connection->state == WAY_IN_JOINED)
        join(connection, client & (POLLIN | POLLHUP | POLLERR),
             guest & (POLLIN | POLLHUP | POLLERR), now);
    else if (connection->state != WAY_IN_WAITING && guest)
        answer(connection, secret, now);
    else if (connection->state != WAY_IN_WAITING && now >= connection->give_up)
        way_in_connection_end(connection);
}
