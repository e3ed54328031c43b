/* Starts the proxy resolver by posix_spawn(3) and speaks with it over a socket pair. */
#include "host-broker/proxy/resolver.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"

#define PROGRAM "/proc/self/exe"
#define VARIABLES_MAX 64

extern char **environ;

/* Variables that libproxy needs to find the desktop's settings, and those with certificates for the
 * download of scripts. A name that ends with an underscore is a prefix. No variable that may
 * contain a proxy's password is passed. */
static const char *const variables[] = {"HOME",
                                        "USER",
                                        "LOGNAME",
                                        "PATH",
                                        "LANG",
                                        "LC_ALL",
                                        "XDG_",
                                        "DBUS_SESSION_BUS_ADDRESS",
                                        "DESKTOP_SESSION",
                                        "GNOME_",
                                        "KDE_",
                                        "GSETTINGS_",
                                        "DCONF_",
                                        "SSL_CERT_FILE",
                                        "SSL_CERT_DIR",
                                        "NODE_EXTRA_CA_CERTS",
                                        "ASAN_OPTIONS",
                                        "UBSAN_OPTIONS"};

static bool is_passed(const char *entry)
{
    for (size_t i = 0; i < ARRAY_LENGTH(variables); i++) {
        size_t length = strlen(variables[i]);
        if (strncmp(entry, variables[i], length) == 0 &&
            (entry[length] == '=' || variables[i][length - 1] == '_'))
            return true;
    }
    return false;
}

static void choose_environment(char *chosen[VARIABLES_MAX + 1])
{
    size_t count = 0;
    for (char **entry = environ; *entry && count < VARIABLES_MAX; entry++)
        if (is_passed(*entry))
            chosen[count++] = *entry;
    chosen[count] = NULL;
}

static int prepare(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, int socket)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int result = posix_spawn_file_actions_adddup2(actions, socket, STDIN_FILENO);
    if (result == 0)
        result = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_RDWR, 0);
    if (result == 0)
        result = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_RDWR, 0);
    if (result == 0)
        result = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
    if (result == 0)
        result = posix_spawnattr_setsigmask(attributes, &none);
    if (result == 0)
        result = posix_spawnattr_setsigdefault(attributes, &all);
    if (result == 0)
        result =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return result;
}

static int spawn(pid_t *pid, int socket, char **argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *environment[VARIABLES_MAX + 1];
    choose_environment(environment);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    int result = prepare(&actions, &attributes, socket);
    if (result == 0)
        result = posix_spawn(pid, PROGRAM, &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -result;
}

int resolver_start(struct resolver *resolver, const char *const *ca_files, size_t count,
                   struct failure *why)
{
    char *argv[RESOLVER_CA_FILES_MAX + 3] = {"codev-broker", PAC_RESOLVER_ARGUMENT};
    int ends[2];
    for (size_t i = 0; i < count; i++)
        argv[2 + i] = (char *)ca_files[i];
    *resolver = (struct resolver){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return failure_errno(why, errno, "make a socket for the proxy resolver");
    int result = spawn(&resolver->pid, ends[1], argv);
    close(ends[1]);
    if (result < 0) {
        close(ends[0]);
        return failure_errno(why, -result, "start the proxy resolver");
    }
    resolver->fd = ends[0];
    return 0;
}

int resolver_ask(struct resolver *resolver, const struct pac_question *question)
{
    ssize_t sent = send(resolver->fd, question, sizeof(*question), MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? -errno : 0;
}

int resolver_hear(struct resolver *resolver, struct pac_reply *reply)
{
    ssize_t length = recv(resolver->fd, reply, sizeof(*reply), MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (length <= 0)
        return length < 0 ? -errno : -EPIPE;
    if ((size_t)length <= offsetof(struct pac_reply, text) || reply->verdict >= PAC_VERDICT_COUNT)
        return -EBADMSG;
    ((char *)reply)[length - 1] = '\0';
    return 1;
}

void resolver_stop(struct resolver *resolver)
{
    if (resolver->fd < 0)
        return;
    fd_close(&resolver->fd);
    kill(resolver->pid, SIGKILL); /* its children die with it: PR_SET_PDEATHSIG */
    waitpid(resolver->pid, NULL, 0);
    resolver->pid = 0;
}
