/* A table-driven strict reader of JSON objects: which keys exist, which type each has, where it goes.
 *
 * The boot configuration's keys are const tables of `struct schema_field`; this is the engine that walks an object by
 * such a table. An unknown key, a key that stands twice, a wrong type and a value out of range are errors that name the
 * key by its whole path ("server.argv[3]"). Strings are copied into the arena of the parse.
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
    unsigned
        place; /* for the checks of the tables' owner (enum boot_place); the engine does not look at it */
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
    size_t offset; /* of the value in the target structure */
    int64_t least,
        most; /* numbers: the range; texts: the length in bytes; lists: the number of elements */
    const void *detail; /* for the reader: a struct schema_table, a name array */
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
/* One of the names of a name array (detail, `most` entries) into an unsigned, as an enum of ours is. */
int schema_read_choice(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field);

/* Helpers for readers of one's own. */

/* -EINVAL with "PATH: TEXT". */
int schema_refuse(struct schema_parse *parse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends ".name" or "[number]" to the path; restore the length that it returns with schema_leave. */
size_t schema_enter_key(struct schema_parse *parse, const char *name);
size_t schema_enter_element(struct schema_parse *parse, unsigned number);
void schema_leave(struct schema_parse *parse, size_t path_length);

/* Refuses a value of another type, saying which was wanted. */
int schema_expect(struct schema_parse *parse, uint32_t index, enum json_type type);

/* A container of at most `most` members whose names, if it is an object, differ. */
int schema_expect_container(struct schema_parse *parse, uint32_t index, enum json_type type,
                            int64_t most);

/* Copies a string (value or name) into the arena. *length may be NULL. */
int schema_take_text(struct schema_parse *parse, uint32_t index, char **out, size_t *length);

/* Room in the arena, aligned for pointers; NULL when it is exhausted. */
void *schema_take_room(struct schema_parse *parse, size_t size);

#endif
