/* A short-lived child with the rights of the server.
 *
 * A child that executes nothing keeps PID 1's memory, so it wipes the token and the way-in secret
 * before it reads anything that the guest wrote. (No process of the guest can read its memory:
 * changing the uid has made it non-dumpable.)
 */
#include "init/walls/dropped_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"

/* Changes the child's own copy only. */
static void forget_secrets(const struct boot_config *config)
{
    struct boot_config *own = (struct boot_config *)config;

    secret_wipe(own->relay.token, sizeof(own->relay.token));
    secret_wipe(own->way_in.secret, sizeof(own->way_in.secret));
}

static int silence_stdio(struct failure *why)
{
    CLEANUP_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return failure_errno(why, errno, "open /dev/null");
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (dup2(null, fd) < 0)
            return failure_errno(why, errno, "dup2");
    }
    return 0;
}

static _Noreturn void child_main(const struct boot_config *config, const struct drop_plan *plan,
                                 dropped_task *task, void *argument)
{
    int out = plan->keep_fds[0];
    struct failure why;

    forget_secrets(config);
    int result = silence_stdio(&why);
    if (result == 0)
        result = drop_to_account(plan, &why);
    task(out, result < 0 ? &why : NULL, argument);
    _exit(0);
}

int dropped_child_start(struct dropped_child *child, const struct boot_config *config,
                        const struct account *account, int cgroup_fd, dropped_task *task,
                        void *argument, struct failure *why)
{
    struct drop_plan plan;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int from = ends[0];
    CLEANUP_FD int to = ends[1];
    drop_plan_server(&plan, config, account, cgroup_fd);
    plan.keep_fds = &to;
    plan.keep_count = 1;
    pid_t pid = fork();
    if (pid < 0)
        return failure_errno(why, errno, "fork");
    if (pid == 0)
        child_main(config, &plan, task, argument);
    *child = (struct dropped_child){.pid = pid, .from_fd = fd_steal(&from)};
    return 0;
}

bool dropped_child_receive(struct dropped_child *child, void *record, size_t size,
                           int64_t deadline_ns)
{
    size_t have = 0;

    while (have < size) {
        if (!io_wait(child->from_fd, POLLIN, deadline_ns))
            return false;
        ssize_t length = read(child->from_fd, (char *)record + have, size - have);
        if (length <= 0)
            return false;
        have += (size_t)length;
    }
    return true;
}

void dropped_child_end(struct dropped_child *child)
{
    fd_close(&child->from_fd);
    child_end(child->pid);
}
