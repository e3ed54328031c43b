/* The drop: from root to an ordinary account, in irreversible steps. Every process of the sandbox
 * comes through here: the server, the self-test, the relay.
 */
#ifndef INIT_WALLS_DROP_H
#define INIT_WALLS_DROP_H

#include <stdbool.h>

#include "init/config/boot_config.h"
#include "init/machine/account.h"

enum drop_filter {
    DROP_FILTER_SERVER,
    DROP_FILTER_NONE /* the relay loads a stricter one itself */
};

struct drop_plan {
    const struct account *account;
    int cgroup_fd;       /* group to enter, or -1 */
    int controlling_tty; /* pty slave that becomes the controlling terminal, or -1 */
    const int *keep_fds; /* descriptors to keep besides 0 to 2, which must be right already */
    unsigned keep_count;
    int64_t limit_nofile;
    bool empty_root;      /* enter an empty read-only root: the relay in a machine */
    int root_fd;          /* enter the root of this mount namespace: the relay in WSL; 0: none */
    bool no_core;         /* WSL: a crash must not start the core handler of the kernel, which all
                      * distributions share and which runs outside the sandbox */
    bool user_namespaces; /* the filter allows user namespaces and mounts */
    enum drop_filter filter;
};

/* The plan of the server, which every other process that must have exactly its rights uses too. */
void drop_plan_server(struct drop_plan *plan, const struct boot_config *config,
                      const struct account *account, int cgroup_fd);

/* Runs all steps in the calling child process, checks the result against /proc/self/status and by
 * trying to become root again. 0, or a negative errno with the step's name: then the caller must
 * _exit. The working directory is / afterwards. */
int drop_to_account(const struct drop_plan *plan, struct failure *why);

/* The two parts of that check, which the self-test repeats: the process has the plan's account and
 * no right besides, by /proc/self/status as read from `status_fd`; and no call makes it root.
 * -EPERM with what is wrong; then the process must end. */
int drop_check_identity(const struct drop_plan *plan, int status_fd, struct failure *why);
int drop_check_no_way_back(struct failure *why);

#endif
