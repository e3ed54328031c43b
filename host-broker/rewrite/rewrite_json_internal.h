/* Finds the links of a JSON document by their place in it, from a table of patterns.
 *
 * A pushdown automaton over the grammar of RFC 8259 as far as places depend on it: it follows
 * containers, keys, strings and commas, but does not check numbers and words. Of the path to the
 * current value only the set of patterns that match so far is kept, for the few levels that
 * patterns have. In a container where no pattern can match any more (most are such) only strings
 * and brackets are read, up to its end.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_JSON_INTERNAL_H
#define HOST_BROKER_REWRITE_REWRITE_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-broker/base/slice.h"
#include "host-broker/rewrite/rewrite_format.h"
#include "host-broker/rewrite/rewrite_stream_internal.h"

#define REWRITE_JSON_DEPTH_MAX 512
#define REWRITE_JSON_STEPS_MAX 5 /* of a pattern */
/* Bytes of a key as written: the longest key of a pattern has 8 letters, each perhaps as \uXXXX. */
#define REWRITE_JSON_KEY_MAX 64

enum rewrite_json_state {
    REWRITE_JSON_VALUE,      /* expects a value */
    REWRITE_JSON_FIRST_ITEM, /* expects a value or the end of the array */
    REWRITE_JSON_FIRST_KEY,  /* expects a key or the end of the object */
    REWRITE_JSON_KEY,        /* expects a key */
    REWRITE_JSON_COLON,      /* expects the colon after a key */
    REWRITE_JSON_AFTER,  /* expects a comma or the container's end; at depth 0 only white space */
    REWRITE_JSON_SCALAR, /* in a number or word */
    REWRITE_JSON_STRING,
    REWRITE_JSON_ESCAPE, /* in a string, after a backslash */
    REWRITE_JSON_OVER,   /* malformed or deeper than REWRITE_JSON_DEPTH_MAX: all bytes pass */
};

struct rewrite_json {
    enum rewrite_json_state state;
    bool is_key, is_link; /* what the current string is */
    bool cargo;           /* a string `dl` was at the top level */
    unsigned depth;
    unsigned dead; /* depth of the container in which no pattern can match any more; 0: none */
    uint8_t objects[REWRITE_JSON_DEPTH_MAX / 8]; /* one bit for each container: it is an object */
    /* Sets of patterns (bits): those that match the container at this depth, and the next value. */
    uint32_t alive[REWRITE_JSON_STEPS_MAX + 1], value;
    char key[REWRITE_JSON_KEY_MAX];
    size_t key_length; /* REWRITE_JSON_KEY_MAX + 1: longer than any key of a pattern */
};

void rewrite_json_start(struct rewrite_json *json, enum rewrite_format format);

/* Takes bytes while the output has REWRITE_STEP_ROOM. Returns how many. */
size_t rewrite_json_take(struct rewrite_json *json, struct rewrite_stream *stream, struct slice in,
                         struct rewrite_output *out);

/* True at the end of a complete document that has `dl`. */
bool rewrite_json_is_cargo(const struct rewrite_json *json);

#endif
