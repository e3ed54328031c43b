/* Tables of the folders that mounts may use and of what they may not hide, and the walk along a
 * path. */
#include "common/wire/guest_path.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "common/os/cleanup.h"

#define DEVICES "/dev/"
#define TARGETS "/workspace, /home, /opt, /mnt, /srv or /run/codev"

/* The user's folders are mounted at or below these; everything else is the image's. */
static const char *const target_folders[] = {"/workspace", "/home", "/opt",
                                             "/mnt",       "/srv",  "/run/codev"};

/* codev-init writes its own files below /run/codev as root. */
static const char *const own_files[] = {"/run/codev/sandbox.json", "/run/codev/apt"};

const char *guest_path_fault(const char *path)
{
    if (path[0] != '/')
        return "is not absolute";
    if (path[1] == '\0')
        return NULL;
    for (const char *name = path; *name == '/';) {
        size_t length = strcspn(++name, "/");
        if (length == 0)
            return "has an empty name in it, or a slash at its end";
        if ((length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.'))
            return "has . or .. in it";
        if (length > NAME_MAX)
            return "has a name of more than 255 bytes in it";
        name += length;
    }
    return strlen(path) >= PATH_MAX ? "is longer than 4095 bytes" : NULL;
}

const char *guest_folder_fault(const char *path)
{
    const char *fault = guest_path_fault(path);

    return !fault && path[1] == '\0' ? "is the root folder" : fault;
}

const char *guest_target_fault(const char *path)
{
    const char *fault = guest_path_fault(path);
    bool allowed = false;

    if (fault)
        return fault;
    for (size_t i = 0; i < ARRAY_LENGTH(target_folders); i++)
        allowed = allowed || guest_path_is_below(path, target_folders[i]);
    if (!allowed)
        return "is not below " TARGETS;
    for (size_t i = 0; i < ARRAY_LENGTH(own_files); i++)
        if (guest_path_is_below(path, own_files[i]) || guest_path_is_below(own_files[i], path))
            return "would hide files of the sandbox's own";
    return NULL;
}

const char *guest_disk_name(const char *source)
{
    const size_t length = sizeof(DEVICES) - 1;

    if (strncmp(source, DEVICES, length) != 0 || guest_path_fault(source) ||
        strchr(source + length, '/'))
        return NULL;
    return source + length;
}

bool guest_path_is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    while (length > 0 && folder[length - 1] == '/')
        length--;
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}
