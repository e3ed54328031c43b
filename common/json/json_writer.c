/* Writes JSON. One function appends bytes or sets `overflow`; all others use it. After an overflow
 * nothing more is written, so the buffer holds a prefix of the text.
 */
#include "common/json/json_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/text/encoding.h"
#include "common/text/utf8.h"

#define NUMBER_TEXT_MAX 24 /* a sign, 20 digits, a point and a digit, NUL */

static void append(struct json_writer *writer, const char *text, size_t length)
{
    if (writer->overflow || length > writer->size - writer->length) {
        writer->overflow = true;
        return;
    }
    if (length > 0)
        memcpy(writer->buffer + writer->length, text, length);
    writer->length += length;
}

/* Writes the comma between a value or name and the one before. */
static void separate(struct json_writer *writer)
{
    if (writer->need_comma)
        append(writer, ",", 1);
    writer->need_comma = true;
}

void json_writer_start(struct json_writer *writer, char *buffer, size_t size)
{
    *writer = (struct json_writer){.buffer = buffer, .size = size};
}

void json_write_object_begin(struct json_writer *writer)
{
    separate(writer);
    append(writer, "{", 1);
    writer->need_comma = false;
}

void json_write_object_end(struct json_writer *writer)
{
    append(writer, "}", 1);
    writer->need_comma = true;
}

void json_write_array_begin(struct json_writer *writer)
{
    separate(writer);
    append(writer, "[", 1);
    writer->need_comma = false;
}

void json_write_array_end(struct json_writer *writer)
{
    append(writer, "]", 1);
    writer->need_comma = true;
}

void json_write_name(struct json_writer *writer, const char *name)
{
    json_write_string(writer, name);
    append(writer, ":", 1);
    writer->need_comma = false;
}

void json_write_string(struct json_writer *writer, const char *value)
{
    json_write_bytes(writer, value, strlen(value));
}

/* Writes the escape of a character that a string cannot hold as it is. Returns its length, or 0. */
static size_t escape_character(char out[8], uint32_t code)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *place = code != 0 && code < 0x80 ? strchr(named, (int)code) : NULL;
    if (place) {
        out[0] = '\\';
        out[1] = letters[place - named];
        return 2;
    }
    return code < 0x20 ? (size_t)snprintf(out, 8, "\\u%04x", (unsigned)code) : 0;
}

/* An ASCII character that needs no escape. */
static bool is_plain(char byte)
{
    return byte >= ' ' && byte != '"' && byte != '\\' && (signed char)byte > 0;
}

void json_write_bytes(struct json_writer *writer, const char *value, size_t length)
{
    separate(writer);
    append(writer, "\"", 1);
    size_t plain = 0, i = 0; /* [plain, i) needs no escape and is not written yet */
    while (i < length) {
        uint32_t code;
        char escape[8];
        if (is_plain(value[i])) { /* most characters */
            i++;
            continue;
        }
        size_t taken = utf8_decode(value + i, length - i, &code);
        size_t escaped =
            taken > 0 ? escape_character(escape, code) : utf8_encode(escape, UTF8_REPLACEMENT);
        taken = taken > 0 ? taken : 1;
        if (escaped > 0) {
            append(writer, value + plain, i - plain);
            append(writer, escape, escaped);
            plain = i + taken;
        }
        i += taken;
    }
    append(writer, value + plain, length - plain);
    append(writer, "\"", 1);
}

void json_write_int(struct json_writer *writer, int64_t value)
{
    char text[NUMBER_TEXT_MAX];
    int length = snprintf(text, sizeof(text), "%lld", (long long)value);
    json_write_raw(writer, text, (size_t)length);
}

void json_write_ms(struct json_writer *writer, int64_t nanoseconds)
{
    char text[NUMBER_TEXT_MAX];
    uint64_t size = nanoseconds < 0 ? -(uint64_t)nanoseconds : (uint64_t)nanoseconds;
    uint64_t tenths = size / 100000 + (size % 100000 >= 50000);
    int length = snprintf(text, sizeof(text), "%s%llu.%u", nanoseconds < 0 ? "-" : "",
                          (unsigned long long)tenths / 10, (unsigned)(tenths % 10));
    json_write_raw(writer, text, (size_t)length);
}

void json_write_bool(struct json_writer *writer, bool value)
{
    json_write_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

void json_write_null(struct json_writer *writer)
{
    json_write_raw(writer, "null", 4);
}

void json_write_base64(struct json_writer *writer, const void *data, size_t length)
{
    separate(writer);
    append(writer, "\"", 1);
    if (writer->overflow || BASE64_LENGTH(length) > writer->size - writer->length)
        writer->overflow = true;
    else
        writer->length += base64_encode(writer->buffer + writer->length, data, length);
    append(writer, "\"", 1);
}

void json_write_raw(struct json_writer *writer, const char *text, size_t length)
{
    separate(writer);
    append(writer, text, length);
}

void json_member_string(struct json_writer *writer, const char *name, const char *value)
{
    json_write_name(writer, name);
    json_write_string(writer, value);
}

void json_member_int(struct json_writer *writer, const char *name, int64_t value)
{
    json_write_name(writer, name);
    json_write_int(writer, value);
}

void json_member_bool(struct json_writer *writer, const char *name, bool value)
{
    json_write_name(writer, name);
    json_write_bool(writer, value);
}

int json_writer_finish(struct json_writer *writer, bool newline)
{
    if (newline)
        append(writer, "\n", 1);
    append(writer, "", 1);
    return writer->overflow ? -ENOSPC : (int)writer->length - 1;
}
