/* Stage `relay`: see relay_start.h, and common/relay_config.h for what the agent is told.
 *
 * The listeners are made once and kept: a restarted agent takes them over and clients that connect
 * meanwhile wait in their backlog. They stand in one table in the order of the agent's descriptors, from 3
 * upwards. The program is opened once as well, so a restart does not depend on what a path means by
 * then, and executed by descriptor, since the agent's root is empty at that point.
 */
#include "init/relay_start.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/protocol.h"
#include "common/relay_config.h"
#include "common/secret.h"
#include "init/drop.h"

#define LISTENERS_MAX (RELAY_FORWARDS_MAX + RELAY_DNS_MAX)
#define AGENT_FIRST_FD 3
#define AGENT_SPARE_FD 64 /* descriptors wait here while those below are put in order */
#define AGENT_NOFILE (2 * RELAY_CONNECTIONS_MAX + 256)
#define TCP_BACKLOG 1024
#define VSOCK_BACKLOG 4096 /* less loses connections in a burst (design, section 11) */
#define EXECUTE_LIMIT_MS 10000

static int listeners[LISTENERS_MAX]; /* ours; the agent's number is AGENT_FIRST_FD + index */
static unsigned listener_count;
static struct relay_config table;

/* ---- listeners ---- */

static const struct endpoint loopback_addresses[] = {
    {.kind = ENDPOINT_TCP4, .address = {127, 0, 0, 1}},
    {.kind = ENDPOINT_TCP6, .address = {[15] = 1}},
};

/* Takes the descriptor into the table; its number in the agent. */
static int keep_listener(int fd)
{
    listeners[listener_count] = fd;
    return AGENT_FIRST_FD + (int)listener_count++;
}

static struct relay_forward *add_forward(enum relay_role role, int fd)
{
    struct relay_forward *forward = &table.forwards[table.forward_count++];

    *forward = (struct relay_forward){.listen_fd = keep_listener(fd), .role = role};
    return forward;
}

static int listen_for_gateway(const struct boot_relay *relay, struct failure *why)
{
    for (unsigned number = 0; number < ARRAY_LENGTH(loopback_addresses); number++) {
        struct endpoint endpoint = loopback_addresses[number];
        endpoint.port = relay->listen;
        int fd = endpoint_listen(&endpoint, TCP_BACKLOG, why);
        if (fd < 0)
            return fd;
        add_forward(RELAY_TO_BROKER, fd);
    }
    return 0;
}

static int listen_for_way_in(const struct boot_config *config, struct failure *why)
{
    struct endpoint endpoint = config->way_in.listen;
    int fd = endpoint_listen(&endpoint, VSOCK_BACKLOG, why);

    if (fd < 0)
        return fd;
    struct relay_forward *forward = add_forward(RELAY_TO_SERVER, fd);
    forward->half_close = endpoint.kind != ENDPOINT_VSOCK; /* where the transport keeps it */
    forward->dial_count = ARRAY_LENGTH(loopback_addresses);
    for (unsigned number = 0; number < forward->dial_count; number++) {
        forward->dials[number] = loopback_addresses[number];
        forward->dials[number].port = config->server.port;
    }
    memcpy(forward->secret, config->way_in.secret, sizeof(forward->secret));
    return 0;
}

static int bind_dns_datagrams(struct endpoint endpoint, struct failure *why)
{
    struct sockaddr_storage address;
    const int length = endpoint_sockaddr(&endpoint, &address), on = 1;
    CLEANUP_FD int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return failure_errno(why, errno, "make a socket for DNS");
    if (endpoint.kind == ENDPOINT_TCP6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, (socklen_t)length) < 0)
        return failure_errno(why, errno, "bind port %d for DNS", DNS_PORT);
    return fd_steal(&fd);
}

static int listen_for_dns(struct failure *why)
{
    for (unsigned number = 0; number < ARRAY_LENGTH(loopback_addresses); number++) {
        struct endpoint endpoint = loopback_addresses[number];
        endpoint.port = DNS_PORT;
        int fd = bind_dns_datagrams(endpoint, why);
        if (fd < 0)
            return fd;
        table.dns_fds[table.dns_count++] = keep_listener(fd);
        fd = endpoint_listen(&endpoint, TCP_BACKLOG, why);
        if (fd < 0)
            return fd;
        table.dns_fds[table.dns_count++] = keep_listener(fd);
    }
    return 0;
}

static int make_listeners(const struct boot_config *config, struct failure *why)
{
    int result = 0;

    table = (struct relay_config){.magic = RELAY_CONFIG_MAGIC, .size = sizeof(table)};
    if (config->relay.present)
        result = listen_for_gateway(&config->relay, why);
    if (result == 0 && config->way_in.present && config->server.port != 0)
        result = listen_for_way_in(config, why);
    return result < 0 ? result : listen_for_dns(why);
}

/* Puts the relay's addresses, token and pin into the table. */
static void fill_table(const struct boot_relay *relay)
{
    for (unsigned number = 0; number < table.forward_count; number++) {
        struct relay_forward *forward = &table.forwards[number];
        if (forward->role != RELAY_TO_BROKER)
            continue;
        forward->dial_count = relay->transport_count;
        memcpy(forward->dials, relay->transports, sizeof(forward->dials));
        memcpy(forward->secret, relay->token, sizeof(forward->secret));
        memcpy(forward->pin, relay->pin, sizeof(forward->pin));
    }
}
_Static_assert(BOOT_TRANSPORTS_MAX == RELAY_DIALS_MAX, "fill_table copies the array as it is");

/* ---- in the child ---- */

/* Moves what the agent inherits to its numbers: the table's pipe to 0, a sink to 1 and 2, the listeners to
 * 3 and up; `keep` receives those above 2, then the program and the report pipe. */
static int arrange_descriptors(int config_fd, int keep[], int *binary_fd, int *report_fd,
                               int *cgroup_fd)
{
    int wanted[LISTENERS_MAX];
    int sink = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);

    if (sink < 0)
        sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (unsigned number = 0; number < listener_count; number++)
        wanted[number] = fcntl(listeners[number], F_DUPFD_CLOEXEC, AGENT_SPARE_FD);
    *binary_fd = fcntl(*binary_fd, F_DUPFD_CLOEXEC, AGENT_SPARE_FD);
    *report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, AGENT_SPARE_FD);
    *cgroup_fd = fcntl(*cgroup_fd, F_DUPFD_CLOEXEC, AGENT_SPARE_FD);
    if (dup2(config_fd, 0) < 0 || dup2(sink, 1) < 0 || dup2(sink, 2) < 0 || *binary_fd < 0 ||
        *report_fd < 0 || *cgroup_fd < 0)
        return -errno;
    for (unsigned number = 0; number < listener_count; number++) {
        keep[number] = AGENT_FIRST_FD + (int)number;
        if (dup2(wanted[number], keep[number]) < 0)
            return -errno;
    }
    keep[listener_count] = *binary_fd;
    keep[listener_count + 1] = *report_fd;
    return 0;
}

static int become_agent(const struct account *account, int config_fd, int binary_fd, int *report_fd,
                        int cgroup_fd, struct failure *why)
{
    static char *const arguments[] = {"codev-agent", NULL};
    static char *const environment[] = {NULL};
    int keep[LISTENERS_MAX + 2];
    struct drop_plan plan = {
        .account = account,
        .controlling_tty = -1,
        .keep_fds = keep,
        .keep_count = listener_count + 2,
        .limit_nofile = AGENT_NOFILE,
        .empty_root = true,
        .filter = DROP_FILTER_NONE,
    };
    int result = arrange_descriptors(config_fd, keep, &binary_fd, report_fd, &cgroup_fd);

    if (result < 0)
        return failure_errno(why, -result, "arrange descriptors");
    plan.cgroup_fd = cgroup_fd;
    result = drop_to_account(&plan, why);
    if (result < 0)
        return result;
    syscall(SYS_execveat, binary_fd, "", arguments, environment, AT_EMPTY_PATH);
    return failure_errno(why, errno, "execute " AGENT_PATH);
}

/* ---- in init ---- */

/* Waits until the child executed the program: end of file, else the reason. */
static int await_execution(int fd, struct failure *why)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    if (poll(&wait, 1, EXECUTE_LIMIT_MS) <= 0)
        return failure_set(why, ETIMEDOUT, "codev-agent was not executed in time");
    ssize_t got = io_read_full(fd, why->text, sizeof(why->text));
    why->text[sizeof(why->text) - 1] = '\0';
    return got == 0 ? 0 : failure_prefix(why, -ECHILD, "codev-agent");
}

static int spawn_agent(struct relay_process *relay, const struct account *account, int config_fd,
                       int cgroup_fd, struct failure *why)
{
    int report[2];

    if (pipe2(report, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int reading = report[0];
    pid_t pid = fork();
    if (pid < 0) {
        close(report[1]);
        return failure_errno(why, errno, "fork");
    }
    if (pid == 0) {
        become_agent(account, config_fd, relay->binary_fd, &report[1], cgroup_fd, why);
        (void)io_write_full(report[1], why->text, sizeof(why->text));
        _exit(127);
    }
    close(report[1]);
    int result = await_execution(reading, why);
    if (result < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return result;
    }
    relay->pid = pid;
    return 0;
}

/* Never waits: an agent that does not read its pipe gets no record, and the caller is told. */
static int send_table(const struct relay_process *relay, struct failure *why)
{
    ssize_t put = write(relay->config_fd, &table, sizeof(table));

    if (put != (ssize_t)sizeof(table))
        return failure_errno(why, put < 0 ? errno : EAGAIN, "tell codev-agent its table");
    return 0;
}

/* What is needed once: listeners and the opened program. */
static int prepare_once(struct relay_process *relay, const struct boot_config *config,
                        struct failure *why)
{
    if (listener_count > 0)
        return 0;
    relay->binary_fd = open(AGENT_PATH, O_PATH | O_CLOEXEC);
    if (relay->binary_fd < 0)
        return failure_errno(why, errno, "open " AGENT_PATH);
    return make_listeners(config, why);
}

int relay_start(struct relay_process *relay, const struct boot_config *config, int cgroup_fd,
                struct failure *why)
{
    struct account account;
    int ends[2];
    int result = prepare_once(relay, config, why);

    if (result == 0)
        result = account_find(RELAY_ACCOUNT, &account, why);
    if (result < 0)
        return result;
    fill_table(&config->relay);
    relay_stop(relay);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return failure_errno(why, errno, "make a pipe");
    CLEANUP_FD int theirs = ends[0];
    relay->config_fd = ends[1];
    (void)io_set_nonblocking(relay->config_fd);
    result = send_table(relay, why); /* it waits in the pipe */
    return result < 0 ? result : spawn_agent(relay, &account, theirs, cgroup_fd, why);
}

int relay_update(struct relay_process *relay, const struct boot_config *config, struct failure *why)
{
    fill_table(&config->relay);
    if (relay->pid == 0)
        return 0; /* it is about to be started again, with the new table */
    return send_table(relay, why);
}

void relay_forget(void)
{
    secret_wipe(&table, sizeof(table));
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
