/* Reads JSON objects by tables of their keys.
 *
 * Recursion is as deep as the tables are nested (three levels). On an error the target is partly
 * filled and must not be used. The arena only grows; a text that is no longer than the arena cannot
 * overflow it, since every string loses its two quotes and gains one NUL.
 */
#include "init/config/schema.h"

#include <errno.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int schema_refuse(struct schema_parse *parse, const char *format, ...)
{
    char text[FAILURE_TEXT_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (parse->path_length == 0)
        return failure_set(parse->why, EINVAL, "%s", text);
    return failure_set(parse->why, EINVAL, "%s: %s", parse->path, text);
}

static size_t append_path(struct schema_parse *parse, const char *before, const char *text,
                          const char *after)
{
    size_t old = parse->path_length;
    size_t room = sizeof(parse->path) - old;
    int length = snprintf(parse->path + old, room, "%s%s%s", before, text, after);

    parse->path_length = (size_t)length < room ? old + (size_t)length : sizeof(parse->path) - 1;
    return old;
}

size_t schema_enter_key(struct schema_parse *parse, const char *name)
{
    return append_path(parse, parse->path_length > 0 ? "." : "", name, "");
}

size_t schema_enter_element(struct schema_parse *parse, unsigned number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return append_path(parse, "[", text, "]");
}

void schema_leave(struct schema_parse *parse, size_t path_length)
{
    parse->path_length = path_length;
    parse->path[path_length] = '\0';
}

int schema_expect(struct schema_parse *parse, uint32_t index, enum json_type type)
{
    enum json_type found = parse->document->tokens[index].type;

    if (found == type)
        return 0;
    return schema_refuse(parse, "must be %s, not %s", json_type_names[type],
                         json_type_names[found]);
}

int schema_expect_container(struct schema_parse *parse, uint32_t index, enum json_type type,
                            int64_t most)
{
    int result = schema_expect(parse, index, type);

    if (result < 0)
        return result;
    if (parse->document->tokens[index].size > most)
        return schema_refuse(parse, "has more than %lld entries", (long long)most);
    uint32_t twice = type == JSON_OBJECT ? json_find_duplicate(parse->document, index) : 0;
    if (twice != 0) {
        const struct json_token *name = &parse->document->tokens[twice];
        return schema_refuse(parse, "the key \"%.*s\" appears twice",
                             (int)(name->end - name->start), parse->document->text + name->start);
    }
    return 0;
}

void *schema_take_room(struct schema_parse *parse, size_t size)
{
    const size_t alignment = alignof(void *);
    size_t start = (parse->arena_used + alignment - 1) / alignment * alignment;

    if (start > parse->arena_size || size > parse->arena_size - start)
        return NULL;
    parse->arena_used = start + size;
    return parse->arena + start;
}

int schema_take_text(struct schema_parse *parse, uint32_t index, char **out, size_t *length)
{
    char *text = parse->arena + parse->arena_used;
    int result = json_string(parse->document, index, text, parse->arena_size - parse->arena_used);

    if (result == -EILSEQ)
        return schema_refuse(parse, "the string holds U+0000 or half a surrogate pair");
    if (result == -ENAMETOOLONG)
        return schema_refuse(parse, "the configuration is too large");
    if (result < 0)
        return schema_expect(parse, index, JSON_STRING);
    parse->arena_used += (size_t)result + 1;
    *out = text;
    if (length)
        *length = (size_t)result;
    return 0;
}

int schema_read_text(struct schema_parse *parse, uint32_t index, void *target,
                     const struct schema_field *field)
{
    char *text = NULL;
    size_t length = 0;
    int result = schema_take_text(parse, index, &text, &length);

    if (result < 0)
        return result;
    if ((int64_t)length < field->least || (int64_t)length > field->most)
        return schema_refuse(parse, "has %zu bytes; %lld to %lld are allowed", length,
                             (long long)field->least, (long long)field->most);
    *(const char **)target = text;
    return 0;
}

int schema_read_int64(struct schema_parse *parse, uint32_t index, void *target,
                      const struct schema_field *field)
{
    int64_t value = 0;
    int result = schema_expect(parse, index, JSON_NUMBER);

    if (result < 0)
        return result;
    result = json_int64(parse->document, index, &value);
    if (result == -EINVAL)
        return schema_refuse(parse, "must be a whole number");
    if (result < 0 || value < field->least || value > field->most)
        return schema_refuse(parse, "must be %lld to %lld", (long long)field->least,
                             (long long)field->most);
    *(int64_t *)target = value;
    return 0;
}

int schema_read_uint32(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    int64_t value = 0;
    int result = schema_read_int64(parse, index, &value, field);

    if (result == 0)
        *(uint32_t *)target = (uint32_t)value;
    return result;
}

int schema_read_uint16(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    int64_t value = 0;
    int result = schema_read_int64(parse, index, &value, field);

    if (result == 0)
        *(uint16_t *)target = (uint16_t)value;
    return result;
}

int schema_read_bool(struct schema_parse *parse, uint32_t index, void *target,
                     const struct schema_field *field)
{
    enum json_type type = parse->document->tokens[index].type;

    (void)field;
    if (type != JSON_TRUE && type != JSON_FALSE)
        return schema_refuse(parse, "must be true or false, not %s", json_type_names[type]);
    *(bool *)target = type == JSON_TRUE;
    return 0;
}

int schema_read_nested(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    return schema_read_object(parse, index, field->detail, target);
}

int schema_read_choice(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    const char *const *names = field->detail;
    char list[256] = "";
    int result = schema_expect(parse, index, JSON_STRING);

    if (result < 0)
        return result;
    for (unsigned number = 0; number < field->most; number++) {
        if (json_string_equals(parse->document, index, names[number])) {
            *(unsigned *)target = number;
            return 0;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", number > 0 ? ", " : "", names[number]);
    }
    return schema_refuse(parse, "must be one of %s", list);
}

static const struct schema_field *find_field(const struct schema_parse *parse, uint32_t name,
                                             const struct schema_table *table)
{
    for (unsigned number = 0; number < table->count; number++)
        if (json_string_equals(parse->document, name, table->fields[number].name))
            return &table->fields[number];
    return NULL;
}

static int read_member(struct schema_parse *parse, uint32_t name, const struct schema_table *table,
                       char *target)
{
    const struct schema_field *field = find_field(parse, name, table);

    if (!field) {
        const struct json_token *token = &parse->document->tokens[name];
        return schema_refuse(parse, "unknown key \"%.*s\"", (int)(token->end - token->start),
                             parse->document->text + token->start);
    }
    if (field->presence == SCHEMA_NULLABLE && parse->document->tokens[name + 1].type == JSON_NULL)
        return 0;
    size_t path_length = schema_enter_key(parse, field->name);
    int result = field->read(parse, name + 1, target + field->offset, field);
    schema_leave(parse, path_length);
    return result;
}

int schema_read_object(struct schema_parse *parse, uint32_t index, const struct schema_table *table,
                       void *target)
{
    const struct json *document = parse->document;
    int result = schema_expect_container(parse, index, JSON_OBJECT, UINT32_MAX);

    for (uint32_t name = json_first(document, index); result == 0 && name != 0;
         name = json_next(document, index, name))
        result = read_member(parse, name, table, target);
    for (unsigned number = 0; result == 0 && number < table->count; number++)
        if (table->fields[number].presence == SCHEMA_REQUIRED &&
            json_member(document, index, table->fields[number].name) == 0)
            result = schema_refuse(parse, "the key \"%s\" is missing", table->fields[number].name);
    return result;
}
