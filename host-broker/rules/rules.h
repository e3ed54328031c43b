/* sandbox-egress.json: the upstreams that a sandbox may reach besides the gateway, by name.
 *
 * The file is one JSON object of name to URL. It is read once, at the start: what a sandbox may
 * reach does not change while it runs. The syntax is strictly that of RFC 8259, except that a UTF-8
 * byte order mark is skipped. Any error in the file ends the start with FILE:LINE:COLUMN and the
 * reason. A file without rules ({}) is valid.
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
#define RULES_TOKENS_MAX 4096 /* JSON tokens of a file: more than RULES_MAX rules need */

struct rule {
    char name[RULE_NAME_MAX + 1]; /* [a-z0-9][a-z0-9._-]{0,63}, never `gateway` */
    struct upstream_url url;
};

/* About 1.4 MiB, to be used as one static object; memory that the file does not fill is not
 * touched. */
struct rules {
    size_t count;
    struct rule rules[RULES_MAX]; /* in the file's order */
    uint16_t by_name[RULES_MAX];  /* sorted indices, with `above` described in rules_index.c */
    uint16_t by_address[RULES_MAX];
    uint16_t above[RULES_MAX];
};

/* Parses a text; `file` is its name in messages. 0, or -EINVAL with "FILE:LINE:COLUMN: reason", and
 * *out is empty. */
int rules_parse(struct rules *out, const char *file, const char *text, size_t length,
                struct failure *why);

/* Opens, checks and parses a file. It must be a regular file of at most RULES_FILE_MAX bytes, owned
 * by the user or root, and not writable by others, nor by a group unless it is the owner's private
 * one (the owner's primary group, of the same name, without other members). 0, or a negative errno
 * with a reason, and *out is empty; -ENOENT when the file does not exist. */
int rules_load(struct rules *out, const char *path, struct failure *why);

/* The rule called `name`, or NULL. */
const struct rule *rules_find(const struct rules *rules, struct slice name);

/* The rule under which `path` of `origin` lies, or NULL. *rest is the part of `path` after the
 * rule's path: empty, or with a leading slash. Of several rules the longest path wins, then
 * `preferred`, then the file's order. Paths are compared in their normal form (RFC 3986 section
 * 6.2.2). `path` is clean and has no dot segments. */
const struct rule *rules_find_address(const struct rules *rules, const struct rule *preferred,
                                      const struct upstream_url *origin, struct slice path,
                                      struct slice *rest);

/* Builds the sorted indices. rules_parse calls it. */
void rules_sort(struct rules *rules);

/* Writes the next warning, with a NUL: a rule with an http URL; pypi.org without
 * files.pythonhosted.org, where its links lead. *cursor begins with 0. False when there are no
 * more. */
bool rules_warning(const struct rules *rules, size_t *cursor, char *out, size_t size);

/* Checks a name: NULL, or why it is refused. */
const char *rules_check_name(struct slice name);

#endif
