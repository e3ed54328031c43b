/* The event loop: dispatch, accepting, new records, timers, the sweep. See relay.h. */
#include "agent/relay.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/config_check.h"
#include "agent/dial.h"
#include "agent/tls.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"

#define EVENTS_PER_WAKE 128
#define CONFIG_ENDED 1

/* Page-aligned and never touched before a connection uses it: the kernel gives memory by the
 * page. */
static uint8_t buffers[BUFFERED_MAX][2][FLOW_SIZE] __attribute__((aligned(4096)));

/* The coarse clock, as of the kernel's last tick: memory that the kernel shares, whatever the
 * clock source. The precise one is a system call where that source is a device (a guest that
 * finds its TSC unsteady reads the ACPI timer's port). A deadline may pass a tick early, 10 ms
 * at most, which none of ours minds. */
static int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void relay_schedule(struct relay *relay, int64_t deadline)
{
    if (deadline < relay->next_deadline)
        relay->next_deadline = deadline;
}

void relay_set_deadline(struct relay *relay, struct connection *connection, int64_t deadline)
{
    relay->timed += deadline != NEVER;
    relay->timed -= connection->deadline != NEVER;
    connection->deadline = deadline;
    relay_schedule(relay, deadline);
}

void relay_watch(struct relay *relay, int fd, uint32_t *armed, uint32_t events, uint64_t reference)
{
    struct epoll_event event = {.events = events, .data.u64 = reference};
    int operation = events == 0 ? EPOLL_CTL_DEL : *armed == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(relay->epoll, operation, fd, &event) == 0)
        *armed = events;
}

static uint16_t *free_list_of(struct relay *relay, unsigned index)
{
    if (index < RELAY_CONNECTIONS_MAX)
        return &relay->free_slots;
    return index < BUFFERED_MAX ? &relay->free_reserved : &relay->free_overflow;
}

static void slot_free(struct relay *relay, struct connection *connection)
{
    uint16_t *head = free_list_of(relay, connection->index);
    connection->state = CONNECTION_FREE;
    relay_set_deadline(relay, connection, NEVER);
    connection->next = *head;
    *head = connection->index;
}

/* The free lists are stacks: the slot that was freed last, with warm pages, is used first. */
static struct connection *slot_take(struct relay *relay, uint16_t *head)
{
    if (*head == NO_SLOT)
        return NULL;
    struct connection *connection = &relay->connections[*head];
    *head = connection->next;
    return connection;
}

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
        connection = slot_take(relay, &relay->free_reserved);
    if (!connection)
        connection = slot_take(relay, &relay->free_slots);
    if (connection)
        connection_open(relay, connection, forward, fd);
    else if (rules->carries_requests && (connection = slot_take(relay, &relay->free_overflow)))
        connection_refuse(relay, connection, forward, fd);
    else
        close(fd);
}

/* With no slot left to say so, a client of the broker's forward waits in the backlog. */
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
        /* Anything else concerns the one connection that was being accepted (accept(2)). */
    }
}

/* Whoever is on the way to a target goes to where the new record says: an old broker, though it
 * proved the old key, must not be told the new token. */
static void redial(struct relay *relay)
{
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        struct connection *connection = &relay->connections[i];
        if (connection->state != CONNECTION_DIALLING && connection->state != CONNECTION_SECURING)
            continue;
        dial_begin(relay, connection);
        connection_rearm(relay, connection);
    }
}

/* 0, CONFIG_ENDED, or a negative errno. The pipe's other end is codev-init alone. */
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

/* Runs what is due and finds the next deadline anew: only a wake-up at a deadline looks at every
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
        struct linger linger = {.l_onoff = 1,
                                .l_linger = 0}; /* TCP: a reset instead of a clean end */
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
        slot_free(relay, connection);
    }
    for (unsigned i = 0; i < relay->config.forward_count; i++) {
        if (!relay->listeners[i].armed && relay->listeners[i].resume == 0 && !must_wait(relay, i))
            listener_arm(relay, i, true);
    }
}

/* While no connection has a deadline, which is so as long as bytes just pass, the bound that the
 * last one left behind is nothing to wake up for: a wait without a time-out spares the kernel a
 * timer and two readings of the clock. */
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
    return left < 0 ? 0 : left > 60000 ? 60000 : (int)left + 1; /* + 1: never a moment too early */
}

int relay_run(struct relay *relay, struct failure *why)
{
    struct epoll_event events[EVENTS_PER_WAKE];
    for (;;) {
        int count = epoll_wait(relay->epoll, events, EVENTS_PER_WAKE, wait_timeout(relay));
        if (count < 0 && errno != EINTR)
            return failure_errno(why, errno, "epoll_wait");
        relay->now = clock_ms();
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
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
                   sizeof(on)); /* inherited by what is accepted */
        relay_watch(relay, fd, &armed, EPOLLIN, REFERENCE(REFERENCE_LISTENER, i));
        if (armed == 0)
            return failure_errno(why, errno, "listener %d of forward %u", fd, i);
        relay->listeners[i].armed = true;
        relay->listeners[i].is_unix = is_unix(fd);
    }
    return 0;
}

int relay_init(struct relay *relay, const struct relay_config *config, int config_fd,
               struct failure *why)
{
    relay->config = *config;
    relay->config_fd = config_fd;
    relay->next_deadline = NEVER;
    relay->now = clock_ms();
    relay->free_slots = relay->free_reserved = relay->free_overflow = relay->marked = NO_SLOT;
    for (unsigned i = SLOTS_MAX; i-- > 0;) {
        struct connection *connection = &relay->connections[i];
        connection->index = (uint16_t)i;
        connection->deadline = NEVER;
        for (unsigned which = 0; which < 2; which++) {
            connection->sides[which].fd = -1;
            flow_init(&connection->flows[which], i < BUFFERED_MAX ? buffers[i][which] : NULL);
        }
        slot_free(relay, connection);
    }
    relay->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (relay->epoll < 0)
        return failure_errno(why, errno, "epoll_create1");
    uint32_t armed = 0;
    int result = io_set_nonblocking(config_fd);
    if (result == 0)
        relay_watch(relay, config_fd, &armed, EPOLLIN, REFERENCE(REFERENCE_CONFIG, 0));
    if (armed == 0)
        return failure_errno(why, result < 0 ? -result : errno, "watch the configuration pipe");
    result = watch_listeners(relay, why);
    return result < 0 ? result : dns_server_init(&relay->dns, relay, config, why);
}
