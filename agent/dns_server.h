/* The sockets of the DNS stub: UDP, and TCP with a two-byte length before each message (RFC 1035
 * section 4.2.2).
 *
 * There are DNS_STREAMS_MAX slots for TCP connections. A connection is closed DNS_STREAM_MS after
 * its last question, or when all slots are in use, a new connection arrives and this one's last
 * question is the oldest. A message longer than DNS_STREAM_QUERY_MAX closes the connection: no
 * valid question is that long. Answers are sent without a buffer; when the socket does not take one
 * whole, because the client does not read, the connection is closed.
 */
#ifndef AGENT_DNS_SERVER_H
#define AGENT_DNS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/os/failure.h"
#include "common/wire/relay_config.h"

#define DNS_STREAMS_MAX 8
#define DNS_STREAM_QUERY_MAX 1232 /* the EDNS buffer size that resolvers use */
#define DNS_STREAM_MS 5000
#define DNS_QUERIES_PER_WAKE 32

struct dns_stream {
    int fd; /* -1: free */
    uint32_t armed;
    int64_t deadline;
    uint64_t used; /* orders connections by their last question */
    uint16_t length;
    uint8_t bytes[2 + DNS_STREAM_QUERY_MAX];
};

struct dns_server {
    int epoll;
    unsigned count;
    int fds[RELAY_DNS_MAX];
    bool is_stream[RELAY_DNS_MAX];
    struct dns_stream streams[DNS_STREAMS_MAX];
    uint64_t used;
    int64_t next_deadline; /* not later than the earliest deadline of a stream */
};

/* Watches the configured sockets in the epoll set. 0 or a negative errno with a reason. */
int dns_server_init(struct dns_server *server, int epoll, const struct relay_config *config,
                    struct failure *why);

/* Handles an event of a configured socket. */
void dns_server_event(struct dns_server *server, unsigned index, int64_t now);

/* Handles an event of a TCP connection. */
void dns_stream_event(struct dns_server *server, unsigned index, int64_t now);

/* Closes the TCP connections whose deadline has passed. */
void dns_server_expire(struct dns_server *server, int64_t now);

#endif
