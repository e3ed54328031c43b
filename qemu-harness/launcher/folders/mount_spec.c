/* Splits a mount at its colons and removes the backslashes of escapes. */
#include "qemu-harness/launcher/folders/mount_spec.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/wire/guest_path.h"

/* True when a backslash before the character at `at` escapes it. */
static bool mount_spec_escaped(const char *text, size_t at)
{
    size_t backslashes = 0;
    while (at > backslashes && text[at - backslashes - 1] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

/* The length without a trailing `:ro` or `:rw`. */
static size_t mount_spec_cut_mode(const char *text, bool *readonly)
{
    size_t length = strlen(text);
    *readonly = false;
    if (length < 3 || mount_spec_escaped(text, length - 3))
        return length;
    if (strcmp(text + length - 3, ":ro") == 0)
        *readonly = true;
    else if (strcmp(text + length - 3, ":rw") != 0)
        return length;
    return length - 3;
}

/* Offset of the separator before the guest path, or `length` when there is none. */
static size_t mount_spec_separator(const char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (text[i] == ':' && text[i + 1] == '/' && !mount_spec_escaped(text, i))
            return i;
    return length;
}

static int mount_spec_unescape(char out[PATH_MAX], const char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\' && i + 1 < length && (text[i + 1] == ':' || text[i + 1] == '\\'))
            i++;
        if (used + 1 >= PATH_MAX)
            return -ENAMETOOLONG;
        out[used++] = text[i];
    }
    out[used] = '\0';
    return 0;
}

int mount_spec_parse(struct mount_spec *out, const char *text, struct failure *why)
{
    struct mount_spec spec = {.host = "", .guest = ""};
    size_t length = mount_spec_cut_mode(text, &spec.readonly);
    size_t separator = mount_spec_separator(text, length);
    int result = mount_spec_unescape(spec.host, text, separator);
    if (!result && separator < length)
        result = mount_spec_unescape(spec.guest, text + separator + 1, length - separator - 1);
    if (result)
        return failure_set(why, ENAMETOOLONG, "--mount %.64s...: path longer than %d bytes", text,
                           PATH_MAX - 1);
    if (!spec.host[0])
        return failure_set(why, EINVAL, "--mount %s: no host folder in it", text);
    size_t guest_length = strlen(spec.guest);
    while (guest_length > 1 && spec.guest[guest_length - 1] == '/')
        spec.guest[--guest_length] = '\0';
    const char *fault = spec.guest[0] ? guest_folder_fault(spec.guest) : NULL;
    if (fault)
        return failure_set(why, EINVAL, "--mount %s: the guest path %s", text, fault);
    *out = spec;
    return 0;
}

/* The last component of a path, without trailing slashes. */
static const char *last_component(const char *path, size_t *length)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    *length = end - start;
    return path + start;
}

int mount_spec_default_guest(struct mount_spec *spec, const char *real, struct failure *why)
{
    if (spec->guest[0])
        return 0;
    size_t length;
    const char *name = last_component(spec->host, &length);
    if (length == 0 || (length <= 2 && strncmp(name, "..", length) == 0))
        name = last_component(real, &length);
    if (length == 0)
        return failure_set(
            why, EINVAL,
            "--mount %s: the folder has no name: add a guest path (HOST:/workspace/NAME)",
            spec->host);
    int written = snprintf(spec->guest, sizeof(spec->guest), "/workspace/%.*s", (int)length, name);
    if (written < 0 || (size_t)written >= sizeof(spec->guest))
        return failure_set(why, ENAMETOOLONG, "--mount %s: the guest path is too long", spec->host);
    return 0;
}
