/* Entity tags of documents that were rewritten (RFC 9110 section 8.8.3).
 *
 * What the guest gets is the upstream's document seen through the rules, so its tag is made of both: of
 * "abc" it becomes W/"abc~codev-s-MARK", where MARK stands for the rules and the guest's URL (and for the
 * way we rewrite), and s or w for a tag that was strong or weak. It is weak: bytes are not the upstream's.
 *
 * When the guest asks If-None-Match, such a tag is restored to the upstream's own, so that a 304 comes
 * back as without us. One with another mark is left out: the guest's copy was made under other rules, its
 * links lead elsewhere, and it must be fetched again.
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

/* Writes the mark and a NUL. */
void rewrite_etag_mark(char mark[REWRITE_MARK_LENGTH + 1], const char *guest_url,
                       const struct rules *rules);

/* Writes the tag for the guest. Returns its length, or -EINVAL when `etag` is none, or too long. */
int rewrite_etag_derive(char out[REWRITE_ETAG_MAX], struct slice etag, const char *mark);

struct rewrite_match {
    bool restored; /* a tag of ours is in it: a 304 is about our document */
    bool dropped;  /* one of other rules was left out */
};

/* Writes what the upstream is asked for this value of If-None-Match. Returns its length, 0 when nothing
 * is left of it, or -EINVAL when it is malformed or too long (then pass it as it is). */
int rewrite_etag_restore(char out[REWRITE_MATCH_MAX], struct slice value, const char *mark,
                         struct rewrite_match *match);

#endif
