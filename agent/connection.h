/* One connection of the relay: two sockets, a ring of bytes each way, and a state.
 *
 *     client  the side that was accepted        target  the side that was dialled
 *     flows[SIDE_CLIENT]  bytes from the client on their way to the target
 *     flows[SIDE_TARGET]  bytes from the target on their way to the client
 *
 *     FREE -> DEMANDING -> DIALLING -> SECURING -> JOINED -> CLOSING -> FREE
 *                             |           |           |         ^
 *                             +-----------+--------> LINGERING -+
 *
 * What a connection wants of its sockets, whether it has to end and how long it may be half open
 * are pure functions of it (here). Handlers (connection_events.c, transfer.c, dial.c) move bytes
 * and only mark a connection for its end; one sweep per wake-up frees, so an event that was fetched
 * earlier is never handled for the next connection in the same slot.
 *
 * Two agents of a pair (WSL) speak to each other over Unix sockets, where no reset exists. There a
 * whole close that was not announced by an end of sending is the break: connection_is_cut.
 *
 * Vsock has no reset that a peer could tell from an end either. So the client of a `framed` way in
 * speaks in pieces (common/wire/piece.h): flows[SIDE_TARGET] then holds pieces, flows[SIDE_CLIENT]
 * plain bytes. Such a client's end is `ended`, its close `gone`, and a close without an end is
 * `broken`.
 */
#ifndef AGENT_CONNECTION_H
#define AGENT_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/flow.h"
#include "common/os/io.h"
#include "common/wire/piece.h"
#include "common/wire/preface.h"
#include "common/wire/relay_config.h"

#define LINGER_MS 2000       /* for a client to read its last answer while it still sends */
#define DIAL_ATTEMPT_MS 1000 /* one address; vsock has 250 ms of its own, in the kernel */
#define HANDSHAKE_MS 5000    /* of TLS, as long as a broker waits for it */
#define DIAL_BACKOFF_MS 50   /* pause after all addresses failed, doubled each time */
#define DIAL_BACKOFF_MAX_MS 400
#define HALF_OPEN_QUIET_MS                                                                         \
    60000 /* without a byte after one side's end, where it is not passed on */
#define HALF_OPEN_PASSED_MS                                                                        \
    300000 /* the same where it is: the other side knows and may be at work */
#define HALF_OPEN_STALLED_MS 600000 /* bytes are pending for a side that reads nothing */
#define SERVER_ENDED_QUIET_MS 1000  /* see connection_end_limit */

enum connection_state {
    CONNECTION_FREE,      /* on the free list; no descriptor, empty rings */
    CONNECTION_DEMANDING, /* way in: accepted, its secret is being read, 5 s; nothing is dialled */
    CONNECTION_DIALLING,  /* target.fd is connecting, or -1 in a pause between rounds; the client is
                           * not read, only watched for leaving */
    CONNECTION_SECURING, /* target.fd is connected and TLS shakes hands, `tls` is set; the client as
                           * above. Left for JOINED once the pinned key is proved, else for the next
                           * address */
    CONNECTION_JOINED,   /* bytes pass both ways */
    CONNECTION_LINGERING, /* the target is closed; flows[SIDE_TARGET] holds the last bytes for the
                           * client, whose own are read and thrown away, since closing a socket with
                           * unread bytes sends a reset that destroys the answer on its way */
    CONNECTION_CLOSING,   /* marked: nothing may be touched, the sweep closes and frees */
    CONNECTION_STATE_COUNT
};

extern const char *const connection_state_names[CONNECTION_STATE_COUNT];

enum connection_side { SIDE_CLIENT, SIDE_TARGET };

static inline enum connection_side other_side(enum connection_side which)
{
    return which == SIDE_CLIENT ? SIDE_TARGET : SIDE_CLIENT;
}

/* What the roles have in common and where they differ. */
struct role_rules {
    bool demands;          /* the way in: a client shows the secret before anything is dialled */
    bool to_pair;          /* the target is the other agent of a pair */
    bool carries_requests; /* the client's end of sending means that it left; canned answers */
    int32_t dial_window;   /* for how many ms after a client came its target is dialled again and
                            * again; 0: one round */
};

extern const struct role_rules role_rules[RELAY_ROLE_COUNT];

struct side {
    int fd;         /* -1: none */
    uint32_t armed; /* what epoll watches for now; 0: the descriptor is not in the set */
    bool leaving;   /* the peer ended its sending; bytes may still wait to be read */
    bool ended;     /* its last byte was read */
    bool broken;    /* it ended by an error */
    bool refuses;   /* it takes no more bytes: what is for it is thrown away */
    bool gone;      /* ended and takes nothing: the peer closed whole */
    bool told;      /* the other side's end was passed on to it */
    bool unsent;    /* a record of TLS waits for room in the socket */
};

struct connection {
    enum connection_state state;
    uint16_t index, next; /* own place in the table; link of the free list or of the sweep's */
    uint8_t forward;      /* row of the table of forwards */
    enum relay_role role; /* copies of that row's */
    bool half_close;
    bool framed;       /* the client speaks in pieces */
    bool told_closed;  /* framed: the client knows that the target takes nothing any more */
    bool behind_agent; /* the client is the other agent of the pair */
    bool reset;        /* the sweep breaks a side off that does not have the other's whole stream */
    struct side sides[2];
    struct flow flows[2];
    struct tls_link *tls;       /* of the target; NULL for plain */
    struct piece_reader pieces; /* from the client, if framed */
    uint64_t serial;            /* orders connections by age */
    int64_t deadline;           /* what happens then depends on the state; NEVER: nothing */
    int64_t moved;              /* JOINED: when the last byte moved */
    int64_t dial_until;         /* DIALLING: when to give up */
    uint32_t dial_left;         /* addresses not yet tried in this round */
    uint32_t dial_index;
    int32_t dial_backoff; /* ms */
    int dial_error;       /* errno that says most of this round's failures */
    uint8_t demand_length;
    char demand[PREFACE_WAY_IN_LENGTH];
};

/* What to watch a side for: EPOLLIN, EPOLLOUT, EPOLLRDHUP, or EPOLLHUP (which epoll reports anyway)
 * for a side that is only watched for its end. 0: take the descriptor out of the set, or a hang-up
 * that was dealt with would wake us for ever. */
uint32_t connection_interest(const struct connection *connection, enum connection_side which);

enum connection_verdict {
    VERDICT_KEEP,
    VERDICT_PASS_END_TO_CLIENT, /* shut down our sending to that side */
    VERDICT_PASS_END_TO_TARGET,
    VERDICT_CLOSE,     /* all is delivered, or nobody is left to deliver to */
    VERDICT_BREAK,     /* the end was no clean one, and the other side must see that */
    VERDICT_LINGER,    /* the broker closed: let the client read the rest */
    VERDICT_APOLOGISE, /* the broker went without a byte: a canned answer instead of silence */
    VERDICT_COUNT
};

extern const char *const connection_verdict_names[VERDICT_COUNT];

/* What has to happen to a joined connection after bytes moved or a side ended. */
enum connection_verdict connection_judge(const struct connection *connection);

/* For how many milliseconds without a byte a joined connection may go on; NEVER while both sides
 * live. A framed client lives until it has closed: the host knows when its own client has
 * everything or is gone, and closes then. */
int64_t connection_end_limit(const struct connection *connection);

/* Whether this side has the other's whole stream, up to its end: what it may be closed after. */
bool connection_has_all(const struct connection *connection, enum connection_side which);

/* What happens at that limit: a break for each side that does not have all; a close where a
 * server's end is passed on in no other way. */
enum connection_verdict connection_judge_expired(const struct connection *connection);

/* Whether an end that was just read, with `gone` and `told` set, is a break on the Unix socket
 * between two agents. When our own sending has ended there, a whole close cannot be told apart
 * from it; and one before the first byte only says that nobody is there. */
bool connection_is_cut(const struct connection *connection, enum connection_side which);

/* For how many milliseconds a client may read its last answer. The other agent closes by itself
 * when its own client, however slow, has read all; to close earlier would look like a break. */
int64_t connection_linger_limit(const struct connection *connection);

#endif
