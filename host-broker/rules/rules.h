/* sandbox-egress.json: the names under which a sandbox reaches anything besides the gateway.
 *
 * One JSON object, name to URL, read once at the start; a change needs a new broker, so that what a
 * sandbox may reach never moves under it. RFC 8259 strictly, but for a UTF-8 byte order mark. Whatever
 * is wrong with the file ends the start with FILE:LINE:COLUMN and the reason: a list that cannot be
 * read must be taken neither as empty nor as anything else. A file with no rule in it ({}) is fine.
 */
#ifndef HOST_BROKER_RULES_RULES_H
#define HOST_BROKER_RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/os/failure.h"
#include "common/wire/protocol.h"
#include "host-broker/base/slice.h"
#include "host-broker/http/upstream_url.h"

#define RULES_FILE_NAME "sandbox-egress.json"
#define RULES_FILE_MAX (512 * 1024)
#define RULES_TOKENS_MAX 4096 /* of a file: more than RULES_MAX rules have */

struct rule {
    char name[RULE_NAME_MAX + 1]; /* [a-z0-9][a-z0-9._-]{0,63}, never `gateway` */
    struct upstream_url url;
};

/* Large (about 1.4 MiB, of which what the file fills is used): one static object. Found by name and by address in a
 * time that hardly grows with their number, since each link of a document is looked up. */
struct rules {
    size_t count;
    struct rule rules[RULES_MAX]; /* in the file's order */
    uint16_t by_name[RULES_MAX];  /* indices, sorted: see rules_index.c */
    uint16_t by_address[RULES_MAX];
    uint16_t above[RULES_MAX];
};

/* Parses a text; `file` is its name in messages. 0, or -EINVAL with "FILE:LINE:COLUMN: reason"; *out
 * then holds no rule. */
int rules_parse(struct rules *out, const char *file, const char *text, size_t length,
                struct failure *why);

/* Opens, checks and parses a file. The checks are made on the opened descriptor: a regular file of at
 * most RULES_FILE_MAX, owned by the user or root, not writable by others, nor by a group unless it is
 * the owner's private one (his primary group, named as he is, with no other member). 0; -ENOENT when
 * there is no such file; else a negative errno; always with a reason, and *out then holds no rule. */
int rules_load(struct rules *out, const char *path, struct failure *why);

/* The rule called `name`, or NULL. */
const struct rule *rules_find(const struct rules *rules, struct slice name);

/* The rule under which `path` of `origin` lies, or NULL; *rest is then what follows the rule's path in this one (empty
 * or with a leading slash). Of several the one that lies deepest wins, then `preferred`, then the file's order. Paths are
 * compared in their normal form (RFC 3986 section 6.2.2). The path is clean and has no dot segments. */
const struct rule *rules_find_address(const struct rules *rules, const struct rule *preferred,
                                      const struct upstream_url *origin, struct slice path,
                                      struct slice *rest);

/* Makes both orders anew: what rules_parse does last. */
void rules_sort(struct rules *rules);

/* What an administrator should know though it is no error: an http upstream; pypi.org without
 * files.pythonhosted.org, to which its links point. Start with *cursor 0; each call that returns true
 * has written one warning (with a NUL), false is the end. */
bool rules_warning(const struct rules *rules, size_t *cursor, char *out, size_t size);

/* Checks a name: NULL, or what is wrong with it in words. */
const char *rules_check_name(struct slice name);

#endif
