/* Which attributes of an HTML page are links: href of <a> and of <base>.
 *
 * The tokenizer of the WHATWG's HTML standard (section 13.2.5) as far as it decides where tags and
 * attributes begin and end: comments, declarations, and the text of script, style, title and the like are
 * no tags. What browsers repair is repaired the same way, so every page can be read to its end.
 *
 * <base href> is rewritten like a link, and from there on links that begin with a slash are judged by its
 * origin.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_HTML_H
#define HOST_BROKER_REWRITE_REWRITE_HTML_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

#define REWRITE_HTML_NAME_MAX 10 /* of tags and attributes that matter */

struct rewrite;
struct rewrite_output;

enum rewrite_html_state {
    REWRITE_HTML_TEXT,
    REWRITE_HTML_OPEN,     /* behind "<" */
    REWRITE_HTML_END_OPEN, /* behind "</" */
    REWRITE_HTML_TAG_NAME,
    REWRITE_HTML_BEFORE_NAME,  /* in a tag, between attributes */
    REWRITE_HTML_NAME,         /* of an attribute */
    REWRITE_HTML_AFTER_NAME,   /* white space behind one */
    REWRITE_HTML_BEFORE_VALUE, /* behind "=" */
    REWRITE_HTML_LINK,         /* `held` collects */
    REWRITE_HTML_MARKUP,       /* behind "<!" */
    /* from here on, most bytes mean nothing */
    REWRITE_HTML_VALUE, /* no link */
    REWRITE_HTML_COMMENT,
    REWRITE_HTML_BOGUS, /* a declaration or the like, until ">" */
    REWRITE_HTML_RAW,   /* text of an element that holds no tags */
};

struct rewrite_html_name {
    char bytes[REWRITE_HTML_NAME_MAX]; /* lower case */
    size_t length;                     /* more than there is room for: too long to matter */
};

struct rewrite_html {
    enum rewrite_html_state state;
    bool end_tag;
    char quote; /* of the value, 0 for none */
    struct rewrite_html_name tag, attribute, raw;
    size_t matched; /* MARKUP: hyphens; COMMENT: what of its end; RAW: bytes of "</name" */
    struct upstream_url base; /* the page's own origin, or that of <base> */
};

void rewrite_html_start(struct rewrite *rewrite);
size_t rewrite_html_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out);

#endif
