/* Finds the links of an HTML page: href of <a> and of <base>.
 *
 * The tokenizer of the WHATWG HTML standard (section 13.2.5) as far as it decides where tags and
 * attributes begin and end: comments, declarations, and the text of script, style, title and the
 * like hold no tags. Errors are recovered from as browsers do, so every page is read to its end.
 *
 * <base href> is rewritten like a link. From there on its origin is the one that links beginning
 * with a slash are resolved against.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_HTML_INTERNAL_H
#define HOST_BROKER_REWRITE_REWRITE_HTML_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"
#include "host-broker/rewrite/rewrite_stream_internal.h"

#define REWRITE_HTML_NAME_MAX 10 /* of tags and attributes that matter */

enum rewrite_html_state {
    REWRITE_HTML_TEXT,
    REWRITE_HTML_OPEN,     /* after "<" */
    REWRITE_HTML_END_OPEN, /* after "</" */
    REWRITE_HTML_TAG_NAME,
    REWRITE_HTML_BEFORE_NAME,  /* in a tag, between attributes */
    REWRITE_HTML_NAME,         /* in an attribute's name */
    REWRITE_HTML_AFTER_NAME,   /* white space after it */
    REWRITE_HTML_BEFORE_VALUE, /* after "=" */
    REWRITE_HTML_LINK,         /* in a value that is a link: the stream holds it */
    REWRITE_HTML_MARKUP,       /* after "<!" */
    /* In the following states most bytes can be skipped (skip_length). */
    REWRITE_HTML_VALUE, /* in a value that is no link */
    REWRITE_HTML_COMMENT,
    REWRITE_HTML_BOGUS, /* a declaration or the like, until ">" */
    REWRITE_HTML_RAW,   /* text of an element that holds no tags */
};

struct rewrite_html_name {
    char bytes[REWRITE_HTML_NAME_MAX]; /* lower case */
    size_t length;                     /* REWRITE_HTML_NAME_MAX + 1: longer than any that matters */
};

struct rewrite_html {
    enum rewrite_html_state state;
    bool end_tag;
    char quote; /* around the value; 0: none */
    struct rewrite_html_name tag, attribute, raw;
    size_t
        matched; /* MARKUP: hyphens; COMMENT: an enum of rewrite_html.c; RAW: bytes of "</name" */
    struct upstream_url base; /* the page's origin, or that of <base> */
};

/* Begins a page. The stream's origin becomes html->base. */
void rewrite_html_start(struct rewrite_html *html, struct rewrite_stream *stream);

/* Takes bytes while the output has REWRITE_STEP_ROOM. Returns how many. */
size_t rewrite_html_take(struct rewrite_html *html, struct rewrite_stream *stream, struct slice in,
                         struct rewrite_output *out);

#endif
