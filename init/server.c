/* Starting and signalling the server: see server.h.
 *
 * The child tells of its failures over a pipe that execve(2) closes: end of file without a text means
 * that the program runs. The parent waits for that no longer than START_LIMIT_MS, since the working
 * directory and the program may lie on a file system that the host serves and that hangs.
 */
#include "init/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/endpoint.h"
#include "common/io.h"
#include "init/drop.h"
#include "init/server_stdio.h"

#define START_LIMIT_MS 30000
#define PROGRAM_PATH_MAX 4096
#define EXIT_NOT_STARTED 127

/* ---- in the child ---- */

static const char *search_path(char *const *environment)
{
    for (; *environment != NULL; environment++)
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
            continue; /* an empty part would be the working directory: not here */
        execve(program, argv, environment);
        if (errno == EACCES)
            error = EACCES; /* found, but not for us: go on, and say so at the end */
        else if (errno != ENOENT && errno != ENOTDIR)
            return -errno;
    }
    return -error;
}

static int execute(char **argv, char **environment, struct failure *why)
{
    int result;

    if (strchr(argv[0], '/') == NULL) {
        result = execute_by_name(argv, environment);
        if (result == -ENOENT)
            return failure_set(why, ENOENT, "%s: command not found in PATH", argv[0]);
    } else {
        execve(argv[0], argv, environment);
        result = -errno;
    }
    return failure_errno(why, -result, "execute %s", argv[0]);
}

static int become_server(const struct boot_config *config, const struct drop_plan *plan,
                         const int theirs[3], char **environment, struct failure *why)
{
    for (int number = 0; number < 3; number++)
        if (dup2(theirs[number], number) < 0)
            return failure_errno(why, errno, "descriptor %d", number);
    int result = drop_to_account(plan, why);
    if (result < 0)
        return result;
    if (chdir(config->server.cwd) < 0)
        return failure_errno(why, errno, "enter the working directory %s", config->server.cwd);
    return execute(config->server.argv, environment, why);
}

/* ---- in init ---- */

/* Waits for the child's end of the pipe to close: 0 when it executed the program. */
static int await_start(int fd, struct failure *why)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready;

    do
        ready = poll(&wait, 1, START_LIMIT_MS);
    while (ready < 0 && errno == EINTR);
    if (ready == 0)
        return failure_set(why, ETIMEDOUT, "the program was not executed within %d s",
                           START_LIMIT_MS / 1000);
    ssize_t got = io_read_full(fd, why->text, sizeof(why->text));
    if (got == 0)
        return 0;
    why->text[sizeof(why->text) - 1] = '\0';
    return -ECHILD;
}

static int spawn(struct server *server, const struct boot_config *config, struct drop_plan *plan,
                 const int theirs[3], char **environment, struct failure *why)
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
        plan->keep_fds = &report[1];
        plan->keep_count = 1;
        become_server(config, plan, theirs, environment, why);
        (void)io_write_full(report[1], why->text, sizeof(why->text));
        _exit(EXIT_NOT_STARTED);
    }
    close(report[1]);
    int result = await_start(reading, why);
    if (result < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, result == -ETIMEDOUT ? WNOHANG : 0);
        return result;
    }
    server->pid = pid;
    return 0;
}

int server_start(struct server *server, struct server_io *io, const struct boot_config *config,
                 const struct account *account, int cgroup_fd, char **environment,
                 struct failure *why)
{
    const enum server_stdio mode = config->server.stdio;
    struct server_stdio_pair pair;
    struct drop_plan plan = {
        .account = account,
        .cgroup_fd = cgroup_fd,
        .controlling_tty = mode == STDIO_TTY ? STDIN_FILENO : -1,
        .limit_nofile = config->limit_nofile,
        .user_namespaces = config->user_namespaces,
        .filter = DROP_FILTER_SERVER,
    };
    int result = server_stdio_make(&pair, &config->server, account, why);

    if (result < 0)
        return result;
    result = spawn(server, config, &plan, pair.theirs, environment, why);
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

    /* over lo a connection is there or refused at once; one that is neither is asked for again later */
    return fd >= 0 && poll(&entry, 1, 0) > 0 &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

bool server_port_accepts(uint16_t port)
{
    const struct endpoint four = {.kind = ENDPOINT_TCP4, .port = port, .address = {127, 0, 0, 1}};
    const struct endpoint six = {.kind = ENDPOINT_TCP6, .port = port, .address = {[15] = 1}};

    return address_accepts(&four) || address_accepts(&six);
}
