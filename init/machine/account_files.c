/* /etc/passwd and /etc/group as text.
 *
 * A line is split into slices of the text. Nothing is changed in place. A line with too few fields
 * is skipped in a search and copied unchanged.
 */
#include "init/machine/account_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PASSWD_FIELDS 7 /* name:password:uid:gid:comment:home:shell, passwd(5) */
#define GROUP_FIELDS 4  /* name:password:gid:members, group(5) */

enum passwd_field {
    PASSWD_NAME,
    PASSWD_PASSWORD,
    PASSWD_UID,
    PASSWD_GID,
    PASSWD_COMMENT,
    PASSWD_HOME,
    PASSWD_SHELL
};
enum group_field { GROUP_NAME, GROUP_PASSWORD, GROUP_GID, GROUP_MEMBERS };

struct slice {
    const char *start;
    size_t length;
};

/* One line, cut at its colons. `text` moves behind it. */
struct line {
    struct slice whole, fields[PASSWD_FIELDS];
    unsigned count;
};

static bool line_next(const char **text, struct line *line)
{
    if (**text == '\0')
        return false;
    size_t length = strcspn(*text, "\n");
    const char *field = *text, *end = *text + length;

    line->whole = (struct slice){*text, length};
    line->count = 0;
    while (line->count < PASSWD_FIELDS) {
        const char *colon = memchr(field, ':', (size_t)(end - field));
        const char *stop = !colon ? end : colon;
        line->fields[line->count++] = (struct slice){field, (size_t)(stop - field)};
        if (!colon)
            break;
        field = colon + 1;
    }
    *text = end + (*end == '\n');
    return true;
}

static bool slice_equals(struct slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.start, text, slice.length) == 0;
}

/* A decimal id below 2^32 - 1 (which stands for "no id" in system calls). */
static bool slice_id(struct slice slice, uint32_t *id)
{
    uint64_t value = 0;

    if (slice.length == 0 || slice.length > 10)
        return false;
    for (size_t i = 0; i < slice.length; i++) {
        if (slice.start[i] < '0' || slice.start[i] > '9')
            return false;
        value = value * 10 + (uint64_t)(slice.start[i] - '0');
    }
    *id = (uint32_t)value;
    return value < UINT32_MAX;
}

static bool slice_copy(struct slice slice, char out[ACCOUNT_TEXT_MAX])
{
    if (slice.length >= ACCOUNT_TEXT_MAX)
        return false;
    memcpy(out, slice.start, slice.length);
    out[slice.length] = '\0';
    return true;
}

int passwd_find(const char *text, const char *name, struct account *out)
{
    struct line line;
    struct account found;
    uint32_t uid, gid;

    while (line_next(&text, &line)) {
        if (!slice_equals(line.fields[PASSWD_NAME], name))
            continue;
        if (line.count != PASSWD_FIELDS || !slice_id(line.fields[PASSWD_UID], &uid) ||
            !slice_id(line.fields[PASSWD_GID], &gid) ||
            !slice_copy(line.fields[PASSWD_NAME], found.name) ||
            !slice_copy(line.fields[PASSWD_HOME], found.home) ||
            !slice_copy(line.fields[PASSWD_SHELL], found.shell))
            return -EINVAL;
        found.uid = uid;
        found.gid = gid;
        *out = found;
        return 0;
    }
    return -ENOENT;
}

static int other_with_id(const char *text, const char *name, enum passwd_field field, uint32_t id,
                         char owner[ACCOUNT_TEXT_MAX])
{
    struct line line;
    uint32_t its_id;

    while (line_next(&text, &line)) {
        if (line.count == PASSWD_FIELDS && !slice_equals(line.fields[PASSWD_NAME], name) &&
            slice_id(line.fields[field], &its_id) && its_id == id &&
            slice_copy(line.fields[PASSWD_NAME], owner))
            return 1;
    }
    return 0;
}

int passwd_uid_owner(const char *text, const char *name, uid_t uid, char owner[ACCOUNT_TEXT_MAX])
{
    return other_with_id(text, name, PASSWD_UID, uid, owner);
}

int passwd_gid_owner(const char *text, const char *name, gid_t gid, char owner[ACCOUNT_TEXT_MAX])
{
    return other_with_id(text, name, PASSWD_GID, gid, owner);
}

/* Appends with a sticky overflow, checked once at the end. */
struct output {
    char *bytes;
    size_t size, length;
    bool overflow;
};

static void put(struct output *out, const char *bytes, size_t length)
{
    if (out->overflow || length >= out->size - out->length) {
        out->overflow = true;
        return;
    }
    memcpy(out->bytes + out->length, bytes, length);
    out->length += length;
    out->bytes[out->length] = '\0';
}

/* The line with `text` in place of the fields from `first` to `last`. */
static void put_replaced(struct output *out, const struct line *line, unsigned first, unsigned last,
                         const char *text)
{
    const char *end = line->whole.start + line->whole.length;
    const char *behind = line->fields[last].start + line->fields[last].length;

    put(out, line->whole.start, (size_t)(line->fields[first].start - line->whole.start));
    put(out, text, strlen(text));
    put(out, behind, (size_t)(end - behind));
}

static int put_done(const struct output *out)
{
    out->bytes[out->length] = '\0'; /* also of nothing at all; put() left room */
    return out->overflow ? -ENOSPC : (int)out->length;
}

int passwd_rewrite(char *out, size_t size, const char *text, const char *name, uid_t uid, gid_t gid)
{
    struct output output = {.bytes = out, .size = size};
    struct line line;
    char ids[32];

    snprintf(ids, sizeof(ids), "%u:%u", uid, gid);
    while (line_next(&text, &line)) {
        if (line.count == PASSWD_FIELDS && slice_equals(line.fields[PASSWD_NAME], name))
            put_replaced(&output, &line, PASSWD_UID, PASSWD_GID, ids);
        else
            put(&output, line.whole.start, line.whole.length);
        put(&output, "\n", 1);
    }
    return put_done(&output);
}

int group_rewrite(char *out, size_t size, const char *text, gid_t old_gid, gid_t new_gid)
{
    struct output output = {.bytes = out, .size = size};
    struct line line;
    uint32_t gid;
    char id[16];

    snprintf(id, sizeof(id), "%u", new_gid);
    while (line_next(&text, &line)) {
        if (line.count == GROUP_FIELDS && slice_id(line.fields[GROUP_GID], &gid) && gid == old_gid)
            put_replaced(&output, &line, GROUP_GID, GROUP_GID, id);
        else
            put(&output, line.whole.start, line.whole.length);
        put(&output, "\n", 1);
    }
    return put_done(&output);
}
