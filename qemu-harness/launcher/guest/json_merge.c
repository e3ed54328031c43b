/* See json_merge.h. Recursion is bounded by JSON_DEPTH_MAX of the parser. */
#include "qemu-harness/launcher/guest/json_merge.h"

#define NAME_MAX_BYTES 4200 /* of a member: a path fits */

static int copy_value(struct json_writer *writer, const struct json *from, uint32_t index);

static int copy_object(struct json_writer *writer, const struct json *from, uint32_t index)
{
    char name[NAME_MAX_BYTES];
    int result = 0;
    json_write_object_begin(writer);
    for (uint32_t at = json_first(from, index); at && result >= 0;
         at = json_next(from, index, at)) {
        result = json_string(from, at, name, sizeof(name));
        if (result < 0)
            return result;
        json_write_name(writer, name);
        result = copy_value(writer, from, at + 1);
    }
    json_write_object_end(writer);
    return result;
}

/* Without the white space that may stand between values: the result must be one line. */
static int copy_value(struct json_writer *writer, const struct json *from, uint32_t index)
{
    const struct json_token *token = &from->tokens[index];
    uint32_t quotes = token->type == JSON_STRING;
    int result = 0;
    if (token->type == JSON_OBJECT)
        return copy_object(writer, from, index);
    if (token->type != JSON_ARRAY) {
        json_write_raw(writer, from->text + token->start - quotes,
                       token->end - token->start + 2 * quotes);
        return 0;
    }
    json_write_array_begin(writer);
    for (uint32_t at = json_first(from, index); at && result >= 0; at = json_next(from, index, at))
        result = copy_value(writer, from, at);
    json_write_array_end(writer);
    return result;
}

/* The members that only `overlay` has. */
static int add_members(struct json_writer *writer, const struct json *base, uint32_t base_index,
                       const struct json *overlay, uint32_t overlay_index)
{
    char name[NAME_MAX_BYTES];
    for (uint32_t at = json_first(overlay, overlay_index); at;
         at = json_next(overlay, overlay_index, at)) {
        int result = json_string(overlay, at, name, sizeof(name));
        if (result < 0)
            return result;
        if (json_member(base, base_index, name))
            continue;
        json_write_name(writer, name);
        result = copy_value(writer, overlay, at + 1);
        if (result < 0)
            return result;
    }
    return 0;
}

int json_merge(struct json_writer *writer, const struct json *base, uint32_t base_index,
               const struct json *overlay, uint32_t overlay_index)
{
    char name[NAME_MAX_BYTES];
    int result = 0;
    json_write_object_begin(writer);
    for (uint32_t at = json_first(base, base_index); at; at = json_next(base, base_index, at)) {
        result = json_string(base, at, name, sizeof(name));
        if (result < 0)
            return result;
        uint32_t other = json_member(overlay, overlay_index, name);
        json_write_name(writer, name);
        if (!other)
            result = copy_value(writer, base, at + 1);
        else if (overlay->tokens[other].type != JSON_OBJECT ||
                 base->tokens[at + 1].type != JSON_OBJECT)
            result = copy_value(writer, overlay, other);
        else
            result = json_merge(writer, base, at + 1, overlay, other);
        if (result < 0)
            return result;
    }
    result = add_members(writer, base, base_index, overlay, overlay_index);
    json_write_object_end(writer);
    return result;
}
