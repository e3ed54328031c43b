/* Writes JSON into a caller's buffer, with a sticky error so that callers check once.
 *
 * Commas and colons are written automatically. Strings are escaped (RFC 8259 section 7); bytes that
 * are not UTF-8 become U+FFFD, so that the text is JSON whatever a guest or a file name contains.
 */
#ifndef COMMON_JSON_JSON_WRITER_H
#define COMMON_JSON_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer {
    char *buffer;
    size_t size, length;
    bool overflow;   /* sticky: the text did not fit; the buffer holds its beginning */
    bool need_comma; /* the next value in this container needs one */
};

void json_writer_start(struct json_writer *writer, char *buffer, size_t size);

void json_write_object_begin(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array_begin(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_name(struct json_writer *writer, const char *name);
void json_write_string(struct json_writer *writer, const char *value);
void json_write_bytes(struct json_writer *writer, const char *value, size_t length);
void json_write_int(struct json_writer *writer, int64_t value);
void json_write_ms(struct json_writer *writer,
                   int64_t nanoseconds); /* as milliseconds, 1 decimal */
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
void json_write_base64(struct json_writer *writer, const void *data, size_t length);

/* Copies text that is already one JSON value. */
void json_write_raw(struct json_writer *writer, const char *text, size_t length);

/* name and value in one call */
void json_member_string(struct json_writer *writer, const char *name, const char *value);
void json_member_int(struct json_writer *writer, const char *name, int64_t value);
void json_member_bool(struct json_writer *writer, const char *name, bool value);

/* Ends the text: a NUL behind it, and behind a newline when `newline`. The length without the NUL,
 * or -ENOSPC when anything did not fit. */
int json_writer_finish(struct json_writer *writer, bool newline);

#endif
