/* Chooses and takes ids. Capabilities are set by the raw system call, which saves a dependency on
 * libcap. */
#include "qemu-harness/launcher/folders/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qemu-harness/launcher/folders/set_uid_filter.h"

#define DEFAULT_ID 1000

void account_choose(struct account *account, const struct mount_table *mounts)
{
    *account = (struct account){.uid = geteuid(), .gid = getegid()};
    if (account->uid != 0)
        return;
    *account = (struct account){.uid = DEFAULT_ID, .gid = DEFAULT_ID};
    for (unsigned i = 0; i < mounts->count; i++) {
        const struct mount *mount = &mounts->entries[i];
        if (mount->spec.readonly || mount->uid == 0)
            continue;
        account->uid = mount->uid;
        account->gid = mount->gid;
        struct passwd *entry = mount->gid == 0 ? getpwuid(mount->uid) : NULL;
        if (mount->gid ==
            0) /* a user's folder that belongs to root's group: the user's own group instead */
            account->gid = entry && entry->pw_gid ? entry->pw_gid : (gid_t)mount->uid;
        return;
    }
}

static int set_capabilities(uint32_t low_bits)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = low_bits, .permitted = low_bits, .inheritable = low_bits}};
    return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static int has_capability(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &header, data))
        return 0;
    return (data[0].effective >> capability) & 1;
}

/* With an empty bounding set, executing a program as uid 0 gives no capability back. */
static int empty_bounding_set(uint32_t kept)
{
    if (!has_capability(CAP_SETPCAP))
        return 0; /* an ordinary user: no_new_privs has the same effect */
    for (unsigned capability = 0; capability < 64; capability++) {
        if (capability < 32 && (kept >> capability) & 1)
            continue;
        if (prctl(PR_CAPBSET_DROP, capability) && errno != EINVAL) /* EINVAL: beyond the last */
            return -errno;
    }
    return 0;
}

static int raise_ambient(uint32_t kept)
{
    for (unsigned capability = 0; capability < 32; capability++)
        if ((kept >> capability) & 1 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0))
            return -errno;
    return 0;
}

static int take_ids(const struct identity *identity, struct failure *why)
{
    size_t groups = identity->extra_group != (gid_t)-1;
    if (setgroups(groups, &identity->extra_group))
        return failure_errno(why, errno, "setgroups");
    if (setresgid(identity->account.gid, identity->account.gid, identity->account.gid))
        return failure_errno(why, errno, "setresgid %u", identity->account.gid);
    if (setresuid(identity->account.uid, identity->account.uid, identity->account.uid))
        return failure_errno(why, errno, "setresuid %u", identity->account.uid);
    return 0;
}

static int keep_only(uint32_t kept, struct failure *why)
{
    int result = set_capabilities(kept);
    if (!result)
        result = raise_ambient(kept);
    if (!result && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        result = -errno;
    return result ? failure_errno(why, -result, "capabilities") : 0;
}

int identity_take(const struct identity *identity, struct failure *why)
{
    uint32_t kept = identity->keep_chroot ? 1u << CAP_SYS_CHROOT | 1u << CAP_SETPCAP : 0;
    int result = empty_bounding_set(kept);
    if (result)
        return failure_errno(why, -result, "bounding set");
    if (geteuid() == 0) {
        if (prctl(PR_SET_KEEPCAPS, 1))
            return failure_errno(why, errno, "keepcaps");
        result = take_ids(identity, why);
        if (result)
            return result;
    }
    result = keep_only(kept, why);
    if (result)
        return result;
    result = set_uid_filter_load();
    return result ? failure_errno(why, -result, "seccomp") : 0;
}

int identity_drop_capabilities(void *unused, struct failure *why)
{
    (void)unused;
    int result = empty_bounding_set(0);
    return result ? failure_errno(why, -result, "bounding set") : keep_only(0, why);
}
