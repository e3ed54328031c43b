/* Calls that set the mode of a file fail with EPERM when the mode has S_ISUID; calls that only
 * create files (open, mknod) fail for S_ISGID too. In chmod S_ISGID cannot be told from that of a
 * directory, where it is harmless and in use. Calls whose mode is in memory (openat2, io_uring) and
 * calls of another ABI get ENOSYS.
 */
#include "qemu-harness/launcher/folders/set_uid_filter.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "common/os/cleanup.h"
#include "common/os/seccomp_filter_linux.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#define CREATES (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) /* otherwise open(2) ignores the mode */

static const struct seccomp_rule rules[] = {
    RULE(fchmod, REFUSE(EPERM), ARGUMENT_HAS_ANY(1, S_ISUID)),
    RULE(fchmodat, REFUSE(EPERM), ARGUMENT_HAS_ANY(2, S_ISUID)),
    RULE(fchmodat2, REFUSE(EPERM), ARGUMENT_HAS_ANY(2, S_ISUID)),
    RULE(openat, REFUSE(EPERM), ARGUMENT_HAS_ANY(2, CREATES),
         ARGUMENT_HAS_ANY(3, S_ISUID | S_ISGID)),
    RULE(mknodat, REFUSE(EPERM), ARGUMENT_HAS_ANY(2, S_ISUID | S_ISGID)),
#ifdef SYS_chmod
    RULE(chmod, REFUSE(EPERM), ARGUMENT_HAS_ANY(1, S_ISUID)),
    RULE(open, REFUSE(EPERM), ARGUMENT_HAS_ANY(1, CREATES), ARGUMENT_HAS_ANY(2, S_ISUID | S_ISGID)),
    RULE(creat, REFUSE(EPERM), ARGUMENT_HAS_ANY(1, S_ISUID | S_ISGID)),
    RULE(mknod, REFUSE(EPERM), ARGUMENT_HAS_ANY(1, S_ISUID | S_ISGID)),
#endif
    RULE(openat2, REFUSE(ENOSYS)),
    RULE(io_uring_setup, REFUSE(ENOSYS)),
};

int set_uid_filter_load(void)
{
    return seccomp_filter_load_table(rules, ARRAY_LENGTH(rules), ALLOW, REFUSE(ENOSYS));
}
