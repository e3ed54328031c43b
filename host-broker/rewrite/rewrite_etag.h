/* Entity tags of rewritten documents (RFC 9110 section 8.8.3).
 *
 * A rewritten document depends on the upstream's document and on the rules, and so does its tag:
 * "abc" becomes W/"abc~codev-s-MARK". MARK is a hash of the rules, the guest's URL and the version
 * of the rewriter; `s` or `w` says whether the upstream's tag was strong or weak. The new tag is
 * weak, because the bytes are not the upstream's.
 *
 * In If-None-Match such a tag is restored to the upstream's own, so that 304 works as without a
 * broker. A tag with another mark is left out: that copy was made under other rules, its links lead
 * elsewhere, and it must be fetched again.
 */
#ifndef HOST_BROKER_REWRITE_REWRITE_ETAG_H
#define HOST_BROKER_REWRITE_REWRITE_ETAG_H

#include <stdbool.h>
#include <stddef.h>

#include "host-broker/base/slice.h"
#include "host-broker/rules/rules.h"

#define REWRITE_MARK_LENGTH 16
#define REWRITE_ETAG_MAX 1024 /* a longer one is dropped */
#define REWRITE_MATCH_MAX 8192

/* Writes MARK and a NUL. */
void rewrite_etag_mark(char mark[REWRITE_MARK_LENGTH + 1], const char *guest_url,
                       const struct rules *rules);

/* Writes the tag for the guest. Returns its length, or -EINVAL when `etag` is malformed or too
 * long. */
int rewrite_etag_derive(char out[REWRITE_ETAG_MAX], struct slice etag, const char *mark);

struct rewrite_match {
    bool restored; /* it had a tag of a rewritten document: a 304 is about that one */
    bool dropped;  /* a tag made under other rules was left out */
};

/* Writes the upstream's If-None-Match for the guest's. Returns its length, 0 when no tag is left,
 * or -EINVAL when the value is malformed or too long and is to be passed on unchanged. */
int rewrite_etag_restore(char out[REWRITE_MATCH_MAX], struct slice value, const char *mark,
                         struct rewrite_match *match);

#endif
