/* Handlers of a connection's events. Each ends in a verdict of the rules or in a mark. */
#include "agent/connection_events.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "agent/canned.h"
#include "agent/connection_state.h"
#include "agent/dial.h"
#include "agent/transfer.h"

static void adopt(struct relay *relay, struct connection *connection, unsigned forward, int fd)
{
    const struct relay_forward *row = &relay->config.forwards[forward];
    connection->forward = (uint8_t)forward;
    connection->role = row->role;
    connection->half_close = row->half_close;
    connection->framed = row->framed;
    connection->told_closed = false;
    connection->pieces = (struct piece_reader){0};
    connection->behind_agent = relay->listeners[forward].is_unix;
    connection->reset = false;
    connection->sides[SIDE_CLIENT] = (struct side){.fd = fd};
    connection->sides[SIDE_TARGET] = (struct side){.fd = -1};
    connection->serial = ++relay->serial;
    connection->demand_length = 0;
}

static void linger(struct relay *relay, struct connection *connection)
{
    connection_drop_target(connection);
    connection_enter(relay, connection, CONNECTION_LINGERING,
                     relay->now + connection_linger_limit(connection));
    if (connection->flows[SIDE_TARGET].length == 0)
        shutdown(connection->sides[SIDE_CLIENT].fd, SHUT_WR);
}

/* Ends with the canned 502; `reason` has no character that JSON escapes. */
static void apologise(struct relay *relay, struct connection *connection, const char *reason)
{
    char answer[CANNED_MAX];
    size_t length = canned_unreachable(answer, reason);
    flow_discard(&connection->flows[SIDE_TARGET]);
    flow_put(&connection->flows[SIDE_TARGET], answer, length);
    transfer_to(connection, SIDE_CLIENT, relay->now);
    linger(relay, connection);
}

void connection_refuse(struct relay *relay, struct connection *connection, unsigned forward, int fd)
{
    adopt(relay, connection, forward, fd);
    char answer[CANNED_MAX];
    size_t length = canned_full(answer);
    /* fits into the send buffer of a new socket; if not, the client sees only a close */
    send(fd, answer, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    linger(relay, connection);
    connection_rearm(relay, connection);
}

/* Tells a side, for which nothing is pending, that the other side's stream has ended. */
static void pass_end_to(struct relay *relay, struct connection *connection,
                        enum connection_side which)
{
    uint8_t end[PIECE_HEAD];
    connection->sides[which].told = true;
    if (which == SIDE_TARGET || !connection->framed) {
        shutdown(connection->sides[which].fd, SHUT_WR);
        return;
    }
    piece_write_head(end, 0);
    flow_put(&connection->flows[SIDE_TARGET], end, sizeof(end));
    transfer_to(connection, SIDE_CLIENT, relay->now);
}

/* Applies the rules until they ask for nothing more. */
static void settle(struct relay *relay, struct connection *connection)
{
    while (connection->state == CONNECTION_JOINED) {
        switch (connection_judge(connection)) {
        case VERDICT_KEEP: {
            int64_t limit = connection_end_limit(connection);
            relay_set_deadline(relay, connection,
                               limit == NEVER ? NEVER : connection->moved + limit);
            return;
        }
        case VERDICT_PASS_END_TO_CLIENT:
            pass_end_to(relay, connection, SIDE_CLIENT);
            break;
        case VERDICT_PASS_END_TO_TARGET:
            pass_end_to(relay, connection, SIDE_TARGET);
            break;
        case VERDICT_CLOSE:
            connection_close(relay, connection);
            return;
        case VERDICT_BREAK:
            connection_break(relay, connection);
            return;
        case VERDICT_LINGER:
            if (!connection->framed) {
                linger(relay, connection);
                return;
            }
            connection->told_closed = true;
            pass_end_to(relay, connection, SIDE_CLIENT);
            break;
        case VERDICT_APOLOGISE:
            /* the next client starts with another address */
            relay->preferred[connection->forward]++;
            apologise(relay, connection, "the broker closed the connection without an answer");
            return;
        case VERDICT_COUNT:
            return;
        }
    }
}

/* The target accepted: queues what is to be sent first, and joins the two sides. */
static void join(struct relay *relay, struct connection *connection)
{
    union {
        char broker[PREFACE_BROKER_LENGTH], way_in[PREFACE_WAY_IN_LENGTH];
    } preface = {{0}};
    const char *secret = relay->config.forwards[connection->forward].secret;
    switch (connection->role) {
    case RELAY_TO_BROKER:
        if (secret[0]) {
            preface_write_broker(preface.broker, secret);
            flow_put(&connection->flows[SIDE_CLIENT], preface.broker, sizeof(preface.broker));
        }
        break;
    case RELAY_TO_SERVER:
        flow_put(&connection->flows[SIDE_TARGET], PREFACE_WAY_IN_ANSWER,
                 strlen(PREFACE_WAY_IN_ANSWER));
        break;
    case RELAY_TO_AGENT:
        preface_write_way_in(preface.way_in, secret);
        flow_put(&connection->flows[SIDE_CLIENT], preface.way_in, sizeof(preface.way_in));
        break;
    case RELAY_TO_RELAY:
    case RELAY_ROLE_COUNT:
        break;
    }
    secret_wipe(&preface, sizeof(preface));
    connection_enter(relay, connection, CONNECTION_JOINED, NEVER);
    connection->moved = relay->now;
    if (connection->role == RELAY_TO_BROKER)
        transfer_from(connection, SIDE_CLIENT, relay->now); /* goes along with the preface */
    transfer_to(connection, SIDE_CLIENT, relay->now);
    transfer_to(connection, SIDE_TARGET, relay->now);
    settle(relay, connection);
}

static void dialled(struct relay *relay, struct connection *connection, enum dial_outcome outcome)
{
    switch (outcome) {
    case DIAL_PENDING:
        break;
    case DIAL_REACHED:
        join(relay, connection);
        break;
    case DIAL_FAILED:
        if (role_rules[connection->role].carries_requests)
            apologise(relay, connection, dial_reason(connection));
        else
            connection_close(relay, connection);
        break;
    }
}

static void dial(struct relay *relay, struct connection *connection)
{
    dialled(relay, connection, dial_begin(relay, connection));
}

void connection_open(struct relay *relay, struct connection *connection, unsigned forward, int fd)
{
    adopt(relay, connection, forward, fd);
    if (role_rules[connection->role].demands)
        connection_enter(relay, connection, CONNECTION_DEMANDING, relay->now + PREFACE_TIMEOUT_MS);
    else
        dial(relay, connection);
    connection_rearm(relay, connection);
}

void connection_redial(struct relay *relay, struct connection *connection)
{
    dial(relay, connection);
    connection_rearm(relay, connection);
}

/* Reads no further than the end of the secret: the bytes behind it are for the server. */
static void demand_secret(struct relay *relay, struct connection *connection)
{
    char *have = connection->demand;
    ssize_t received = recv(connection->sides[SIDE_CLIENT].fd, have + connection->demand_length,
                            sizeof(connection->demand) - connection->demand_length, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (received <= 0) {
        connection_close(relay, connection);
        return;
    }
    connection->demand_length += (uint8_t)received;
    enum preface_result result = preface_check_way_in(
        have, connection->demand_length, relay->config.forwards[connection->forward].secret);
    if (result == PREFACE_MORE)
        return;
    secret_wipe(have, sizeof(connection->demand));
    if (result == PREFACE_RIGHT)
        dial(relay, connection);
    else
        connection_close(relay, connection);
}

static void event_dialling(struct relay *relay, struct connection *connection,
                           enum connection_side which, uint32_t events)
{
    if (which == SIDE_TARGET) {
        dialled(relay, connection, dial_event(relay, connection, events));
        return;
    }
    /* The client ended its sending or closed. A client of the broker does not wait for an answer
     * then. */
    connection->sides[SIDE_CLIENT].leaving = true;
    if (role_rules[connection->role].carries_requests)
        connection_close(relay, connection);
}

static void event_joined(struct relay *relay, struct connection *connection,
                         enum connection_side which, uint32_t events)
{
    struct side *side = &connection->sides[which];
    uint32_t wanted = side->armed;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        side->leaving = true;
    if (side->ended && (events & (EPOLLHUP | EPOLLERR)))
        side->gone = true;
    bool cancelled =
        role_rules[connection->role].carries_requests && which == SIDE_CLIENT && side->leaving;
    if (!cancelled) {
        if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) && (wanted & EPOLLOUT))
            transfer_to(connection, which, relay->now);
        if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && (wanted & EPOLLIN))
            transfer_from(connection, which, relay->now);
    }
    settle(relay, connection);
}

static void event_lingering(struct relay *relay, struct connection *connection, uint32_t events)
{
    static char scrap[16 * 1024];
    int fd = connection->sides[SIDE_CLIENT].fd;
    if (events & EPOLLOUT && connection->flows[SIDE_TARGET].length > 0) {
        transfer_to(connection, SIDE_CLIENT, relay->now);
        if (connection->flows[SIDE_TARGET].length == 0)
            shutdown(fd, SHUT_WR);
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        ssize_t received = recv(fd, scrap, sizeof(scrap), MSG_DONTWAIT);
        if (received == 0 || (received < 0 && errno != EAGAIN && errno != EINTR))
            connection_close(relay, connection);
    }
}

void connection_event(struct relay *relay, struct connection *connection,
                      enum connection_side which, uint32_t events)
{
    switch (connection->state) {
    case CONNECTION_FREE:
    case CONNECTION_CLOSING:
        return;
    case CONNECTION_DEMANDING:
        demand_secret(relay, connection);
        break;
    case CONNECTION_DIALLING:
    case CONNECTION_SECURING:
        event_dialling(relay, connection, which, events);
        break;
    case CONNECTION_JOINED:
        event_joined(relay, connection, which, events);
        break;
    case CONNECTION_LINGERING:
        if (which == SIDE_CLIENT)
            event_lingering(relay, connection, events);
        break;
    case CONNECTION_STATE_COUNT:
        return;
    }
    connection_rearm(relay, connection);
}

static void end_at_limit(struct relay *relay, struct connection *connection, bool clean)
{
    if (clean)
        connection_close(relay, connection);
    else
        connection_break(relay, connection);
}

void connection_expired(struct relay *relay, struct connection *connection)
{
    switch (connection->state) {
    case CONNECTION_FREE:
    case CONNECTION_CLOSING:
    case CONNECTION_STATE_COUNT:
        return;
    case CONNECTION_DIALLING:
    case CONNECTION_SECURING:
        dialled(relay, connection, dial_expired(relay, connection));
        break;
    case CONNECTION_DEMANDING:
        connection_close(relay, connection);
        break;
    case CONNECTION_JOINED: /* half open for too long */
        end_at_limit(relay, connection, connection_judge_expired(connection) == VERDICT_CLOSE);
        break;
    case CONNECTION_LINGERING:
        end_at_limit(relay, connection, connection->flows[SIDE_TARGET].length == 0);
        break;
    }
    connection_rearm(relay, connection);
}
