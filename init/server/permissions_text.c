/* Parses a project's own codev.json.
 *
 * The author of the project writes this file, so it can only make the server ask, never stop it
 * from asking. A file that is not a strict JSON object, has a name twice, or a value of an
 * unexpected type makes it ask too, with a warning.
 */
#include "init/server/permissions_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json.h"
#include "common/wire/guest_path.h"

#define PERMISSIONS_TOKENS_MAX 8192

bool permissions_toggle(const struct boot_config *config)
{
    bool toggle = config->auto_accept;
    size_t longest = 0;

    for (unsigned i = 0; i < config->directory_count; i++) {
        const char *path = config->directories[i].path;
        if (strlen(path) >= longest && guest_path_is_below(config->server.cwd, path)) {
            longest = strlen(path);
            toggle = config->directories[i].auto_accept;
        }
    }
    return toggle;
}

const char *permissions_mount(const struct boot_config *config)
{
    const char *found = NULL;

    for (unsigned i = 0; i < config->mount_count; i++) {
        const char *target = config->mounts[i].target;
        if (guest_path_is_below(config->server.cwd, target) &&
            (!found || strlen(target) > strlen(found)))
            found = target;
    }
    return found;
}

void permissions_refuse(struct permissions *out, const char *format, ...)
{
    va_list arguments;

    out->auto_accept = false;
    va_start(arguments, format);
    vsnprintf(out->warning, sizeof(out->warning), format, arguments);
    va_end(arguments);
}

/* True when every string in the value that is not the name of a member is "allow". */
static bool all_allow(const struct json *document, uint32_t value)
{
    enum json_type type = document->tokens[value].type;

    if (type != JSON_OBJECT && type != JSON_ARRAY)
        return json_string_equals(document, value, "allow");
    for (uint32_t i = json_first(document, value); i != 0; i = json_next(document, value, i)) {
        /* depth is bounded by JSON_DEPTH_MAX */
        if (!all_allow(document, type == JSON_OBJECT ? i + 1 : i))
            return false;
    }
    return true;
}

/* A name that appears twice, which the server may read in another way than we do; 0 for none. */
static uint32_t find_duplicate(const struct json *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        uint32_t duplicate =
            document->tokens[i].type == JSON_OBJECT ? json_find_duplicate(document, i) : 0;
        if (duplicate != 0)
            return duplicate;
    }
    return 0;
}

/* Copies a value without the white space between its tokens, for an environment variable. */
static bool copy_compact(char *out, size_t size, const char *text, size_t length)
{
    bool in_string = false;
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
            continue;
        bool escape = in_string && c == '\\';
        if (c == '"')
            in_string = !in_string;
        if (used + 2 >= size)
            return false;
        out[used++] = c;
        if (escape)
            out[used++] = text[++i];
    }
    out[used] = '\0';
    return true;
}

static void apply_permission(const struct json *document, uint32_t value, struct permissions *out)
{
    const struct json_token *token = &document->tokens[value];
    bool is_string = token->type == JSON_STRING;

    if (all_allow(document, value))
        return;
    out->auto_accept = false;
    /* a string's token is without its quotes */
    if (!copy_compact(out->permission, sizeof(out->permission),
                      document->text + token->start - is_string,
                      token->end - token->start + 2 * (size_t)is_string)) {
        out->permission[0] = '\0';
        permissions_refuse(
            out, "codev.json: the permission object is longer than %zu bytes and is not passed on",
            sizeof(out->permission) - 2);
    }
}

static void apply_document(const struct json *document, struct permissions *out)
{
    struct json_position where;
    uint32_t duplicate, value;

    if (document->tokens[0].type != JSON_OBJECT) {
        permissions_refuse(out, "codev.json: is %s and should be an object",
                           json_type_names[document->tokens[0].type]);
        return;
    }
    duplicate = find_duplicate(document);
    if (duplicate != 0) {
        json_locate(document->text, document->length, document->tokens[duplicate].start, &where);
        permissions_refuse(out, "codev.json:%u:%u: this name appears twice", where.line,
                           where.column);
        return;
    }
    value = json_member(document, 0, "auto_accept");
    if (value != 0 && document->tokens[value].type != JSON_TRUE) {
        out->auto_accept = false;
        if (document->tokens[value].type != JSON_FALSE)
            permissions_refuse(out, "codev.json: auto_accept is neither true nor false");
    }
    value = json_member(document, 0, "permission");
    if (value != 0)
        apply_permission(document, value, out);
}

void permissions_from_text(const char *text, size_t length, struct permissions *out)
{
    static struct json_token tokens[PERMISSIONS_TOKENS_MAX];
    struct json_position where;
    struct json document;

    if (json_parse(&document, text, length, tokens, PERMISSIONS_TOKENS_MAX, &where) < 0)
        permissions_refuse(out, "codev.json:%u:%u: %s", where.line, where.column, where.reason);
    else
        apply_document(&document, out);
}
