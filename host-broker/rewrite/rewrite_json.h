/* Which strings of a JSON document are links: by their place in it, from a table of patterns.
 *
 * A pushdown automaton over the grammar of RFC 8259, as far as places depend on it: it knows containers,
 * keys, strings and commas, but not whether a number or a word is one. Of the way to the present value only
 * the set of patterns is kept that it agrees with so far, for the few levels that patterns have. A container
 * in which none can be met (most are such) is only searched for its end: strings and brackets.
 *
 * States: VALUE expects a value, FIRST_ITEM one or the end of an array, FIRST_KEY a key or the end of an
 * object, KEY a key, COLON, AFTER a comma or the end of a container (at depth 0: white space only), SCALAR
 * is in a number or word, STRING and ESCAPE (behind a backslash) in a string. In OVER the document has
 * proved malformed, or deeper than REWRITE_JSON_DEPTH_MAX, and everything passes.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_JSON_H
#define HOST_BROKER_REWRITE_REWRITE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-broker/base/slice.h"

#define REWRITE_JSON_DEPTH_MAX 512
#define REWRITE_JSON_STEPS_MAX 5 /* of a pattern */
#define REWRITE_JSON_KEY_MAX                                                                       \
    64 /* as written: the longest key of a pattern has 8 letters, \uXXXX each */

struct rewrite;
struct rewrite_output;

enum rewrite_json_state {
    REWRITE_JSON_VALUE,
    REWRITE_JSON_FIRST_ITEM,
    REWRITE_JSON_FIRST_KEY,
    REWRITE_JSON_KEY,
    REWRITE_JSON_COLON,
    REWRITE_JSON_AFTER,
    REWRITE_JSON_SCALAR,
    REWRITE_JSON_STRING,
    REWRITE_JSON_ESCAPE,
    REWRITE_JSON_OVER,
};

struct rewrite_json {
    enum rewrite_json_state state;
    bool is_key, is_link; /* of the string */
    bool cargo;           /* `dl` was seen to be a string at the top */
    unsigned depth;
    unsigned dead; /* depth of the container in which no pattern can be met any more, 0 for none */
    uint8_t objects[REWRITE_JSON_DEPTH_MAX / 8]; /* one bit for each container: it is an object */
    /* patterns (bits) whose steps lead to the container at this depth, and to the next value */
    uint32_t alive[REWRITE_JSON_STEPS_MAX + 1], value;
    char key[REWRITE_JSON_KEY_MAX];
    size_t key_length; /* REWRITE_JSON_KEY_MAX + 1: too long to be one of ours */
};

void rewrite_json_start(struct rewrite *rewrite);
size_t rewrite_json_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out);

/* True at the end of a whole document that had `dl`. */
bool rewrite_json_is_cargo(const struct rewrite *rewrite);

/* For rewrite_json.c: rewrite_json_place.c. */

/* Sets the patterns that agree with the next value's place: under `key`, or NULL for an item of an array. */
void rewrite_json_find_place(struct rewrite_json *json, const struct slice *key);

bool rewrite_json_place_is_link(const struct rewrite_json *json);
bool rewrite_json_place_is_dl(const struct rewrite_json *json);

/* True when keys of the present object matter. */
bool rewrite_json_is_watched(const struct rewrite_json *json);
void rewrite_json_keep_key(struct rewrite_json *json, const char *bytes, size_t length);

/* Behind the last byte of a key: finds the place of its value. */
void rewrite_json_end_key(struct rewrite_json *json);

#endif
