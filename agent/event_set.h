/* Descriptors in an epoll set, each with a typed reference to what it belongs to. */
#ifndef AGENT_EVENT_SET_H
#define AGENT_EVENT_SET_H

#include <stdint.h>

/* What an event belongs to: epoll's data is REFERENCE(kind, index). A side's index is 2 * slot +
 * side. */
enum reference_kind {
    REFERENCE_CONFIG,
    REFERENCE_LISTENER,
    REFERENCE_SIDE,
    REFERENCE_DNS_SOCKET,
    REFERENCE_DNS_STREAM,
    REFERENCE_KIND_COUNT
};

#define REFERENCE(kind, index) ((uint64_t)(kind) << 32 | (uint32_t)(index))

/* Adds, changes or (events 0) removes a descriptor. *armed is what is set now, 0 when the
 * descriptor is not in the set. */
void event_set_watch(int epoll, int fd, uint32_t *armed, uint32_t events, uint64_t reference);

#endif
