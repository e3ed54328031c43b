/* Proof of the drop: what the kernel says this process is, and that there is no way back.
 *
 * Everything is read from /proc/self/status rather than asked call by call: it is what the kernel
 * uses, and what a person would look at. A line that is absent counts as wrong.
 */
#include "init/walls/drop.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define STATUS_MAX 8192 /* the kernel writes about 1500 bytes */

/* The text behind "NAME:" up to the end of its line, without leading white space; NULL when
 * absent. */
static const char *status_value(const char *status, const char *name, size_t *length)
{
    size_t name_length = strlen(name);

    for (const char *line = status; line && *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (strncmp(line, name, name_length) == 0 && line[name_length] == ':') {
            const char *value = line + name_length + 1;
            value += strspn(value, " \t");
            *length = strcspn(value, "\n");
            return value;
        }
        line = !end ? NULL : end + 1;
    }
    return NULL;
}

static int expect(const char *status, const char *name, const char *wanted, struct failure *why)
{
    size_t length = 0;
    const char *value = status_value(status, name, &length);

    if (!value)
        return failure_set(why, EPERM, "/proc/self/status has no %s", name);
    while (length > 0 && (value[length - 1] == ' ' || value[length - 1] == '\t'))
        length--;
    if (length != strlen(wanted) || memcmp(value, wanted, length) != 0)
        return failure_set(why, EPERM, "%s is \"%.*s\" and should be \"%s\"", name, (int)length,
                           value, wanted);
    return 0;
}

static int expect_ids(const char *status, const char *name, unsigned id, struct failure *why)
{
    char wanted[64];

    snprintf(wanted, sizeof(wanted), "%u\t%u\t%u\t%u", id, id, id, id);
    return expect(status, name, wanted, why);
}

static int check_status(const struct drop_plan *plan, const char *status, struct failure *why)
{
    static const char *const capability_sets[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    const char *filter = plan->filter == DROP_FILTER_SERVER ? "2" : "0";
    int result = expect_ids(status, "Uid", plan->account->uid, why);

    if (result == 0)
        result = expect_ids(status, "Gid", plan->account->gid, why);
    if (result == 0)
        result = expect(status, "Groups", "", why);
    for (size_t i = 0; result == 0 && i < ARRAY_LENGTH(capability_sets); i++)
        result = expect(status, capability_sets[i], "0000000000000000", why);
    if (result == 0)
        result = expect(status, "NoNewPrivs", "1", why);
    if (result == 0)
        result = expect(status, "Seccomp", filter, why);
    return result;
}

/* Each of these must be refused. One that works leaves the process with what it gained: the caller
 * ends it. */
static const char *regain_root(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct all[_LINUX_CAPABILITY_U32S_3] = {{~0u, ~0u, ~0u},
                                                                   {~0u, ~0u, ~0u}};
    gid_t root_group = 0;

    if (syscall(SYS_setuid, 0) == 0)
        return "setuid(0)";
    if (syscall(SYS_setresuid, -1, 0, -1) == 0)
        return "setresuid to 0";
    if (syscall(SYS_setgid, 0) == 0)
        return "setgid(0)";
    if (syscall(SYS_setresgid, -1, 0, -1) == 0)
        return "setresgid to 0";
    if (syscall(SYS_setgroups, 1, &root_group) == 0)
        return "setgroups";
    if (syscall(SYS_capset, &header, all) == 0)
        return "capset";
    if (prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) == 0)
        return "clearing the securebits";
    if (prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0)
        return "clearing no_new_privs";
    return NULL;
}

int drop_check_identity(const struct drop_plan *plan, int status_fd, struct failure *why)
{
    char status[STATUS_MAX];
    ssize_t length = io_read_full(status_fd, status, sizeof(status) - 1);

    if (length < 0)
        return failure_errno(why, (int)-length, "read /proc/self/status");
    status[length] = '\0';
    return check_status(plan, status, why);
}

int drop_check_no_way_back(struct failure *why)
{
    const char *way = regain_root();

    if (way)
        return failure_set(why, EPERM, "root could be had back by %s", way);
    return 0;
}
