/* Merges one JSON object into another: for --config.
 *
 * Objects are merged member by member, at every depth; anything else of `overlay` (arrays, null too)
 * replaces what `base` has under that name, and names that only `overlay` has are added behind. The
 * result is one line. */
#ifndef QEMU_HARNESS_LAUNCHER_GUEST_JSON_MERGE_H
#define QEMU_HARNESS_LAUNCHER_GUEST_JSON_MERGE_H

#include "common/json/json.h"
#include "common/json/json_writer.h"

/* Writes the merged object. Both values are objects. 0, or a negative errno when a name holds what no C
 * string can hold, or is longer than any path; whether all fitted is the writer's own state. */
int json_merge(struct json_writer *writer, const struct json *base, uint32_t base_index,
               const struct json *overlay, uint32_t overlay_index);

#endif
