/* The server: the program that the boot configuration names, usually the coding agent's. */
#ifndef INIT_SERVER_SERVER_H
#define INIT_SERVER_SERVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/machine/account.h"
#include "init/server/server_io.h"

struct server {
    pid_t pid;       /* leader of its own session and process group; 0: never started */
    bool ended;      /* reaped */
    int wait_status; /* as waitpid(2) returned it, once ended */
};

/* Makes pipes or a pty for descriptors 0 to 2, owned by the account, and starts the server with the
 * account's rights, in its cgroup and working directory. `environment` is NULL-terminated and holds
 * PATH. 0 once the program was executed; else a negative errno with the reason, and no process is
 * left. */
int server_start(struct server *server, struct server_io *io, const struct boot_config *config,
                 const struct account *account, int cgroup_fd, char **environment,
                 struct failure *why);

/* Sends a signal to the server's process group; SIGINT, SIGQUIT and SIGTSTP go to the group in the
 * foreground of its terminal, if it has one. 0 or a negative errno. */
int server_signal(const struct server *server, const struct server_io *io, int signal);

/* True when 127.0.0.1 or ::1 accepts on this port. */
bool server_port_accepts(uint16_t port);

#endif
