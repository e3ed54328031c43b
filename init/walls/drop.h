/* The drop (design, section 5): from root to an ordinary account, in numbered, irreversible steps.
 * The only way any process of the sandbox is made: server, self-test and agent all come through
 * here.
 */
#ifndef INIT_WALLS_DROP_H
#define INIT_WALLS_DROP_H

#include <stdbool.h>

#include "init/machine/account.h"

enum drop_filter {
    DROP_FILTER_SERVER,
    DROP_FILTER_NONE /* the agent loads its own, stricter one */
};

struct drop_plan {
    const struct account *account;
    int cgroup_fd;       /* group to enter, or -1 */
    int controlling_tty; /* descriptor of a pty slave that becomes the controlling terminal, or -1 */
    const int *keep_fds; /* kept at their numbers, besides 0..2, which must be right already */
    unsigned keep_count;
    int64_t limit_nofile;
    bool empty_root; /* agent: into an empty read-only tmpfs root */
    int root_fd;     /* agent in WSL: a mount namespace whose root is entered instead; 0: none */
    bool
        no_core; /* WSL: a crash must not start the kernel's core handler, which is everybody's and runs outside */
    bool user_namespaces; /* server: leave user namespaces and mounts to the kernel's own checks */
    enum drop_filter filter;
};

/* Runs all steps in the calling (child) process, verifies from /proc/self/status and by trying to
 * get root back. 0, or a negative errno with the step's name: then the caller must _exit. The
 * working directory is / afterwards. */
int drop_to_account(const struct drop_plan *plan, struct failure *why);

/* The last step in its two parts, also for the self-test, which proves it once more. The process is
 * the plan's account and nothing else, by /proc/self/status as read from `status_fd`; and nothing
 * that would make it root works. -EPERM says what is wrong, and the process must end. */
int drop_check_identity(const struct drop_plan *plan, int status_fd, struct failure *why);
int drop_check_no_way_back(struct failure *why);

#endif
