/* Stage `relay`: starts codev-agent and sends it its table (common/wire/relay_config.h).
 *
 * The listeners are made once and kept: a restarted relay gets them again, and clients that connect
 * in the meantime wait in the backlog. The program is opened once too, so that a restart does not
 * depend on its path, and is executed by descriptor, since the relay's root is empty by then.
 */
#include "init/relay/relay_start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/relay/relay_listen.h"
#include "init/walls/drop.h"

#define AGENT_SPARE_FD 64 /* descriptors are kept from here up while those below are arranged */
#define AGENT_NOFILE (2 * RELAY_CONNECTIONS_MAX + 256)
#define EXECUTE_LIMIT_MS 10000

static struct relay_table table;

/* ---- in the child ---- */

/* What a child needs until it executes the relay. */
struct agent_child {
    const struct relay_process *relay;
    const struct account *account;
    int config_fd, cgroup_fd;
};

/* A duplicate above the relay's numbers. */
static int set_aside(int fd)
{
    return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, AGENT_SPARE_FD);
}

/* Moves the relay's descriptors to their numbers: the table's pipe to 0, the console or /dev/null
 * to 1 and 2, the listeners to 3 and up. `keep` receives those above 2. */
static int arrange_descriptors(int config_fd, int keep[])
{
    int waiting[RELAY_LISTENERS_MAX];
    int sink = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);

    if (sink < 0)
        sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (unsigned number = 0; number < table.listener_count; number++)
        waiting[number] = set_aside(table.listeners[number]);
    if (dup2(config_fd, 0) < 0 || dup2(sink, 1) < 0 || dup2(sink, 2) < 0)
        return -errno;
    for (unsigned number = 0; number < table.listener_count; number++) {
        keep[number] = RELAY_FIRST_FD + (int)number;
        if (dup2(waiting[number], keep[number]) < 0)
            return -errno;
    }
    return 0;
}

static int become_agent(void *argument, int *report_fd, struct failure *why)
{
    static char *const arguments[] = {"codev-agent", NULL};
    static char *const environment[] = {NULL};
    const struct agent_child *child = argument;
    int keep[RELAY_LISTENERS_MAX + 2];
    int binary_fd = set_aside(child->relay->binary_fd);
    struct drop_plan plan = {
        .account = child->account,
        .cgroup_fd = set_aside(child->cgroup_fd),
        .controlling_tty = -1,
        .keep_fds = keep,
        .keep_count = table.listener_count + 2,
        .limit_nofile = AGENT_NOFILE,
        .empty_root = true,
        .root_fd = child->relay->folder_namespace_fd > 0
                       ? set_aside(child->relay->folder_namespace_fd)
                       : 0,
        .filter = DROP_FILTER_NONE,
    };

    *report_fd = set_aside(*report_fd);
    int result = arrange_descriptors(child->config_fd, keep);
    if (result < 0 || binary_fd < 0 || *report_fd < 0 || plan.root_fd < 0)
        return failure_errno(why, result < 0 ? -result : EBADF, "arrange descriptors");
    keep[table.listener_count] = binary_fd;
    keep[table.listener_count + 1] = *report_fd;
    result = drop_to_account(&plan, why);
    if (result < 0)
        return result;
    syscall(SYS_execveat, binary_fd, "", arguments, environment, AT_EMPTY_PATH);
    return failure_errno(why, errno, "execute " AGENT_PATH);
}

/* ---- in init ---- */

/* Never waits: a relay that does not read its pipe gets no record, which is an error. */
static int send_table(const struct relay_process *relay, const struct boot_config *config,
                      struct failure *why)
{
    relay_table_fill(&table, config);
    ssize_t put = write(relay->config_fd, &table.config, sizeof(table.config));
    int error = put < 0 ? errno : EAGAIN;

    relay_table_wipe(&table);
    if (put != (ssize_t)sizeof(table.config))
        return failure_errno(why, error, "tell codev-agent its table");
    return 0;
}

/* Makes the listeners and opens the program, once. */
static int prepare_once(struct relay_process *relay, struct boot_config *config,
                        struct failure *why)
{
    if (relay->binary_fd >= 0)
        return 0;
    relay->binary_fd = open(AGENT_PATH, O_PATH | O_CLOEXEC);
    if (relay->binary_fd < 0)
        return failure_errno(why, errno, "open " AGENT_PATH);
    return relay_listen(&table, relay->side, relay->folder_listener_fd, config, why);
}

int relay_start(struct relay_process *relay, struct boot_config *config, int cgroup_fd,
                struct failure *why)
{
    struct account account;
    struct agent_child child = {.relay = relay, .account = &account, .cgroup_fd = cgroup_fd};
    int ends[2];
    int result = prepare_once(relay, config, why);

    if (result == 0)
        result = account_find(RELAY_ACCOUNT, &account, why);
    if (result < 0)
        return result;
    relay_stop(relay);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int theirs = ends[0];
    relay->config_fd = ends[1];
    (void)io_set_nonblocking(relay->config_fd);
    result = send_table(relay, config, why); /* it waits in the pipe */
    child.config_fd = theirs;
    if (result == 0)
        result = child_execute(&relay->pid, become_agent, &child, EXECUTE_LIMIT_MS, why);
    return result < 0 ? failure_prefix(why, result, "codev-agent") : 0;
}

int relay_update(struct relay_process *relay, const struct boot_config *config, struct failure *why)
{
    if (relay->pid == 0)
        return 0; /* it is about to be started again, with the new table */
    return send_table(relay, config, why);
}

void relay_stop(struct relay_process *relay)
{
    if (relay->config_fd > 0)
        fd_close(&relay->config_fd);
    relay->config_fd = -1;
    if (relay->pid > 0)
        kill(relay->pid, SIGKILL);
    relay->pid = 0;
}
