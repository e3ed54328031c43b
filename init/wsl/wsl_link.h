/* WSL: the talk between the sandbox's PID 1 and the process outside it that started it.
 *
 * PID 1 lives behind its own namespaces from its first instruction. What can only be done in the
 * distribution's (mount a Windows drive, open the way in's port, run the outer agent) it asks for,
 * over a pair of sequenced-packet sockets: one question, one answer, then the next; besides, the
 * process outside reports what becomes of its agent. Both ends are codev-init as root; nothing of
 * the sandbox ever holds one.
 */
#ifndef INIT_WSL_WSL_LINK_H
#define INIT_WSL_WSL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/endpoint.h"
#include "common/os/failure.h"
#include "init/config/boot_config.h"
#include "init/machine/account.h"

#define WSL_SOURCE_MAX 4096
#define WSL_WITNESSES_MAX 5 /* four of ours, and a broker at the gateway */

enum wsl_message_kind {
    WSL_MOUNT,      /* source, drvfs, readonly, uid, gid -> a detached mount as a descriptor */
    WSL_START,      /* relay, way_in -> way_in with its port, witnesses */
    WSL_UPDATE,     /* relay */
    WSL_TOUCHED,    /* -> touched: whether one was reached after all; they are closed */
    WSL_ANSWER,     /* result, why */
    WSL_WARNING,    /* why: the outer agent ended and is started again */
    WSL_AGENT_LOST, /* why: it cannot be started again */
    WSL_MESSAGE_KIND_COUNT
};

/* A listener of the process outside, in the namespace that the sandbox must not reach. */
struct wsl_witness {
    struct endpoint endpoint; /* its port is both a TCP and a UDP port */
};

struct wsl_message {
    uint32_t kind;
    int32_t result; /* of an answer: 0 or a negative errno with `why` */
    struct failure why;
    char source[WSL_SOURCE_MAX];
    uint32_t drvfs, readonly, uid, gid;
    struct boot_relay relay;
    struct boot_way_in way_in; /* `present` only when somebody is to be let in */
    uint32_t witness_count, touched;
    struct wsl_witness witnesses[WSL_WITNESSES_MAX];
};

/* Sends one message, with a descriptor unless fd is -1. 0 or a negative errno. Secrets in it are
 * wiped. */
int wsl_link_send(int link, struct wsl_message *message, int fd);

/* Receives one message; *fd, when given, becomes what came with it or -1. 0, -EPIPE when the other
 * side is gone, or another negative errno. */
int wsl_link_receive(int link, struct wsl_message *message, int *fd);

/* ---- PID 1's side ---- */

/* Sends a question and replaces it by its answer, within a minute. 0 or a negative errno with a
 * reason. A report that comes meanwhile is kept for wsl_link_take_report. */
int wsl_link_ask(int link, struct wsl_message *message, int *fd, struct failure *why);

/* A report of the process outside: 1 for a warning, 0 for nothing, a negative errno for the end: of
 * the outer agent, or of the process itself. */
int wsl_link_take_report(int link, struct failure *why);

/* The broker was restarted: the outer agent has to know. */
int wsl_link_update(int link, const struct boot_relay *relay, struct failure *why);

/* Mounts a folder that only the distribution sees: a Windows drive, or what lies there. A detached
 * mount, nosuid and nodev, or a negative errno. */
int wsl_link_mount(int link, const struct boot_mount *mount, const struct account *account,
                   struct failure *why);

#endif
