/* The rules of a connection, as pure functions of its state: which events it waits for, when it
 * ends, and how long it may be half open. */
#include "agent/connection.h"

#include <assert.h>
#include <sys/epoll.h>

#include "common/net/tls_profile.h"
#include "common/os/cleanup.h"

const char *const connection_state_names[] = {
    [CONNECTION_FREE] = "free",         [CONNECTION_DEMANDING] = "demanding",
    [CONNECTION_DIALLING] = "dialling", [CONNECTION_SECURING] = "securing",
    [CONNECTION_JOINED] = "joined",     [CONNECTION_LINGERING] = "lingering",
    [CONNECTION_CLOSING] = "closing",
};
static_assert(ARRAY_LENGTH(connection_state_names) == CONNECTION_STATE_COUNT, "a name for each");

const char *const connection_verdict_names[] = {
    [VERDICT_KEEP] = "keep",
    [VERDICT_PASS_END_TO_CLIENT] = "pass-end-to-client",
    [VERDICT_PASS_END_TO_TARGET] = "pass-end-to-target",
    [VERDICT_CLOSE] = "close",
    [VERDICT_BREAK] = "break",
    [VERDICT_LINGER] = "linger",
    [VERDICT_APOLOGISE] = "apologise",
};
static_assert(ARRAY_LENGTH(connection_verdict_names) == VERDICT_COUNT, "a name for each");

const struct role_rules role_rules[] = {
    [RELAY_TO_BROKER] = {.carries_requests = true, .dial_window = 2000},
    [RELAY_TO_SERVER] = {.demands = true},
    [RELAY_TO_AGENT] = {.demands = true, .to_pair = true, .dial_window = 2000},
    [RELAY_TO_RELAY] = {.carries_requests = true, .to_pair = true, .dial_window = 2000},
};
static_assert(ARRAY_LENGTH(role_rules) == RELAY_ROLE_COUNT, "rules for each role");

/* With TLS only a whole record can be received, and a piece needs room for its head too. */
static bool has_room_from(const struct connection *connection, enum connection_side which)
{
    const struct flow *flow = &connection->flows[which];
    bool secure = which == SIDE_TARGET && connection->tls;
    if (which == SIDE_TARGET && connection->framed)
        return flow_has_room_for(flow, PIECE_HEAD + 1);
    return secure ? flow_has_room_for(flow, TLS_RECORD_MAX) : flow_has_room(flow);
}

static uint32_t interest_joined(const struct connection *connection, enum connection_side which)
{
    const struct side *side = &connection->sides[which];
    const struct side *other = &connection->sides[other_side(which)];
    bool may_close = which == SIDE_CLIENT && connection->framed && !side->gone;
    uint32_t interest = 0;
    if (!side->ended ? has_room_from(connection, which) || other->refuses : may_close)
        interest |= EPOLLIN;
    if ((connection->flows[other_side(which)].length > 0 || side->unsent) && !side->refuses)
        interest |= EPOLLOUT;
    if (!side->leaving && !side->ended)
        interest |= EPOLLRDHUP;
    if (side->ended && !side->gone)
        interest |= EPOLLHUP;
    return interest;
}

uint32_t connection_interest(const struct connection *connection, enum connection_side which)
{
    const struct side *side = &connection->sides[which];
    if (side->fd < 0)
        return 0;
    switch (connection->state) {
    case CONNECTION_FREE:
    case CONNECTION_CLOSING:
        return 0;
    case CONNECTION_DEMANDING:
        return EPOLLIN;
    case CONNECTION_DIALLING:
        if (which == SIDE_TARGET)
            return EPOLLOUT;
        return side->leaving ? 0 : EPOLLRDHUP;
    case CONNECTION_SECURING:
        if (which == SIDE_TARGET)
            return EPOLLIN | (side->unsent ? EPOLLOUT : 0);
        return side->leaving ? 0 : EPOLLRDHUP;
    case CONNECTION_JOINED:
        return interest_joined(connection, which);
    case CONNECTION_LINGERING:
        return EPOLLIN | (connection->flows[SIDE_TARGET].length > 0 ? EPOLLOUT : 0);
    case CONNECTION_STATE_COUNT:
        break;
    }
    return 0;
}

/* On a connection to the broker, the end of the client's sending means that the client left. The
 * connection is closed then, so that the model stops generating an answer that is not read. */
static enum connection_verdict judge_request(const struct connection *connection)
{
    const struct side *client = &connection->sides[SIDE_CLIENT];
    const struct side *broker = &connection->sides[SIDE_TARGET];
    if (client->ended || client->leaving)
        return VERDICT_CLOSE;
    if (!broker->ended || connection->flows[SIDE_TARGET].length > 0)
        return VERDICT_KEEP;
    if (connection->flows[SIDE_TARGET].received == 0)
        return VERDICT_APOLOGISE;
    return broker->broken ? VERDICT_BREAK : VERDICT_LINGER;
}

/* Judges the end of a target when the client's side is framed in pieces. After that end was passed
 * on, only the host closes the connection. */
static enum connection_verdict judge_end_before_pieces(const struct connection *connection)
{
    if (connection->sides[SIDE_CLIENT].told)
        return connection->sides[SIDE_TARGET].gone && !connection->told_closed ? VERDICT_LINGER
                                                                               : VERDICT_KEEP;
    return connection->sides[SIDE_TARGET].broken ? VERDICT_BREAK : VERDICT_PASS_END_TO_CLIENT;
}

static enum connection_verdict judge_end_of(const struct connection *connection,
                                            enum connection_side which)
{
    const struct side *side = &connection->sides[which];
    if (!side->ended || connection->flows[which].length > 0)
        return VERDICT_KEEP;
    if (connection->framed && which == SIDE_TARGET)
        return judge_end_before_pieces(connection);
    if (side->broken)
        return VERDICT_BREAK;
    if (side->gone) /* with half_close, the client may still be sending */
        return which == SIDE_TARGET && connection->half_close ? VERDICT_LINGER : VERDICT_CLOSE;
    if (connection->half_close && !connection->sides[other_side(which)].told)
        return which == SIDE_CLIENT ? VERDICT_PASS_END_TO_TARGET : VERDICT_PASS_END_TO_CLIENT;
    return VERDICT_KEEP;
}

static enum connection_verdict judge_both_ways(const struct connection *connection)
{
    enum connection_verdict verdict = judge_end_of(connection, SIDE_CLIENT);
    if (verdict == VERDICT_KEEP)
        verdict = judge_end_of(connection, SIDE_TARGET);
    if (verdict != VERDICT_KEEP)
        return verdict;
    bool delivered =
        connection->flows[SIDE_CLIENT].length == 0 && connection->flows[SIDE_TARGET].length == 0;
    bool ended = connection->sides[SIDE_CLIENT].ended && connection->sides[SIDE_TARGET].ended;
    return ended && delivered && !connection->framed ? VERDICT_CLOSE : VERDICT_KEEP;
}

enum connection_verdict connection_judge(const struct connection *connection)
{
    return role_rules[connection->role].carries_requests ? judge_request(connection)
                                                         : judge_both_ways(connection);
}

bool connection_is_cut(const struct connection *connection, enum connection_side which)
{
    const struct side *side = &connection->sides[which];
    return which == SIDE_TARGET && role_rules[connection->role].to_pair && side->gone &&
           !side->told && connection->flows[which].received > 0;
}

int64_t connection_linger_limit(const struct connection *connection)
{
    return connection->behind_agent ? HALF_OPEN_STALLED_MS : LINGER_MS;
}

/* Without half_close, the end of a server's sending is nearly always a complete close (TCP does not
 * show the difference), and its peer on the host learns of it only when the relay closes. So the
 * relay closes after a second in which the host sent nothing either; while the host still sends,
 * the connection stays. */
int64_t connection_end_limit(const struct connection *connection)
{
    const struct side *client = &connection->sides[SIDE_CLIENT];
    const struct side *target = &connection->sides[SIDE_TARGET];
    if (!client->ended && !client->leaving && !target->ended && !target->leaving)
        return NEVER;
    if (connection->framed && !client->gone)
        return NEVER;
    if (connection->flows[SIDE_CLIENT].length > 0 || connection->flows[SIDE_TARGET].length > 0)
        return HALF_OPEN_STALLED_MS;
    if (connection->half_close)
        return HALF_OPEN_PASSED_MS;
    return target->ended ? SERVER_ENDED_QUIET_MS : HALF_OPEN_QUIET_MS;
}

bool connection_has_all(const struct connection *connection, enum connection_side which)
{
    const struct side *other = &connection->sides[other_side(which)];
    return other->ended && !other->broken && connection->flows[other_side(which)].length == 0;
}

enum connection_verdict connection_judge_expired(const struct connection *connection)
{
    bool closes_for_end = !connection->half_close && connection_has_all(connection, SIDE_CLIENT) &&
                          connection->flows[SIDE_CLIENT].length == 0;
    return closes_for_end ? VERDICT_CLOSE : VERDICT_BREAK;
}
