/* The relay's clock, deadlines and slots. */
#include "agent/relay.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

/* Aligned to pages; the kernel allocates a page when a connection first writes to it. */
static uint8_t buffers[BUFFERED_MAX][2][FLOW_SIZE] __attribute__((aligned(4096)));

/* The coarse clock has the time of the kernel's last tick and is read from memory that the kernel
 * shares, with every clock source. The precise clock is a system call when the source is a device,
 * as in a guest whose TSC is unstable. A deadline may come one tick early, 10 ms at most, which is
 * harmless here. */
void relay_read_clock(struct relay *relay)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    relay->now = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
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

static uint16_t *free_list_of(struct relay *relay, unsigned index)
{
    if (index < RELAY_CONNECTIONS_MAX)
        return &relay->free_slots;
    return index < BUFFERED_MAX ? &relay->free_reserved : &relay->free_overflow;
}

void relay_slot_free(struct relay *relay, struct connection *connection)
{
    uint16_t *head = free_list_of(relay, connection->index);
    connection->state = CONNECTION_FREE;
    relay_set_deadline(relay, connection, NEVER);
    connection->next = *head;
    *head = connection->index;
}

/* The free lists are stacks: the slot freed last is used first, because its pages are in cache. */
struct connection *relay_slot_take(struct relay *relay, uint16_t *list)
{
    if (*list == NO_SLOT)
        return NULL;
    struct connection *connection = &relay->connections[*list];
    *list = connection->next;
    return connection;
}

int relay_init(struct relay *relay, const struct relay_config *config, struct failure *why)
{
    relay->config = *config;
    relay->next_deadline = NEVER;
    relay_read_clock(relay);
    relay->free_slots = relay->free_reserved = relay->free_overflow = relay->marked = NO_SLOT;
    for (unsigned i = SLOTS_MAX; i-- > 0;) {
        struct connection *connection = &relay->connections[i];
        connection->index = (uint16_t)i;
        connection->deadline = NEVER;
        for (unsigned which = 0; which < 2; which++) {
            connection->sides[which].fd = -1;
            flow_init(&connection->flows[which], i < BUFFERED_MAX ? buffers[i][which] : NULL);
        }
        relay_slot_free(relay, connection);
    }
    relay->epoll = epoll_create1(EPOLL_CLOEXEC);
    return relay->epoll < 0 ? failure_errno(why, errno, "epoll_create1") : 0;
}
