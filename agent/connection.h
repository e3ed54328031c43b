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
 * Which events a connection waits for, whether it has to end and how long it may be half open
 * are pure functions of it (here). Handlers (connection_events.c, transfer.c, dial.c) move bytes
 * and only mark a connection for its end; one sweep per wake-up frees, so an event that was fetched
 * earlier is never handled for the next connection in the same slot.
 *
 * The two relays of a pair (WSL) are connected by Unix sockets, which have no reset. Between them a
 * complete close without an end of sending before it means a break: connection_is_cut.
 *
 * On vsock a peer cannot distinguish a reset from an end either. So the client of a `framed` way in
 * sends and receives pieces (common/wire/piece.h): flows[SIDE_TARGET] then holds pieces,
 * flows[SIDE_CLIENT] plain bytes. Such a client's end sets `ended`, its close `gone`, and a close
 * without an end `broken`.
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
#define DIAL_ATTEMPT_MS 1000 /* for one address; the kernel gives up vsock after 250 ms */
#define HANDSHAKE_MS 5000    /* of TLS: the broker waits as long */
#define DIAL_BACKOFF_MS 50   /* pause after all addresses failed, doubled each time */
#define DIAL_BACKOFF_MAX_MS 400
/* Without a byte, after one side's end that is not passed on to the other. */
#define HALF_OPEN_QUIET_MS 60000
/* The same when it is passed on: the other side knows of it and may be working. */
#define HALF_OPEN_PASSED_MS 300000
/* The same while bytes are pending for a side that reads nothing. */
#define HALF_OPEN_STALLED_MS 600000
#define SERVER_ENDED_QUIET_MS 1000 /* see connection_end_limit */

enum connection_state {
    CONNECTION_FREE,      /* on the free list; no descriptor, empty rings */
    CONNECTION_DEMANDING, /* way in: accepted, its secret is being read, 5 s; nothing is dialled */
    CONNECTION_DIALLING,  /* target.fd is connecting, or -1 in a pause between rounds; the client is
                           * not read, only watched for leaving */
    CONNECTION_SECURING, /* target.fd is connected, the TLS handshake runs, `tls` is set; the client
                          * as above. Left for JOINED once the peer has proved the pinned key, else
                          * for the next address */
    CONNECTION_JOINED,   /* bytes pass both ways */
    CONNECTION_LINGERING, /* the target is closed; flows[SIDE_TARGET] holds the last bytes for the
                           * client. What the client sends is read and dropped, because closing a
                           * socket with unread bytes sends a reset, which can destroy the answer */
    CONNECTION_CLOSING,   /* marked: no handler touches it, the sweep closes and frees it */
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
    bool to_pair;          /* the target is the other relay of a pair */
    bool carries_requests; /* the client's end of sending means that it left; canned answers */
    int32_t dial_window;   /* ms after the client's connection in which rounds of dialling are
                            * repeated; 0: one round */
};

extern const struct role_rules role_rules[RELAY_ROLE_COUNT];

struct side {
    int fd;         /* -1: none */
    uint32_t armed; /* what epoll watches for now; 0: the descriptor is not in the set */
    bool leaving;   /* the peer ended its sending; bytes may still wait to be read */
    bool ended;     /* its last byte was read */
    bool broken;    /* it ended by an error */
    bool refuses;   /* it takes no more bytes: bytes for it are dropped */
    bool gone;      /* ended and takes nothing: the peer closed completely */
    bool told;      /* the other side's end was passed on to it */
    bool unsent;    /* a TLS record waits for room in the socket */
};

struct connection {
    enum connection_state state;
    uint16_t index,
        next; /* own place in the table; link of the free list or of the list for the sweep */
    uint8_t forward;      /* row of the table of forwards */
    enum relay_role role; /* copies of that row's */
    bool half_close;
    bool framed;       /* the client speaks in pieces */
    bool told_closed;  /* framed: the client knows that the target takes nothing any more */
    bool behind_agent; /* the client is the other relay of the pair */
    bool reset;        /* the sweep resets each side that does not have the other's whole stream */
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
    int dial_error;       /* errno of this round's most telling failure */
    uint8_t demand_length;
    char demand[PREFACE_WAY_IN_LENGTH];
};

/* The events to watch a side for: EPOLLIN, EPOLLOUT, EPOLLRDHUP, or EPOLLHUP (which epoll reports
 * anyway) for a side that is only watched for its end. 0: remove the descriptor from the set, or a
 * hang-up that was handled would cause endless wake-ups. */
uint32_t connection_interest(const struct connection *connection, enum connection_side which);

enum connection_verdict {
    VERDICT_KEEP,
    VERDICT_PASS_END_TO_CLIENT, /* shut down our sending to that side */
    VERDICT_PASS_END_TO_TARGET,
    VERDICT_CLOSE,     /* all is delivered, or no peer is left to deliver to */
    VERDICT_BREAK,     /* the stream was cut, and the other side must see an error */
    VERDICT_LINGER,    /* the broker closed: let the client read the rest */
    VERDICT_APOLOGISE, /* the broker closed without sending a byte: send a canned answer */
    VERDICT_COUNT
};

extern const char *const connection_verdict_names[VERDICT_COUNT];

/* What must be done with a joined connection after bytes moved or a side ended. */
enum connection_verdict connection_judge(const struct connection *connection);

/* For how many milliseconds without a byte a joined connection stays open; NEVER while both sides
 * are open. A framed client counts as open until it closes: the host closes when its own client has
 * everything or has left. */
int64_t connection_end_limit(const struct connection *connection);

/* Whether this side has the other's whole stream, up to its end, so that it may be closed. */
bool connection_has_all(const struct connection *connection, enum connection_side which);

/* What is done at that limit: a break for each side that does not have the whole stream, or a close
 * where a server's end is not passed on in another way. */
enum connection_verdict connection_judge_expired(const struct connection *connection);

/* Whether an end that was just read, with `gone` and `told` set, is a break on the Unix socket
 * between two relays. After this relay's own sending has ended there, a complete close cannot be
 * distinguished from an end; and a close before the first byte only means that there is no peer. */
bool connection_is_cut(const struct connection *connection, enum connection_side which);

/* For how many milliseconds a client may read its last answer. The other relay closes by itself
 * when its own client, however slow, has read all; closing earlier would look like a break. */
int64_t connection_linger_limit(const struct connection *connection);

#endif
