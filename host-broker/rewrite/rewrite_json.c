/* Links in JSON documents: see rewrite_json.h. */
#include "host-broker/rewrite/rewrite_json.h"

#include "host-broker/base/byte_block.h"
#include "host-broker/rewrite/rewrite.h"

bool rewrite_json_is_cargo(const struct rewrite *rewrite)
{
    return rewrite->json.cargo && rewrite->json.depth == 0 &&
           rewrite->json.state == REWRITE_JSON_AFTER;
}

static bool in_object(const struct rewrite_json *json)
{
    unsigned level = json->depth - 1;
    return (json->objects[level / 8] >> level % 8 & 1) != 0;
}

/* --- structure ---------------------------------------------------------------------------------------- */

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
        rewrite_json_find_place(json, NULL);
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

static bool begin_value(struct rewrite_json *json, char byte)
{
    if (byte == '{' || byte == '[')
        return open_container(json, byte == '{');
    if (byte == '"') {
        json->is_key = false;
        json->is_link = json->value != 0 && rewrite_json_place_is_link(json);
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

static bool go_on(struct rewrite_json *json, char byte)
{
    if (byte == '}' || byte == ']')
        return close_container(json, byte == '}');
    if (byte != ',' || json->depth == 0)
        return false;
    bool object = in_object(json);
    json->state = object ? REWRITE_JSON_KEY : REWRITE_JSON_VALUE;
    if (!object)
        rewrite_json_find_place(json, NULL);
    return true;
}

/* One byte outside of strings. False when the document is malformed. */
static bool take_byte(struct rewrite_json *json, char byte)
{
    if (json->state == REWRITE_JSON_SCALAR) {
        if (is_scalar_byte(byte))
            return true;
        json->state = REWRITE_JSON_AFTER;
    }
    if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
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
        return go_on(json, byte);
    case REWRITE_JSON_SCALAR:
    case REWRITE_JSON_STRING:
    case REWRITE_JSON_ESCAPE:
    case REWRITE_JSON_OVER:
        break;
    }
    return false;
}

/* --- strings ------------------------------------------------------------------------------------------ */

/* How many bytes have no meaning of their own in a string. */
static inline size_t plain_length(struct slice in)
{
    size_t at = 0;
    for (; in.length - at >= 2 * BYTE_RUN; at += 2 * BYTE_RUN) {
        size_t text = byte_run_text(in.bytes + at);
        if (text < 2 * BYTE_RUN)
            return at + text;
    }
    while (at < in.length && in.bytes[at] != '"' && in.bytes[at] != '\\' &&
           (unsigned char)in.bytes[at] >= ' ')
        at++;
    return at;
}

/* How many of the bytes of a string stand for text: at least one, or 0 for the quote that ends it, or for a
 * control character, with which the document is over. */
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

/* Some bytes of a string that is no link. */
static size_t take_string(struct rewrite_json *json, struct slice in)
{
    size_t length = text_length(json, in);
    if (json->is_key && length > 0 && rewrite_json_is_watched(json))
        rewrite_json_keep_key(json, in.bytes, length);
    if (length > 0 || json->state == REWRITE_JSON_OVER)
        return length;
    if (json->is_key)
        rewrite_json_end_key(json);
    else
        json->state = REWRITE_JSON_AFTER;
    return 1;
}

/* Some bytes of a link. */
static size_t take_link(struct rewrite *rewrite, struct slice in, struct rewrite_output *out)
{
    struct rewrite_json *json = &rewrite->json;
    if (in.length > REWRITE_LINK_GROWTH)
        in.length = REWRITE_LINK_GROWTH; /* with what is held, a step's room */
    size_t length = text_length(json, in);
    if (length > 0) {
        json->is_link = rewrite_hold(rewrite, in.bytes, length, out);
        return length;
    }
    json->is_link = false;
    if (json->state == REWRITE_JSON_OVER) {
        rewrite_release_raw(rewrite, out);
        return 0;
    }
    rewrite_release(rewrite, &rewrite_json_notation, out, NULL);
    json->cargo = json->cargo || rewrite_json_place_is_dl(json);
    json->state = REWRITE_JSON_AFTER;
    rewrite_emit(out, "\"", 1);
    return 1;
}

/* --- all of it ---------------------------------------------------------------------------------------- */

static bool is_in_string(const struct rewrite_json *json)
{
    return json->state == REWRITE_JSON_STRING || json->state == REWRITE_JSON_ESCAPE;
}

/* Brackets in a dead container, one bit for each. Returns how many bytes there are up to the one that ends
 * the container, or with which the document is over; `length` when none does. */
static size_t take_brackets(struct rewrite_json *json, const char *bytes, uint64_t brackets,
                            size_t length)
{
    for (; brackets != 0; brackets &= brackets - 1) {
        size_t at = (size_t)__builtin_ctzll(brackets);
        char byte = bytes[at];
        bool object = byte == '{' || byte == '}', opens = byte == '{' || byte == '[';
        if (!(opens ? open_container(json, object) : close_container(json, object)))
            json->state = REWRITE_JSON_OVER;
        if (json->state == REWRITE_JSON_OVER || json->dead == 0)
            return at + 1;
    }
    return length;
}

/* Bytes of a dead container, up to its end or into a string that is not simply there whole. */
static size_t take_dead(struct rewrite_json *json, struct slice in)
{
    uint64_t carried = 0; /* all bits: the block begins in a string */
    for (size_t at = 0; at < in.length; at += BYTE_BLOCK) {
        struct slice rest = {in.bytes + at, in.length - at};
        struct byte_block found = byte_block_find(rest);
        uint64_t inside = byte_block_between(found.quotes) ^ carried;
        uint64_t special = found.specials & inside; /* from here on quotes may be escaped */
        uint64_t before = (special & -special) - 1; /* all bits without one */
        size_t length = rest.length < BYTE_BLOCK ? rest.length : BYTE_BLOCK;
        size_t taken = take_brackets(json, rest.bytes, found.brackets & ~inside & before, length);
        if (taken < length || json->state == REWRITE_JSON_OVER || json->dead == 0)
            return at + taken;
        carried = inside >> (BYTE_BLOCK - 1) != 0 ? UINT64_MAX : 0;
        if (special != 0) {
            json->is_key = false;
            json->state = REWRITE_JSON_STRING;
            return at + (size_t)__builtin_ctzll(special);
        }
    }
    if (carried != 0) {
        json->is_key = false;
        json->state = REWRITE_JSON_STRING;
    }
    return in.length;
}

/* Looks past a string that is plain and there whole, from behind the quote that opens it. Returns where the
 * closing quote stands, or 0. */
static inline size_t find_quote(struct slice in, size_t at)
{
    at += plain_length((struct slice){in.bytes + at, in.length - at});
    return at < in.length && in.bytes[at] == '"' ? at : 0;
}

/* White space at `at`, as far as it is seen at one look. */
static inline size_t skip_white(struct slice in, size_t at)
{
    if (in.length - at < BYTE_RUN || (unsigned char)in.bytes[at] > ' ')
        return at;
    return at + byte_run_white(in.bytes + at);
}

/* A key that is plain and there whole, with its colon, from the quote that opens it. Returns what follows,
 * or 0. */
static inline size_t take_key(struct rewrite_json *json, struct slice in, size_t at)
{
    size_t end = find_quote(in, at + 1);
    if (end == 0 || in.length - end < 2 || in.bytes[end + 1] != ':')
        return 0;
    struct slice key = {in.bytes + at + 1, end - at - 1};
    json->value = 0;
    if (rewrite_json_is_watched(json))
        rewrite_json_find_place(json, &key);
    json->state = REWRITE_JSON_VALUE;
    return end + 2;
}

/* What most of a document is made of, with the same outcome as byte by byte: members that are plain strings
 * and no links, up to what is something else. To be called where a key begins. Returns how many bytes. */
static size_t take_members(struct rewrite_json *json, struct slice in)
{
    size_t at = 0, next;
    while (at < in.length && in.bytes[at] == '"' && (next = take_key(json, in, at)) != 0) {
        at = skip_white(in, next);
        if (at == in.length || in.bytes[at] != '"' ||
            (json->value != 0 && rewrite_json_place_is_link(json)))
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

/* Some bytes outside of strings and dead containers. */
static size_t take_live(struct rewrite_json *json, struct slice in)
{
    size_t taken = 0;
    if (json->state == REWRITE_JSON_KEY || json->state == REWRITE_JSON_FIRST_KEY)
        taken = take_members(json, in);
    if (taken == 0 && json->state != REWRITE_JSON_SCALAR)
        taken = skip_white(in, 0);
    if (taken > 0)
        return taken;
    if (!take_byte(json, in.bytes[0]))
        json->state = REWRITE_JSON_OVER;
    return 1;
}

/* Up to the next link: nothing changes. */
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

size_t rewrite_json_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out)
{
    size_t at = 0;
    while (at < in.length && rewrite_room(out) >= REWRITE_STEP_ROOM) {
        struct slice rest = {in.bytes + at, in.length - at};
        if (rest.length > rewrite_room(out))
            rest.length = rewrite_room(out);
        at += rewrite->json.is_link ? take_link(rewrite, rest, out)
                                    : take_rest(&rewrite->json, rest, out);
    }
    return at;
}
