/* The Link header: only what stands between < and > is rewritten. */
#include "host-broker/rules/link_field.h"

#include <errno.h>
#include <limits.h>

#include "host-broker/http/url_reference.h"

/* The number of bytes before the "<" of the next link. A "<" in a quoted parameter begins none. */
static size_t length_between(struct slice rest)
{
    bool quoted = false;
    size_t at = 0;
    for (; at < rest.length; at++) {
        char byte = rest.bytes[at];
        if (quoted && byte == '\\')
            at++;
        else if (byte == '"')
            quoted = !quoted;
        else if (!quoted && byte == '<')
            break;
    }
    return at < rest.length ? at : rest.length;
}

static void append_target(struct url_text *out, struct slice target,
                          const struct location_context *context)
{
    static char url[3 * LOCATION_MAX];
    struct location_context declared = *context;
    declared.declared_only = true;
    bool malformed = target.length == 0 || memchr(target.bytes, '<', target.length);
    int length = malformed ? 0 : location_rewrite(url, sizeof(url), target, &declared);
    url_text_append(out, length > 0 ? (struct slice){url, (size_t)length} : target);
}

int link_field_rewrite(char *out, size_t size, struct slice value,
                       const struct location_context *context)
{
    struct url_text text = {.bytes = out, .size = size};
    while (value.length > 0) {
        size_t length = length_between(value);
        bool link = length < value.length;
        url_text_append(&text, (struct slice){value.bytes, link ? length + 1 : length});
        value.bytes += link ? length + 1 : length;
        value.length -= link ? length + 1 : length;
        const char *end = link && value.length > 0 ? memchr(value.bytes, '>', value.length) : NULL;
        if (!end)
            continue;
        struct slice target = {value.bytes, (size_t)(end - value.bytes)};
        append_target(&text, target, context);
        value.bytes += target.length;
        value.length -= target.length;
    }
    return text.overflow || text.length > INT_MAX ? -ENOSPC : (int)text.length;
}
