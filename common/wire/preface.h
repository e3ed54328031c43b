/* The first bytes of a connection (doc/design.md, "Relay and wire").
 *
 *     guest to broker:   CODEV/1 TOKEN\r\n        then plain HTTP/1.1
 *     host's way in:     CODEV-IN 1 SECRET\n      answered OK\n once the server accepted
 *
 * TOKEN and SECRET are 64 lower-case hex digits. Pure functions: no I/O.
 */
#ifndef COMMON_WIRE_PREFACE_H
#define COMMON_WIRE_PREFACE_H

#include <stddef.h>

#include "common/os/secret.h"

#define PREFACE_BROKER_LENGTH (8 + SECRET_HEX_LENGTH + 2)  /* "CODEV/1 " token "\r\n" */
#define PREFACE_WAY_IN_LENGTH (11 + SECRET_HEX_LENGTH + 1) /* "CODEV-IN 1 " secret "\n" */
#define PREFACE_WAY_IN_ANSWER "OK\n"
#define PREFACE_TIMEOUT_MS 5000

enum preface_result {
    PREFACE_MORE,      /* a correct beginning so far */
    PREFACE_MALFORMED, /* these bytes cannot begin a preface */
    PREFACE_WRONG,     /* well-formed, but not this secret */
    PREFACE_RIGHT,
};

/* Both write exactly the length above, without NUL. */
void preface_write_broker(char out[PREFACE_BROKER_LENGTH], const char *token);
void preface_write_way_in(char out[PREFACE_WAY_IN_LENGTH], const char *secret);

/* Checks the first `length` bytes of a connection. The secret is compared in constant time, once
 * all of it is there. */
enum preface_result preface_check_broker(const char *bytes, size_t length, const char *token);
enum preface_result preface_check_way_in(const char *bytes, size_t length, const char *secret);

#endif
