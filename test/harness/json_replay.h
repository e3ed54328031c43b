/* Writes a parsed object through json_overlay.h, member by member. */
#ifndef TEST_HARNESS_JSON_REPLAY_H
#define TEST_HARNESS_JSON_REPLAY_H

#include "qemu-harness/launcher/guest/json_overlay.h"

/* Arrays are copied unchanged. */
static inline int json_replay_members(struct json_overlay *out, const struct json *base,
                                      uint32_t object)
{
    for (uint32_t at = json_first(base, object); at; at = json_next(base, object, at)) {
        const struct json_token *value = &base->tokens[at + 1];
        uint32_t quotes = value->type == JSON_STRING;
        char name[8192];
        int result = json_string(base, at, name, sizeof(name));
        if (result < 0)
            return result;
        if (value->type == JSON_OBJECT) {
            json_overlay_object_begin(out, name);
            result = json_replay_members(out, base, at + 1);
            json_overlay_object_end(out);
            if (result < 0)
                return result;
        } else if (json_overlay_name(out, name)) {
            json_write_raw(out->writer, base->text + value->start - quotes,
                           value->end - value->start + 2 * quotes);
        }
    }
    return 0;
}

/* `used` has room for each token of the overlay. Returns the length of the text in `out`, or a
 * negative errno. */
static inline int json_replay(const struct json *base, const struct json *overlay, bool *used,
                              char *text, size_t size)
{
    struct json_writer writer;
    struct json_overlay out;
    json_writer_start(&writer, text, size);
    json_overlay_begin(&out, &writer, overlay, used);
    int result = json_replay_members(&out, base, 0);
    if (result >= 0)
        result = json_overlay_end(&out);
    return result < 0 ? result : json_writer_finish(&writer, false);
}

#endif
