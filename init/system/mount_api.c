/* The kernel's mount interface by file descriptors, as system calls. */
#include "init/system/mount_api.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"

static_assert(MOUNT_FLAG_READONLY == MOUNT_ATTR_RDONLY, "linux/mount.h");
static_assert(MOUNT_FLAG_NOSUID == MOUNT_ATTR_NOSUID, "linux/mount.h");
static_assert(MOUNT_FLAG_NODEV == MOUNT_ATTR_NODEV, "linux/mount.h");
static_assert(MOUNT_FLAG_NOEXEC == MOUNT_ATTR_NOEXEC, "linux/mount.h");

static int result_or_errno(long result)
{
    return result < 0 ? -errno : (int)result;
}

static int configure(int context, unsigned command, const char *key, const char *value)
{
    return result_or_errno(syscall(SYS_fsconfig, context, command, key, value, 0));
}

int mount_context_open(const char *filesystem)
{
    return result_or_errno(syscall(SYS_fsopen, filesystem, FSOPEN_CLOEXEC));
}

int mount_context_string(int context, const char *key, const char *value)
{
    return configure(context, FSCONFIG_SET_STRING, key, value);
}

int mount_context_flag(int context, const char *key)
{
    return configure(context, FSCONFIG_SET_FLAG, key, NULL);
}

int mount_context_create(int context, unsigned flags)
{
    int result = configure(context, FSCONFIG_CMD_CREATE, NULL, NULL);

    if (result < 0)
        return result;
    return result_or_errno(syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, flags));
}

/* read(2) on a context returns its messages one by one: "e ", "w " or "i ", then the text. */
void mount_context_reason(int context, char *out, size_t size)
{
    char message[256];
    ssize_t length;

    out[0] = '\0';
    while ((length = read(context, message, sizeof(message) - 1)) > 0) {
        message[length] = '\0';
        message[strcspn(message, "\n")] = '\0';
        if (message[0] != 'e' || message[1] != ' ')
            continue;
        size_t take = strnlen(message + 2, size - 1);
        memcpy(out, message + 2, take);
        out[take] = '\0';
    }
}

int mount_copy_tree(int directory, unsigned flags)
{
    struct mount_attr attributes = {.attr_set = flags};
    CLEANUP_FD int tree = result_or_errno(
        syscall(SYS_open_tree, directory, "",
                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE));

    if (tree < 0)
        return tree;
    int result = result_or_errno(syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
                                         &attributes, sizeof(attributes)));
    return result < 0 ? result : fd_steal(&tree);
}

int mount_attach(int mount, int target)
{
    return result_or_errno(syscall(SYS_move_mount, mount, "", target, "",
                                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int mount_make_readonly(int mount)
{
    CLEANUP_FD int context =
        result_or_errno(syscall(SYS_fspick, mount, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));

    if (context < 0)
        return context;
    int result = mount_context_flag(context, "ro");
    return result < 0 ? result : configure(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL);
}
