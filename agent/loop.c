/* The event loop: dispatch, accepting, new records, timers, the sweep. */
#include "agent/loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/config_check.h"
#include "agent/connection_events.h"
#include "agent/connection_state.h"
#include "agent/event_set.h"
#include "agent/tls.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"

#define EVENTS_PER_WAKE 128
#define CONFIG_ENDED 1

static void listener_arm(struct relay *relay, unsigned index, bool on)
{
    struct listener *listener = &relay->listeners[index];
    struct epoll_event event = {.events = on ? EPOLLIN : 0,
                                .data.u64 = REFERENCE(REFERENCE_LISTENER, index)};
    if (epoll_ctl(relay->epoll, EPOLL_CTL_MOD, relay->config.forwards[index].listen_fd, &event) ==
        0)
        listener->armed = on;
}

static void drop_oldest_demanding(struct relay *relay)
{
    struct connection *oldest = NULL;
    for (unsigned i = 0; i < BUFFERED_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (connection->state == CONNECTION_DEMANDING &&
            (!oldest || connection->serial < oldest->serial))
            oldest = connection;
    }
    if (oldest)
        connection_close(relay, oldest);
}

static void client_accepted(struct relay *relay, unsigned forward, int fd)
{
    struct connection *connection = NULL;
    const struct role_rules *rules = &role_rules[relay->config.forwards[forward].role];
    if (rules->demands && relay->demanding >= DEMANDING_MAX)
        drop_oldest_demanding(relay);
    if (rules->demands)
        connection = relay_slot_take(relay, &relay->free_reserved);
    if (!connection)
        connection = relay_slot_take(relay, &relay->free_slots);
    if (connection)
        connection_open(relay, connection, forward, fd);
    else if (rules->carries_requests &&
             (connection = relay_slot_take(relay, &relay->free_overflow)))
        connection_refuse(relay, connection, forward, fd);
    else
        close(fd);
}

/* A client of the broker's forward waits in the backlog while no slot is left for its 503. */
static bool must_wait(const struct relay *relay, unsigned forward)
{
    return role_rules[relay->config.forwards[forward].role].carries_requests &&
           relay->free_slots == NO_SLOT && relay->free_overflow == NO_SLOT;
}

static void listener_event(struct relay *relay, unsigned index)
{
    for (unsigned accepts = 0; accepts < ACCEPTS_PER_WAKE; accepts++) {
        if (must_wait(relay, index)) {
            listener_arm(relay, index, false);
            return;
        }
        int fd = accept4(relay->config.forwards[index].listen_fd, NULL, NULL,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            client_accepted(relay, index, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            listener_arm(relay, index, false);
            relay->listeners[index].resume = relay->now + ACCEPT_PAUSE_MS;
            relay_schedule(relay, relay->listeners[index].resume);
            return;
        }
        if (errno == EAGAIN)
            return;
        /* other errors concern only the connection that was being accepted (accept(2)) */
    }
}

/* Connections that are still dialling start again with the addresses of the new record: the old
 * broker, though it proved the old key, must not receive the new token. */
static void redial(struct relay *relay)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (connection->state == CONNECTION_DIALLING || connection->state == CONNECTION_SECURING)
            connection_redial(relay, connection);
    }
}

/* 0, CONFIG_ENDED, or a negative errno. Only codev-init has the pipe's other end. */
static int config_event(struct relay *relay, struct failure *why)
{
    ssize_t got = read(relay->config_fd, (char *)&relay->incoming + relay->incoming_length,
                       sizeof(relay->incoming) - relay->incoming_length);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR
                   ? 0
                   : failure_errno(why, errno, "read the configuration pipe");
    if (got == 0)
        return CONFIG_ENDED;
    relay->incoming_length += (size_t)got;
    if (relay->incoming_length < sizeof(relay->incoming))
        return 0;
    relay->incoming_length = 0;
    int result = config_replace(&relay->config, &relay->incoming, why);
    secret_wipe(&relay->incoming, sizeof(relay->incoming));
    memset(relay->preferred, 0, sizeof(relay->preferred));
    if (result < 0)
        return failure_prefix(why, result, "new configuration");
    redial(relay);
    return 0;
}

static int dispatch(struct relay *relay, const struct epoll_event *event, struct failure *why)
{
    unsigned index = (uint32_t)event->data.u64;
    switch ((enum reference_kind)(event->data.u64 >> 32)) {
    case REFERENCE_CONFIG:
        return config_event(relay, why);
    case REFERENCE_LISTENER:
        listener_event(relay, index);
        break;
    case REFERENCE_SIDE:
        connection_event(relay, &relay->connections[index / 2], index % 2, event->events);
        break;
    case REFERENCE_DNS_SOCKET:
        dns_server_event(&relay->dns, index, relay->now);
        break;
    case REFERENCE_DNS_STREAM:
        dns_stream_event(&relay->dns, index, relay->now);
        break;
    case REFERENCE_KIND_COUNT:
        break;
    }
    return 0;
}

/* Runs what is due and computes the next deadline. Only a wake-up at a deadline visits every
 * slot. */
static void run_timers(struct relay *relay)
{
    relay_schedule(relay, relay->dns.next_deadline);
    if (relay->now < relay->next_deadline)
        return;
    relay->next_deadline = NEVER;
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (connection->deadline <= relay->now)
            connection_expired(relay, connection);
        relay_schedule(relay, connection->deadline);
    }
    for (unsigned i = 0; i < relay->config.forward_count; i++) {
        if (relay->listeners[i].resume <= relay->now)
            relay->listeners[i].resume = 0;
        else
            relay_schedule(relay, relay->listeners[i].resume);
    }
    dns_server_expire(&relay->dns, relay->now);
    relay_schedule(relay, relay->dns.next_deadline);
}

static void side_close(struct side *side, bool reset)
{
    if (side->fd >= 0 && reset) {
        /* TCP: a reset instead of an end */
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    }
    fd_close(&side->fd);
    side->armed = 0;
}

static void sweep(struct relay *relay)
{
    while (relay->marked != NO_SLOT) {
        struct connection *connection = &relay->connections[relay->marked];
        relay->marked = connection->next;
        tls_finish(connection);
        for (unsigned which = 0; which < 2; which++)
            side_close(&connection->sides[which],
                       connection->reset && !connection_has_all(connection, which));
        for (unsigned which = 0; which < 2; which++)
            flow_reset(&connection->flows[which]);
        relay_slot_free(relay, connection);
    }
    for (unsigned i = 0; i < relay->config.forward_count; i++) {
        if (!relay->listeners[i].armed && relay->listeners[i].resume == 0 && !must_wait(relay, i))
            listener_arm(relay, i, true);
    }
}

/* While no connection has a deadline, as when bytes flow both ways, the lower bound that the last
 * deadline left is not worth a wake-up: a wait without a time-out saves the kernel a timer and two
 * readings of the clock. */
static int64_t next_wake(const struct relay *relay)
{
    if (relay->timed > 0)
        return relay->next_deadline;
    int64_t next = relay->dns.next_deadline;
    for (unsigned i = 0; i < relay->config.forward_count; i++)
        if (relay->listeners[i].resume != 0 && relay->listeners[i].resume < next)
            next = relay->listeners[i].resume;
    return next;
}

static int wait_timeout(const struct relay *relay)
{
    int64_t next = next_wake(relay);
    if (next == NEVER)
        return -1;
    int64_t left = next - relay->now;
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left + 1; /* + 1: not too early */
}

int loop_run(struct relay *relay, struct failure *why)
{
    struct epoll_event events[EVENTS_PER_WAKE];
    for (;;) {
        int count = epoll_wait(relay->epoll, events, EVENTS_PER_WAKE, wait_timeout(relay));
        if (count < 0 && errno != EINTR)
            return failure_errno(why, errno, "epoll_wait");
        relay_read_clock(relay);
        for (int i = 0; i < count; i++) {
            int result = dispatch(relay, &events[i], why);
            if (result != 0)
                return result < 0 ? result : 0;
        }
        run_timers(relay);
        sweep(relay);
    }
}

static bool is_unix(int fd)
{
    int domain = 0;
    socklen_t length = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

static int watch_listeners(struct relay *relay, struct failure *why)
{
    for (unsigned i = 0; i < relay->config.forward_count; i++) {
        int fd = relay->config.forwards[i].listen_fd;
        int on = 1;
        uint32_t armed = 0;
        /* accepted sockets inherit it */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        event_set_watch(relay->epoll, fd, &armed, EPOLLIN, REFERENCE(REFERENCE_LISTENER, i));
        if (armed == 0)
            return failure_errno(why, errno, "listener %d of forward %u", fd, i);
        relay->listeners[i].armed = true;
        relay->listeners[i].is_unix = is_unix(fd);
    }
    return 0;
}

int loop_init(struct relay *relay, const struct relay_config *config, int config_fd,
              struct failure *why)
{
    uint32_t armed = 0;
    int result = relay_init(relay, config, why);
    if (result < 0)
        return result;
    relay->config_fd = config_fd;
    result = io_set_nonblocking(config_fd);
    if (result == 0)
        event_set_watch(relay->epoll, config_fd, &armed, EPOLLIN, REFERENCE(REFERENCE_CONFIG, 0));
    if (armed == 0)
        return failure_errno(why, result < 0 ? -result : errno, "watch the configuration pipe");
    result = watch_listeners(relay, why);
    return result < 0 ? result : dns_server_init(&relay->dns, relay->epoll, config, why);
}
