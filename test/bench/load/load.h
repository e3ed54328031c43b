/* The client and the server of the measured program, in one program, so that every program under
 * test has the same peers.
 *
 * Everything uses a small part of HTTP/1.1 that byte relays pass on and HTTP proxies understand:
 *
 *     GET .../N        answered with N bytes
 *     POST .../N       the same, after the body was read (Content-Length)
 *     GET .../events   an endless event stream; each event holds the clock at which it was sent
 *
 * A first line "CODEV/1 ..." is skipped by the server, and sent by the client on request, as the
 * relay does. One thread, one epoll set, fixed tables; errors are counted or end the program.
 */
#ifndef TEST_BENCH_LOAD_LOAD_H
#define TEST_BENCH_LOAD_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/net/endpoint.h"

#define LOAD_CONNECTIONS_MAX 12000
#define LOAD_HEAD_MAX 4096
#define LOAD_PIECE (128 * 1024) /* at most this much is read or written at once */

struct load_options {
    struct endpoint peer; /* to connect to, or to listen on */
    struct endpoint copy; /* copy: where to */
    const char *path;     /* of the request */
    const char *accept;   /* what the request accepts */
    const char *preface;  /* the token; NULL: none */
    const char *certificate, *key;
    unsigned connections;
    unsigned milliseconds; /* to measure; 0: `requests` decides */
    unsigned requests;
    unsigned event_rate; /* per second, over all streams */
    uint64_t post;       /* bytes of a request's body; 0: GET */
    bool fresh;          /* a new connection for every request */
};

/* Ends the program with status 1 and what was being done. */
void load_die(const char *what) __attribute__((noreturn));

/* The subcommands. They return the exit status. */
int load_serve(struct load_options *options);
int load_requests(struct load_options *options); /* closed loop; prints figures as JSON */
int load_idle(struct load_options *options); /* holds connections open until standard input ends */
int load_streams(struct load_options *options); /* holds event streams, and measures their delay */
int load_copy(struct load_options *options); /* the bare copy loop that relays are compared with */

/* The request's bytes without its body, and how long they are. */
size_t load_request_head(const struct load_options *options, char out[LOAD_HEAD_MAX]);

/* A connection in progress from the endpoint, or the program ends. */
int load_connect(const struct endpoint *peer);

/* Sorts the samples and gives that of the given thousandth; 0 without samples. */
uint64_t load_quantile(uint64_t *samples, size_t count, unsigned per_mille);

/* The head of an answer: true when it is whole, with its length and that of its body (UINT64_MAX:
 * until the end, or chunked). The program ends when it is no answer 200. */
bool load_parse_answer(const char *bytes, size_t length, size_t *head, uint64_t *body);

#endif
