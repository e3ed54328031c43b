/* Lays one JSON object over another while that is written. Recursion is bounded by the
 * JSON_DEPTH_MAX of the parser. */
#include "qemu-harness/launcher/guest/json_overlay.h"

#include <errno.h>
#include <string.h>

#define NAME_MAX_BYTES 4200  /* of a member: a path fits */
#define NO_OBJECT UINT32_MAX /* the overlay has no object here */

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

/* Copies a value without the white space between its parts: the result must be one line. */
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

static void open_object(struct json_overlay *out, uint32_t object)
{
    json_write_object_begin(out->writer);
    if (out->depth == JSON_DEPTH_MAX)
        out->error = -E2BIG;
    else
        out->objects[out->depth++] = object;
}

/* The overlay's member of this name in the open object, or 0; it counts as written from now on. */
static uint32_t take_member(struct json_overlay *out, const char *name)
{
    uint32_t object = out->objects[out->depth - 1];
    uint32_t value = object == NO_OBJECT ? 0 : json_member(out->overlay, object, name);
    if (value)
        out->used[value] = true;
    return value;
}

static void copy_member(struct json_overlay *out, const char *name, uint32_t value)
{
    json_write_name(out->writer, name);
    int result = copy_value(out->writer, out->overlay, value);
    if (result < 0)
        out->error = result;
}

/* Adds the members that only the overlay has. */
static void add_members(struct json_overlay *out)
{
    uint32_t object = out->objects[out->depth - 1];
    char name[NAME_MAX_BYTES];
    if (object == NO_OBJECT)
        return;
    for (uint32_t at = json_first(out->overlay, object); at && !out->error;
         at = json_next(out->overlay, object, at)) {
        int result = out->used[at + 1] ? 0 : json_string(out->overlay, at, name, sizeof(name));
        if (result < 0)
            out->error = result;
        else if (!out->used[at + 1])
            copy_member(out, name, at + 1);
    }
}

void json_overlay_begin(struct json_overlay *out, struct json_writer *writer,
                        const struct json *overlay, bool *used)
{
    *out = (struct json_overlay){.writer = writer, .overlay = overlay, .used = used};
    if (overlay)
        memset(used, 0, overlay->count * sizeof(*used));
    open_object(out, overlay ? 0 : NO_OBJECT);
}

static void close_object(struct json_overlay *out)
{
    if (out->error)
        return;
    add_members(out);
    json_write_object_end(out->writer);
    out->depth--;
}

int json_overlay_end(struct json_overlay *out)
{
    close_object(out);
    return out->error;
}

void json_overlay_object_begin(struct json_overlay *out, const char *name)
{
    if (out->error)
        return;
    if (out->replaced) {
        out->replaced++;
        return;
    }
    uint32_t value = take_member(out, name);
    if (value && out->overlay->tokens[value].type != JSON_OBJECT) {
        copy_member(out, name, value);
        out->replaced = 1;
        return;
    }
    json_write_name(out->writer, name);
    open_object(out, value ? value : NO_OBJECT);
}

void json_overlay_object_end(struct json_overlay *out)
{
    if (out->replaced)
        out->replaced--;
    else
        close_object(out);
}

bool json_overlay_name(struct json_overlay *out, const char *name)
{
    if (out->error || out->replaced)
        return false;
    uint32_t value = take_member(out, name);
    if (value)
        copy_member(out, name, value);
    else
        json_write_name(out->writer, name);
    return !value;
}

void json_overlay_string(struct json_overlay *out, const char *name, const char *value)
{
    if (json_overlay_name(out, name))
        json_write_string(out->writer, value);
}

void json_overlay_int(struct json_overlay *out, const char *name, int64_t value)
{
    if (json_overlay_name(out, name))
        json_write_int(out->writer, value);
}

void json_overlay_bool(struct json_overlay *out, const char *name, bool value)
{
    if (json_overlay_name(out, name))
        json_write_bool(out->writer, value);
}

void json_overlay_null(struct json_overlay *out, const char *name)
{
    if (json_overlay_name(out, name))
        json_write_null(out->writer);
}
