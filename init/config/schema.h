/* A strict reader of JSON objects by tables: which keys exist, their types, where the values go.
 *
 * The keys of the boot configuration are const tables of `struct schema_field`. An unknown key, a
 * key that appears twice, a wrong type and a value out of range are errors that name the key by its
 * whole path ("server.argv[3]"). Strings are copied into the arena of the parse.
 */
#ifndef INIT_CONFIG_SCHEMA_H
#define INIT_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/json/json.h"
#include "common/os/failure.h"

#define SCHEMA_PATH_MAX 160 /* a longer path of a key is cut in the message */

struct schema_parse {
    const struct json *document;
    char *arena;
    size_t arena_size, arena_used;
    char path[SCHEMA_PATH_MAX]; /* of the key being read, for messages */
    size_t path_length;
    struct failure *why;
    unsigned place; /* enum boot_place; for readers outside this file only */
};

struct schema_field;
typedef int schema_reader(struct schema_parse *parse, uint32_t index, void *target,
                          const struct schema_field *field);

enum schema_presence {
    SCHEMA_OPTIONAL,
    SCHEMA_NULLABLE, /* optional, and null is the same as an absent key */
    SCHEMA_REQUIRED,
};

struct schema_field {
    const char *name;
    enum schema_presence presence;
    schema_reader *read;
    size_t offset;       /* of the value in the target structure */
    int64_t least, most; /* range of a number, length of a text in bytes, elements of a list */
    const void *detail;  /* for the reader: a struct schema_table, a name array */
};

struct schema_table {
    const struct schema_field *fields;
    unsigned count;
};

/* Reads the object at `index` by its table into `target`. 0 or a negative errno with a reason. */
int schema_read_object(struct schema_parse *parse, uint32_t index, const struct schema_table *table,
                       void *target);

/* Readers for the tables. */
int schema_read_text(struct schema_parse *parse, uint32_t index, void *target,
                     const struct schema_field *field);
int schema_read_int64(struct schema_parse *parse, uint32_t index, void *target,
                      const struct schema_field *field);
int schema_read_uint32(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);
int schema_read_uint16(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);
int schema_read_bool(struct schema_parse *parse, uint32_t index, void *target,
                     const struct schema_field *field);
int schema_read_nested(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);
/* The index of the value in an array of names (`detail`, `most` entries), into an enum of ours. */
int schema_read_choice(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);

/* Helpers for readers outside this file. */

/* -EINVAL with "PATH: TEXT". */
int schema_refuse(struct schema_parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends ".name" or "[number]" to the path. Returns the length before, for schema_leave. */
size_t schema_enter_key(struct schema_parse *parse, const char *name);
size_t schema_enter_element(struct schema_parse *parse, unsigned number);
void schema_leave(struct schema_parse *parse, size_t path_length);

/* Refuses a value of another type. */
int schema_expect(struct schema_parse *parse, uint32_t index, enum json_type type);

/* Refuses anything but a container of this type with at most `most` members and, in an object, no
 * name twice. */
int schema_expect_container(struct schema_parse *parse, uint32_t index, enum json_type type,
                            int64_t most);

/* Copies a string (value or name) into the arena. *length may be NULL. */
int schema_take_text(struct schema_parse *parse, uint32_t index, char **out, size_t *length);

/* Space in the arena, aligned for pointers; NULL when the arena is full. */
void *schema_take_room(struct schema_parse *parse, size_t size);

#endif
