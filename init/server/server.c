/* Starts and signals the server. */
#include "init/server/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "common/os/child_linux.h"
#include "common/os/cleanup.h"
#include "init/server/server_stdio.h"
#include "init/walls/drop.h"

#define START_LIMIT_MS 30000
#define PROGRAM_PATH_MAX 4096

/* ---- in the child ---- */

static const char *search_path(char *const *environment)
{
    for (; *environment; environment++)
        if (strncmp(*environment, "PATH=", 5) == 0)
            return *environment + 5;
    return "/usr/local/bin:/usr/bin:/bin";
}

/* As execvp(3) does, but with the PATH of the new environment; never returns 0. */
static int execute_by_name(char **argv, char **environment)
{
    char program[PROGRAM_PATH_MAX];
    int error = ENOENT;

    for (const char *part = search_path(environment); *part != '\0';) {
        int length = (int)strcspn(part, ":");
        int needed = snprintf(program, sizeof(program), "%.*s/%s", length, part, argv[0]);
        part += length + (part[length] == ':');
        if (length == 0 || needed >= (int)sizeof(program))
            continue; /* an empty part would mean the working directory */
        execve(program, argv, environment);
        if (errno == EACCES)
            error = EACCES; /* go on as execvp(3) does, and report it at the end */
        else if (errno != ENOENT && errno != ENOTDIR)
            return -errno;
    }
    return -error;
}

static int execute(char **argv, char **environment, struct failure *why)
{
    int result;

    if (!strchr(argv[0], '/')) {
        result = execute_by_name(argv, environment);
        if (result == -ENOENT)
            return failure_set(why, ENOENT, "%s: command not found in PATH", argv[0]);
    } else {
        execve(argv[0], argv, environment);
        result = -errno;
    }
    return failure_errno(why, -result, "execute %s", argv[0]);
}

/* What the child needs until it executes the server. */
struct server_child {
    const struct boot_config *config;
    struct drop_plan *plan;
    const int *theirs;
    char **environment;
};

static int become_server(void *argument, int *report_fd, struct failure *why)
{
    const struct server_child *child = argument;
    const struct boot_server *wanted = &child->config->server;

    child->plan->keep_fds = report_fd;
    child->plan->keep_count = 1;
    for (int number = 0; number < 3; number++)
        if (dup2(child->theirs[number], number) < 0)
            return failure_errno(why, errno, "descriptor %d", number);
    int result = drop_to_account(child->plan, why);
    if (result < 0)
        return result;
    if (chdir(wanted->cwd) < 0)
        return failure_errno(why, errno, "enter the working directory %s", wanted->cwd);
    return execute(wanted->argv, child->environment, why);
}

/* ---- in init ---- */

int server_start(struct server *server, struct server_io *io, const struct boot_config *config,
                 const struct account *account, int cgroup_fd, char **environment,
                 struct failure *why)
{
    const enum server_stdio mode = config->server.stdio;
    struct server_stdio_pair pair;
    struct drop_plan plan;
    int result = server_stdio_make(&pair, &config->server, account, why);

    if (result < 0)
        return result;
    drop_plan_server(&plan, config, account, cgroup_fd);
    plan.controlling_tty = mode == STDIO_TTY ? STDIN_FILENO : -1;
    const struct server_child child = {
        .config = config, .plan = &plan, .theirs = pair.theirs, .environment = environment};
    result = child_execute(&server->pid, become_server, (void *)&child, START_LIMIT_MS, why);
    server_stdio_close(pair.theirs);
    if (result < 0)
        server_stdio_close(pair.ours);
    else
        server_io_open(io, mode, pair.ours[0], pair.ours[1], pair.ours[2]);
    return result;
}

int server_signal(const struct server *server, const struct server_io *io, int signal)
{
    pid_t group = server->pid;

    if (server->pid == 0 || server->ended)
        return -ESRCH;
    if (io->mode == STDIO_TTY && (signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP)) {
        pid_t foreground = tcgetpgrp(io->outputs[OUTPUT_TTY].fd);
        if (foreground > 1)
            group = foreground;
    }
    return kill(-group, signal) < 0 ? -errno : 0;
}

static bool address_accepts(const struct endpoint *endpoint)
{
    CLEANUP_FD int fd = endpoint_dial(endpoint);
    struct pollfd entry = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof(error);

    /* over lo a connection is made or refused at once; otherwise the caller tries again later */
    return fd >= 0 && poll(&entry, 1, 0) > 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool server_port_accepts(uint16_t port)
{
    const struct endpoint four = {.kind = ENDPOINT_TCP4, .port = port, .address = {127, 0, 0, 1}};
    const struct endpoint six = {.kind = ENDPOINT_TCP6, .port = port, .address = {[15] = 1}};

    return address_accepts(&four) || address_accepts(&six);
}
