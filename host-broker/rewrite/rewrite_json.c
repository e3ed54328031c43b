/* Links in JSON documents: patterns of places, structure, strings. */
#include "host-broker/rewrite/rewrite_json_internal.h"

#include <assert.h>

#include "common/os/cleanup.h"

/* --- places --- */

struct step {
    enum { STEP_KEY = 1, STEP_ANY_KEY, STEP_ANY_ITEM } kind;
    struct slice key;
};

#define KEY(name)                                                                                  \
    {                                                                                              \
        .kind = STEP_KEY, .key = SLICE_LITERAL(name)                                               \
    }
#define ANY_KEY                                                                                    \
    {                                                                                              \
        .kind = STEP_ANY_KEY                                                                       \
    }
#define ANY_ITEM                                                                                   \
    {                                                                                              \
        .kind = STEP_ANY_ITEM                                                                      \
    }

enum { PATTERN_CARGO_DL = 0 }; /* a config.json with it is cargo's */

/* The places of download links, as the formats define them. */
static const struct pattern {
    enum rewrite_format format;
    unsigned count;
    struct step steps[REWRITE_JSON_STEPS_MAX];
} patterns[] = {
    [PATTERN_CARGO_DL] = {REWRITE_CARGO, 1, {KEY("dl")}},
    {REWRITE_CARGO, 1, {KEY("api")}},
    {REWRITE_NPM, 4, {KEY("versions"), ANY_KEY, KEY("dist"), KEY("tarball")}}, /* a package */
    {REWRITE_NPM, 2, {KEY("dist"), KEY("tarball")}}, /* one version of it */
    {REWRITE_PYPI_JSON, 3, {KEY("files"), ANY_ITEM, KEY("url")}},
    {REWRITE_GIT_LFS, 5, {KEY("objects"), ANY_ITEM, KEY("actions"), ANY_KEY, KEY("href")}},
};

static_assert(ARRAY_LENGTH(patterns) <= 32, "a bit of a uint32_t for each pattern");

void rewrite_json_start(struct rewrite_json *json, enum rewrite_format format)
{
    *json = (struct rewrite_json){.state = REWRITE_JSON_VALUE};
    for (size_t i = 0; i < ARRAY_LENGTH(patterns); i++)
        if (patterns[i].format == format)
            json->value |= 1u << i;
}

bool rewrite_json_is_cargo(const struct rewrite_json *json)
{
    return json->cargo && json->depth == 0 && json->state == REWRITE_JSON_AFTER;
}

static bool step_matches(const struct step *step, const struct slice *key)
{
    if (!key)
        return step->kind == STEP_ANY_ITEM;
    return step->kind == STEP_ANY_KEY || (step->kind == STEP_KEY && slice_equal(step->key, *key));
}

/* Sets the patterns that match the next value: the one of `key`, or an item of an array (NULL). */
static void find_place(struct rewrite_json *json, const struct slice *key)
{
    json->value = 0;
    if (json->depth > REWRITE_JSON_STEPS_MAX)
        return;
    uint32_t alive = json->alive[json->depth];
    for (size_t i = 0; alive != 0; i++, alive >>= 1)
        if ((alive & 1) != 0 && json->depth <= patterns[i].count &&
            step_matches(&patterns[i].steps[json->depth - 1], key))
            json->value |= 1u << i;
}

static bool place_is_link(const struct rewrite_json *json)
{
    for (size_t i = 0; i < ARRAY_LENGTH(patterns); i++)
        if ((json->value >> i & 1) != 0 && patterns[i].count == json->depth)
            return true;
    return false;
}

/* True when some pattern can still match in the current container, so that its keys matter. */
static bool is_watched(const struct rewrite_json *json)
{
    return json->depth <= REWRITE_JSON_STEPS_MAX && json->alive[json->depth] != 0;
}

static void keep_key(struct rewrite_json *json, const char *bytes, size_t length)
{
    if (length > REWRITE_JSON_KEY_MAX || json->key_length > REWRITE_JSON_KEY_MAX - length) {
        json->key_length = REWRITE_JSON_KEY_MAX + 1;
        return;
    }
    memcpy(json->key + json->key_length, bytes, length);
    json->key_length += length;
}

/* The key with its escapes decoded. A key that is too long or malformed equals none of a pattern
 * (it becomes ""), but still matches STEP_ANY_KEY. */
static struct slice read_key(const struct rewrite_json *json, char key[REWRITE_JSON_KEY_MAX])
{
    size_t length = 0;
    struct slice rest = {json->key, json->key_length};
    if (rest.length > REWRITE_JSON_KEY_MAX)
        return (struct slice){0};
    if (rest.length == 0 || !memchr(rest.bytes, '\\', rest.length))
        return rest;
    while (rest.length > 0) {
        char bytes[REWRITE_CHARACTER_MAX];
        size_t count, taken = rewrite_json_notation.read(rest, bytes, &count);
        if (taken == 0)
            return (struct slice){0};
        memcpy(key + length, bytes, count); /* never longer than its escape */
        length += count;
        rest.bytes += taken;
        rest.length -= taken;
    }
    return (struct slice){key, length};
}

/* The key has ended: finds the place of its value. */
static void end_key(struct rewrite_json *json)
{
    char bytes[REWRITE_JSON_KEY_MAX];
    json->state = REWRITE_JSON_COLON;
    json->value = 0;
    if (!is_watched(json))
        return;
    struct slice key = read_key(json, bytes);
    find_place(json, &key);
}

/* --- structure --- */

static bool in_object(const struct rewrite_json *json)
{
    unsigned level = json->depth - 1;
    return (json->objects[level / 8] >> level % 8 & 1) != 0;
}

static bool open_container(struct rewrite_json *json, bool object)
{
    if (json->depth == REWRITE_JSON_DEPTH_MAX)
        return false;
    unsigned level = json->depth++;
    uint8_t bit = (uint8_t)(1u << level % 8);
    json->objects[level / 8] =
        (uint8_t)(object ? json->objects[level / 8] | bit : json->objects[level / 8] & ~bit);
    if (json->depth <= REWRITE_JSON_STEPS_MAX)
        json->alive[json->depth] = json->value;
    json->state = object ? REWRITE_JSON_FIRST_KEY : REWRITE_JSON_FIRST_ITEM;
    if (json->value == 0 && json->dead == 0)
        json->dead = json->depth;
    if (!object)
        find_place(json, NULL);
    return true;
}

static bool close_container(struct rewrite_json *json, bool object)
{
    if (json->depth == 0 || in_object(json) != object)
        return false;
    json->depth--;
    json->state = REWRITE_JSON_AFTER;
    if (json->depth < json->dead)
        json->dead = 0;
    return true;
}

static bool is_scalar_byte(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-' ||
           byte == '+' || byte == '.' || byte == 'E';
}

static bool is_white(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static bool begin_value(struct rewrite_json *json, char byte)
{
    if (byte == '{' || byte == '[')
        return open_container(json, byte == '{');
    if (byte == '"') {
        json->is_key = false;
        json->is_link = json->value != 0 && place_is_link(json);
        json->state = REWRITE_JSON_STRING;
        return true;
    }
    json->state = REWRITE_JSON_SCALAR;
    return is_scalar_byte(byte);
}

static bool begin_key(struct rewrite_json *json, char byte)
{
    json->is_key = true;
    json->is_link = false;
    json->key_length = 0;
    json->state = REWRITE_JSON_STRING;
    return byte == '"';
}

/* A comma or the container's end. */
static bool end_value(struct rewrite_json *json, char byte)
{
    if (byte == '}' || byte == ']')
        return close_container(json, byte == '}');
    if (byte != ',' || json->depth == 0)
        return false;
    bool object = in_object(json);
    json->state = object ? REWRITE_JSON_KEY : REWRITE_JSON_VALUE;
    if (!object)
        find_place(json, NULL);
    return true;
}

/* Takes one byte outside of strings. False when the document is malformed. */
static bool take_byte(struct rewrite_json *json, char byte)
{
    if (json->state == REWRITE_JSON_SCALAR) {
        if (is_scalar_byte(byte))
            return true;
        json->state = REWRITE_JSON_AFTER;
    }
    if (is_white(byte))
        return true;
    switch (json->state) {
    case REWRITE_JSON_FIRST_ITEM:
        if (byte == ']')
            return close_container(json, false);
        /* fallthrough */
    case REWRITE_JSON_VALUE:
        return begin_value(json, byte);
    case REWRITE_JSON_FIRST_KEY:
        if (byte == '}')
            return close_container(json, true);
        /* fallthrough */
    case REWRITE_JSON_KEY:
        return begin_key(json, byte);
    case REWRITE_JSON_COLON:
        json->state = REWRITE_JSON_VALUE;
        return byte == ':';
    case REWRITE_JSON_AFTER:
        return end_value(json, byte);
    case REWRITE_JSON_SCALAR:
    case REWRITE_JSON_STRING:
    case REWRITE_JSON_ESCAPE:
    case REWRITE_JSON_OVER:
        break;
    }
    return false;
}

/* --- strings --- */

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "find_special reads little-endian words");

#define EACH(byte) (0x0101010101010101u * (byte))

/* Finds quotes, backslashes and control characters among the eight bytes of a word, as their
 * highest bits. The lowest bit set is exact; higher ones may be false. */
static uint64_t find_special(uint64_t word)
{
    uint64_t quote = word ^ EACH('"'), backslash = word ^ EACH('\\');
    return (((quote - EACH(1)) & ~quote) | ((backslash - EACH(1)) & ~backslash) |
            ((word - EACH(' ')) & ~word)) &
           EACH(0x80);
}

/* How many bytes come before the first quote, backslash or control character. */
static inline size_t plain_length(struct slice in)
{
    size_t at = 0;
    for (; in.length - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, in.bytes + at, sizeof(word));
        uint64_t special = find_special(word);
        if (special != 0)
            return at + (size_t)__builtin_ctzll(special) / 8;
    }
    while (at < in.length && in.bytes[at] != '"' && in.bytes[at] != '\\' &&
           (unsigned char)in.bytes[at] >= ' ')
        at++;
    return at;
}

/* How many bytes of a string are text: at least one, or 0 at the quote that ends it and at a
 * control character, which makes the document malformed. */
static size_t text_length(struct rewrite_json *json, struct slice in)
{
    size_t length = json->state == REWRITE_JSON_STRING ? plain_length(in) : 0;
    if (length > 0)
        return length;
    if ((unsigned char)in.bytes[0] < ' ') {
        json->state = REWRITE_JSON_OVER;
        return 0;
    }
    if (json->state == REWRITE_JSON_ESCAPE) {
        json->state = REWRITE_JSON_STRING;
        return 1;
    }
    if (in.bytes[0] == '"')
        return 0;
    json->state = REWRITE_JSON_ESCAPE;
    return 1;
}

/* Takes bytes of a string that is no link. */
static size_t take_string(struct rewrite_json *json, struct slice in)
{
    size_t length = text_length(json, in);
    if (json->is_key && length > 0 && is_watched(json))
        keep_key(json, in.bytes, length);
    if (length > 0 || json->state == REWRITE_JSON_OVER)
        return length;
    if (json->is_key)
        end_key(json);
    else
        json->state = REWRITE_JSON_AFTER;
    return 1;
}

/* Takes bytes of a link. */
static size_t take_link(struct rewrite_json *json, struct rewrite_stream *stream, struct slice in,
                        struct rewrite_output *out)
{
    if (in.length > REWRITE_LINK_GROWTH)
        in.length = REWRITE_LINK_GROWTH; /* with what is held, at most REWRITE_STEP_ROOM */
    size_t length = text_length(json, in);
    if (length > 0) {
        json->is_link = rewrite_hold(stream, in.bytes, length, out);
        return length;
    }
    json->is_link = false;
    if (json->state == REWRITE_JSON_OVER) {
        rewrite_release_raw(stream, out);
        return 0;
    }
    rewrite_release(stream, &rewrite_json_notation, out, NULL);
    json->cargo = json->cargo || (json->value >> PATTERN_CARGO_DL & 1) != 0;
    json->state = REWRITE_JSON_AFTER;
    rewrite_emit(out, "\"", 1);
    return 1;
}

/* --- the document --- */

static bool is_in_string(const struct rewrite_json *json)
{
    return json->state == REWRITE_JSON_STRING || json->state == REWRITE_JSON_ESCAPE;
}

/* The closing quote of a string that is complete and has no escapes, or 0. `at` is behind its
 * opening quote. */
static inline size_t find_quote(struct slice in, size_t at)
{
    at += plain_length((struct slice){in.bytes + at, in.length - at});
    return at < in.length && in.bytes[at] == '"' ? at : 0;
}

/* The bytes that mean something in a dead container. */
static const bool is_mark[256] = {
    ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true,
};

/* Takes bytes of a dead container, up to its end or into a string that has escapes or is not
 * complete. */
static size_t take_dead(struct rewrite_json *json, struct slice in)
{
    for (size_t at = 0; at < in.length;) {
        char byte = in.bytes[at++];
        if (!is_mark[(unsigned char)byte])
            continue;
        if (byte == '"') {
            at += plain_length((struct slice){in.bytes + at, in.length - at});
            if (at < in.length && in.bytes[at] == '"') {
                at++;
                continue;
            }
            json->is_key = false;
            json->state = REWRITE_JSON_STRING;
            return at;
        }
        bool object = byte == '{' || byte == '}', opens = byte == '{' || byte == '[';
        if (!(opens ? open_container(json, object) : close_container(json, object)))
            json->state = REWRITE_JSON_OVER;
        if (json->state == REWRITE_JSON_OVER || json->dead == 0)
            return at;
    }
    return in.length;
}

static inline size_t skip_white(struct slice in, size_t at)
{
    while (at < in.length && is_white(in.bytes[at]))
        at++;
    return at;
}

/* Takes a key that is complete and has no escapes, with the colon directly behind it. `at` is its
 * opening quote. Returns where the rest begins, or 0. */
static inline size_t take_key(struct rewrite_json *json, struct slice in, size_t at)
{
    size_t end = find_quote(in, at + 1);
    if (end == 0 || in.length - end < 2 || in.bytes[end + 1] != ':')
        return 0;
    struct slice key = {in.bytes + at + 1, end - at - 1};
    json->value = 0;
    if (is_watched(json))
        find_place(json, &key);
    json->state = REWRITE_JSON_VALUE;
    return end + 2;
}

/* A faster way through most of a document with the same result as byte by byte: takes members whose
 * values are complete strings without escapes and no links. A key is expected. Returns how many
 * bytes. */
static size_t take_members(struct rewrite_json *json, struct slice in)
{
    size_t at = 0, next;
    while (at < in.length && in.bytes[at] == '"' && (next = take_key(json, in, at)) != 0) {
        at = skip_white(in, next);
        if (at == in.length || in.bytes[at] != '"' || (json->value != 0 && place_is_link(json)))
            break;
        next = find_quote(in, at + 1);
        if (next == 0)
            break;
        at = next + 1;
        json->state = REWRITE_JSON_AFTER;
        if (at == in.length || in.bytes[at] != ',')
            break;
        at = skip_white(in, at + 1);
        json->state = REWRITE_JSON_KEY;
    }
    return at;
}

/* Takes bytes outside of strings and dead containers. */
static size_t take_live(struct rewrite_json *json, struct slice in)
{
    size_t taken = 0;
    if (json->state == REWRITE_JSON_KEY || json->state == REWRITE_JSON_FIRST_KEY)
        taken = take_members(json, in);
    if (taken > 0)
        return taken;
    if (!take_byte(json, in.bytes[0]))
        json->state = REWRITE_JSON_OVER;
    return 1;
}

/* Passes on bytes up to the next link. */
static size_t take_rest(struct rewrite_json *json, struct slice in, struct rewrite_output *out)
{
    size_t at = 0;
    while (at < in.length && !json->is_link) {
        struct slice rest = {in.bytes + at, in.length - at};
        if (is_in_string(json))
            at += take_string(json, rest);
        else if (json->state == REWRITE_JSON_OVER)
            at = in.length;
        else if (json->dead != 0)
            at += take_dead(json, rest);
        else
            at += take_live(json, rest);
    }
    rewrite_emit(out, in.bytes, at);
    return at;
}

size_t rewrite_json_take(struct rewrite_json *json, struct rewrite_stream *stream, struct slice in,
                         struct rewrite_output *out)
{
    size_t at = 0;
    while (at < in.length && rewrite_room(out) >= REWRITE_STEP_ROOM) {
        struct slice rest = {in.bytes + at, in.length - at};
        if (rest.length > rewrite_room(out))
            rest.length = rewrite_room(out);
        at += json->is_link ? take_link(json, stream, rest, out) : take_rest(json, rest, out);
    }
    return at;
}
