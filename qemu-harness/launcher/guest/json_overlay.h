/* Writes a JSON object with another one, the overlay, laid over it: for --config.
 *
 * Objects are merged member by member, at every depth. Any other value of the overlay (an array,
 * null too) replaces the value under the same name. Members that only the overlay has follow at
 * the end of their object. The result is one line.
 */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_JSON_OVERLAY_H
#define QEMU_HARNESS_LAUNCHER_GUEST_JSON_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/json/json.h"
#include "common/json/json_writer.h"

struct json_overlay {
    struct json_writer *writer;
    const struct json *overlay; /* an object without duplicate names; NULL: there is none */
    bool *used;                 /* one for each token of the overlay: a member that was written */
    uint32_t objects[JSON_DEPTH_MAX]; /* the overlay's object for each object that is open */
    unsigned depth;                   /* how many are open */
    unsigned replaced; /* how many are open inside an object that the overlay replaces */
    int error;         /* sticky: a negative errno */
};

/* Begins the outermost object. `used` has room for each token of the overlay. */
void json_overlay_begin(struct json_overlay *out, struct json_writer *writer,
                        const struct json *overlay, bool *used);

/* Ends the outermost object. 0, or a negative errno when a name in the overlay holds what a C
 * string cannot, or is longer than any path, or objects nest too deep; whether all fitted is the
 * writer's state. */
int json_overlay_end(struct json_overlay *out);

/* An object as member of the one that is open. */
void json_overlay_object_begin(struct json_overlay *out, const char *name);
void json_overlay_object_end(struct json_overlay *out);

/* Any other member: true when the caller is to write the value into out->writer; the name is
 * written. False when the overlay has replaced it. */
bool json_overlay_name(struct json_overlay *out, const char *name);

void json_overlay_string(struct json_overlay *out, const char *name, const char *value);
void json_overlay_int(struct json_overlay *out, const char *name, int64_t value);
void json_overlay_bool(struct json_overlay *out, const char *name, bool value);
void json_overlay_null(struct json_overlay *out, const char *name);

#endif
