/* Links in HTML pages: one function for each state of the tokenizer. */
#include "host-broker/rewrite/rewrite_html_internal.h"

#include <stdint.h>

#include "common/os/cleanup.h"

/* Elements whose content is text, up to their own end tag (section 13.1.2). */
static const struct slice raw_elements[] = {
    SLICE_LITERAL("script"),   SLICE_LITERAL("style"),    SLICE_LITERAL("title"),
    SLICE_LITERAL("textarea"), SLICE_LITERAL("xmp"),      SLICE_LITERAL("iframe"),
    SLICE_LITERAL("noembed"),  SLICE_LITERAL("noframes"),
};

void rewrite_html_start(struct rewrite_html *html, struct rewrite_stream *stream)
{
    *html = (struct rewrite_html){.base = *stream->context.origin};
    stream->context.origin = &html->base;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f';
}

static bool is_letter(char byte)
{
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'z';
}

static void name_add(struct rewrite_html_name *name, char byte)
{
    if (name->length < REWRITE_HTML_NAME_MAX)
        name->bytes[name->length++] = ascii_lower(byte);
    else
        name->length = REWRITE_HTML_NAME_MAX + 1;
}

static bool name_is(const struct rewrite_html_name *name, struct slice text)
{
    return slice_equal((struct slice){name->bytes, name->length}, text);
}

static bool is_raw(const struct rewrite_html_name *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(raw_elements); i++)
        if (name_is(name, raw_elements[i]))
            return true;
    return false;
}

static bool is_base(const struct rewrite_html *html)
{
    return name_is(&html->tag, SLICE_LITERAL("base"));
}

static bool value_is_link(const struct rewrite_html *html)
{
    return !html->end_tag && name_is(&html->attribute, SLICE_LITERAL("href")) &&
           (is_base(html) || name_is(&html->tag, SLICE_LITERAL("a")));
}

static void end_tag(struct rewrite_html *html)
{
    html->state = REWRITE_HTML_TEXT;
    if (!html->end_tag && is_raw(&html->tag)) {
        html->raw = html->tag;
        html->matched = 0;
        html->state = REWRITE_HTML_RAW;
    }
}

static void begin_tag(struct rewrite_html *html, char byte, bool end)
{
    html->end_tag = end;
    html->tag.length = 0;
    name_add(&html->tag, byte);
    html->state = REWRITE_HTML_TAG_NAME;
}

/* One step takes one byte in one state. False: the byte is not consumed, and the new state takes
 * it. */

static bool step_open(struct rewrite_html *html, char byte)
{
    if (is_letter(byte)) {
        begin_tag(html, byte, false);
        return true;
    }
    html->matched = 0;
    html->state = byte == '/'   ? REWRITE_HTML_END_OPEN
                  : byte == '!' ? REWRITE_HTML_MARKUP
                  : byte == '?' ? REWRITE_HTML_BOGUS
                                : REWRITE_HTML_TEXT;
    return html->state != REWRITE_HTML_TEXT;
}

static bool step_end_open(struct rewrite_html *html, char byte)
{
    if (is_letter(byte))
        begin_tag(html, byte, true);
    else
        html->state = byte == '>' ? REWRITE_HTML_TEXT : REWRITE_HTML_BOGUS;
    return true;
}

static bool step_tag_name(struct rewrite_html *html, char byte)
{
    if (byte == '>')
        end_tag(html);
    else if (is_blank(byte) || byte == '/')
        html->state = REWRITE_HTML_BEFORE_NAME;
    else
        name_add(&html->tag, byte);
    return true;
}

static bool step_before_name(struct rewrite_html *html, char byte)
{
    if (byte == '>') {
        end_tag(html);
    } else if (!is_blank(byte) && byte != '/') {
        html->attribute.length = 0;
        name_add(&html->attribute, byte); /* even if it is "=" */
        html->state = REWRITE_HTML_NAME;
    }
    return true;
}

static bool step_name(struct rewrite_html *html, char byte)
{
    if (byte == '=')
        html->state = REWRITE_HTML_BEFORE_VALUE;
    else if (is_blank(byte))
        html->state = REWRITE_HTML_AFTER_NAME;
    else if (byte == '/' || byte == '>')
        html->state = REWRITE_HTML_BEFORE_NAME;
    else
        name_add(&html->attribute, byte);
    return byte != '/' && byte != '>';
}

static bool step_after_name(struct rewrite_html *html, char byte)
{
    if (is_blank(byte))
        return true;
    html->state = byte == '=' ? REWRITE_HTML_BEFORE_VALUE : REWRITE_HTML_BEFORE_NAME;
    return byte == '=';
}

static bool step_before_value(struct rewrite_html *html, char byte)
{
    if (is_blank(byte))
        return true;
    if (byte == '>') {
        html->state = REWRITE_HTML_BEFORE_NAME;
        return false;
    }
    html->quote = byte == '"' || byte == '\'' ? byte : '\0';
    html->state = value_is_link(html) ? REWRITE_HTML_LINK : REWRITE_HTML_VALUE;
    return html->quote != '\0';
}

static bool ends_value(const struct rewrite_html *html, char byte)
{
    return html->quote != '\0' ? byte == html->quote : is_blank(byte) || byte == '>';
}

static bool step_value(struct rewrite_html *html, char byte)
{
    if (!ends_value(html, byte))
        return true;
    html->state = REWRITE_HTML_BEFORE_NAME;
    return html->quote != '\0';
}

/* How much of a comment's end, or of its start, the last bytes of the comment are. */
enum {
    NOTHING,
    HYPHEN,       /* "-" */
    HYPHENS,      /* "--" */
    BANG,         /* "--!" */
    START,        /* "<!--" */
    START_HYPHEN, /* "<!---" */
};

static bool step_markup(struct rewrite_html *html, char byte)
{
    if (byte != '-') {
        html->state = REWRITE_HTML_BOGUS;
        return false;
    }
    if (++html->matched == 2) {
        html->state = REWRITE_HTML_COMMENT;
        html->matched = START;
    }
    return true;
}

/* "-->" and "--!>" end it; "<!-->" and "<!--->" are complete comments. */
static bool step_comment(struct rewrite_html *html, char byte)
{
    static const uint8_t after_hyphen[] = {
        [NOTHING] = HYPHEN, [HYPHEN] = HYPHENS,     [HYPHENS] = HYPHENS,
        [BANG] = HYPHEN,    [START] = START_HYPHEN, [START_HYPHEN] = HYPHENS,
    };
    if (byte == '>' && html->matched >= HYPHENS)
        html->state = REWRITE_HTML_TEXT;
    else if (byte == '-')
        html->matched = after_hyphen[html->matched];
    else
        html->matched = byte == '!' && html->matched == HYPHENS ? BANG : NOTHING;
    return true;
}

static bool step_bogus(struct rewrite_html *html, char byte)
{
    if (byte == '>')
        html->state = REWRITE_HTML_TEXT;
    return true;
}

/* Looks for "</name" followed by white space, "/" or ">". */
static bool step_raw(struct rewrite_html *html, char byte)
{
    size_t matched = html->matched;
    html->matched = byte == '<' ? 1 : 0;
    if (matched == 1 && byte == '/') {
        html->matched = 2;
    } else if (matched >= 2 && matched < html->raw.length + 2) {
        if (ascii_lower(byte) == html->raw.bytes[matched - 2])
            html->matched = matched + 1;
    } else if (matched > 2 && (is_blank(byte) || byte == '/' || byte == '>')) {
        html->tag = html->raw;
        html->end_tag = true;
        html->state = REWRITE_HTML_BEFORE_NAME;
        return false;
    }
    return true;
}

static bool step(struct rewrite_html *html, char byte)
{
    switch (html->state) {
    case REWRITE_HTML_OPEN:
        return step_open(html, byte);
    case REWRITE_HTML_END_OPEN:
        return step_end_open(html, byte);
    case REWRITE_HTML_TAG_NAME:
        return step_tag_name(html, byte);
    case REWRITE_HTML_BEFORE_NAME:
        return step_before_name(html, byte);
    case REWRITE_HTML_NAME:
        return step_name(html, byte);
    case REWRITE_HTML_AFTER_NAME:
        return step_after_name(html, byte);
    case REWRITE_HTML_BEFORE_VALUE:
        return step_before_value(html, byte);
    case REWRITE_HTML_VALUE:
        return step_value(html, byte);
    case REWRITE_HTML_MARKUP:
        return step_markup(html, byte);
    case REWRITE_HTML_COMMENT:
        return step_comment(html, byte);
    case REWRITE_HTML_BOGUS:
        return step_bogus(html, byte);
    case REWRITE_HTML_RAW:
        return step_raw(html, byte);
    case REWRITE_HTML_TEXT:
    case REWRITE_HTML_LINK:
        break;
    }
    return true;
}

static size_t take_text(struct rewrite_html *html, struct slice in, struct rewrite_output *out)
{
    const char *open = memchr(in.bytes, '<', in.length);
    size_t length = open ? (size_t)(open - in.bytes) + 1 : in.length;
    if (open)
        html->state = REWRITE_HTML_OPEN;
    rewrite_emit(out, in.bytes, length);
    return length;
}

/* How many bytes change nothing in this state. */
static size_t skip_length(const struct rewrite_html *html, struct slice in)
{
    char end = '\0';
    if (html->state == REWRITE_HTML_VALUE)
        end = html->quote;
    else if (html->state == REWRITE_HTML_BOGUS)
        end = '>';
    else if (html->matched == 0)
        end = html->state == REWRITE_HTML_RAW ? '<' : '-';
    if (end == '\0')
        return 0;
    const char *found = memchr(in.bytes, end, in.length);
    return found ? (size_t)(found - in.bytes) : in.length;
}

/* Takes letters and hyphens of an attribute's name: the names in Python's indices are long. */
static size_t take_name(struct rewrite_html *html, struct slice in)
{
    size_t length = 0;
    while (length < in.length && (is_letter(in.bytes[length]) || in.bytes[length] == '-'))
        length++;
    for (size_t i = 0; i < length && html->attribute.length <= REWRITE_HTML_NAME_MAX; i++)
        name_add(&html->attribute, in.bytes[i]);
    return length;
}

/* Passes on markup up to the next text or link. */
static size_t take_markup(struct rewrite_html *html, struct slice in, struct rewrite_output *out)
{
    size_t at = 0;
    while (at < in.length && html->state != REWRITE_HTML_TEXT && html->state != REWRITE_HTML_LINK) {
        struct slice rest = {in.bytes + at, in.length - at};
        if (html->state >= REWRITE_HTML_VALUE)
            at += skip_length(html, rest);
        else if (html->state == REWRITE_HTML_NAME)
            at += take_name(html, rest);
        if (at < in.length)
            at += step(html, in.bytes[at]);
    }
    rewrite_emit(out, in.bytes, at);
    return at;
}

/* How many bytes come before the end of the value. */
static size_t value_length(const struct rewrite_html *html, struct slice in)
{
    size_t length = 0;
    if (html->quote != '\0') {
        const char *end = memchr(in.bytes, html->quote, in.length);
        return end ? (size_t)(end - in.bytes) : in.length;
    }
    while (length < in.length && !ends_value(html, in.bytes[length]))
        length++;
    return length;
}

/* Takes bytes of a link. */
static size_t take_link(struct rewrite_html *html, struct rewrite_stream *stream, struct slice in,
                        struct rewrite_output *out)
{
    if (in.length > REWRITE_LINK_GROWTH)
        in.length = REWRITE_LINK_GROWTH; /* with what is held, at most REWRITE_STEP_ROOM */
    size_t length = value_length(html, in);
    if (!rewrite_hold(stream, in.bytes, length, out)) {
        html->state = REWRITE_HTML_VALUE;
        return length;
    }
    if (length < in.length) {
        rewrite_release(stream, &rewrite_html_notation, out, is_base(html) ? &html->base : NULL);
        html->state = REWRITE_HTML_VALUE;
    }
    return length;
}

size_t rewrite_html_take(struct rewrite_html *html, struct rewrite_stream *stream, struct slice in,
                         struct rewrite_output *out)
{
    size_t at = 0;
    while (at < in.length && rewrite_room(out) >= REWRITE_STEP_ROOM) {
        struct slice rest = {in.bytes + at, in.length - at};
        if (rest.length > rewrite_room(out))
            rest.length = rewrite_room(out);
        if (html->state == REWRITE_HTML_TEXT)
            at += take_text(html, rest, out);
        else if (html->state == REWRITE_HTML_LINK)
            at += take_link(html, stream, rest, out);
        else
            at += take_markup(html, rest, out);
    }
    return at;
}
