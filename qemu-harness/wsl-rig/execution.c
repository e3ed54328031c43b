/* Runs one program as wsl.exe -d NAME -u USER --exec ARGV... does, or connects to a port.
 *
 * As on WSL, the process enters the namespaces of the distribution from outside: its parent is not
 * a process of the distribution, and it has WSL's environment and the capabilities of its user.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/wsl-rig/channel.h"
#include "qemu-harness/wsl-rig/rig.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Sets the environment and the ids of a user of the distribution. A number is used as a uid. */
static void become(const char *distribution, const char *name)
{
    struct passwd *user = getpwnam(name);
    if (!user && name[0] >= '0' && name[0] <= '9')
        user = getpwuid((uid_t)strtoul(name, NULL, 10));
    bool root = strcmp(name, "root") == 0;
    if (!user && !root)
        rig_die(name);
    clearenv();
    setenv("HOME", user ? user->pw_dir : "/root", 1);
    setenv("USER", name, 1);
    setenv("LOGNAME", name, 1);
    setenv("SHELL", user ? user->pw_shell : "/bin/sh", 1);
    setenv("PATH", PATH_DEFAULT, 1);
    setenv("WSL_DISTRO_NAME", distribution, 1);
    setenv("WSL_INTEROP", RIG_WSL "/1_interop", 1);
    setenv("WSLENV", "", 1);
    if (!user)
        return;
    if (initgroups(user->pw_name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid))
        rig_die("ids");
}

/* Waits for the process in the PID namespace and ends with its status. */
static void __attribute__((noreturn)) stand_for(pid_t child)
{
    int status = 0;
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

static void __attribute__((noreturn)) run(char **words, const int *pipes)
{
    const char *distribution = words[1], *user = words[2];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 3; i++)
        if (dup2(pipes[i], i) < 0)
            _exit(126);
    /* all other descriptors: the waiting process must not keep the input open */
    syscall(SYS_close_range, 3, ~0u, 0);
    setsid();
    bool inside = strcmp(distribution, RIG_SYSTEM) != 0;
    if (inside)
        rig_enter(distribution);
    pid_t child = inside ? fork() : 0;
    if (child < 0)
        rig_die("fork");
    if (child > 0)
        stand_for(child);
    setsid();
    become(distribution, user);
    if (chdir("/"))
        rig_die("/");
    execvp(words[3], words + 3);
    rig_die(words[3]);
}

static bool start_process(struct channel_port *port, char **words)
{
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC))
        return false;
    port->pid = fork();
    if (port->pid == 0)
        run(words, (const int[]){in[0], out[1], err[1]});
    close(in[0]);
    close(out[1]);
    close(err[1]);
    port->in = in[1];
    port->out = out[0];
    port->err = err[0];
    io_set_nonblocking(port->in);
    io_set_nonblocking(port->out);
    io_set_nonblocking(port->err);
    return port->pid > 0;
}

/* Connects without waiting. An error ends the output, as a closed connection does. */
static bool start_connection(struct channel_port *port, const char *number)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)strtoul(number, NULL, 10)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 ||
        (connect(fd, (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS))
        return false;
    port->pid = 0;
    port->err = -1;
    port->out = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    port->in = fd_steal(&fd);
    return true;
}

bool execution_start(struct channel_port *port, char *words, size_t length)
{
    char *list[CHANNEL_WORDS_MAX + 1] = {NULL};
    unsigned count = 0;
    if (length == 0 || words[length - 1] != '\0')
        return false;
    for (char *at = words; at < words + length; at += strlen(at) + 1) {
        if (count == CHANNEL_WORDS_MAX)
            return false;
        list[count++] = at;
    }
    port->in_ended = port->exited = false;
    if (count == 2 && strcmp(list[0], "connect") == 0)
        return start_connection(port, list[1]);
    return count > 3 && strcmp(list[0], "exec") == 0 && start_process(port, list);
}

void execution_forget(struct channel_port *port)
{
    fd_close(&port->in);
    fd_close(&port->out);
    fd_close(&port->err);
    port->pid = 0;
}
