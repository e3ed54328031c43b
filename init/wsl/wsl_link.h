/* WSL: the messages between the sandbox's PID 1 and the process outside that started it.
 *
 * PID 1 is in namespaces of its own from its first instruction. Whatever has to be done in the
 * distribution's namespaces (mount a Windows drive, listen at the way in's port, run the outer
 * relay) it requests over a pair of sequenced-packet sockets: one request, one answer, then the
 * next. The process outside also reports when the outer relay ends. Both ends are codev-init as
 * root; no process of the sandbox holds one.
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
#define WSL_WITNESSES_MAX 5 /* four that we open, and a broker at the network's gateway */

enum wsl_message_kind {
    WSL_MOUNT,      /* source, drvfs, readonly, uid, gid -> a detached mount as a descriptor */
    WSL_START,      /* relay, way_in -> way_in with its port, witnesses */
    WSL_UPDATE,     /* relay */
    WSL_TOUCHED,    /* -> touched: whether a witness received a datagram; they are closed */
    WSL_ANSWER,     /* result, why */
    WSL_WARNING,    /* why: the outer relay ended and is started again */
    WSL_AGENT_LOST, /* why: it cannot be started again */
    WSL_MESSAGE_KIND_COUNT
};

/* A listener that the process outside opens in the shared network. The self-test inside tries to
 * reach it and must fail. */
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
    struct boot_way_in way_in; /* `present` only when the server has a port */
    uint32_t witness_count, touched;
    struct wsl_witness witnesses[WSL_WITNESSES_MAX];
};

/* Sends one message, with a descriptor unless fd is -1. 0 or a negative errno. Secrets in it are
 * wiped. */
int wsl_link_send(int link, struct wsl_message *message, int fd);

/* Receives one message; *fd, if not NULL, becomes the descriptor that came with it, or -1. 0,
 * -EPIPE when the other side is gone, or another negative errno. */
int wsl_link_receive(int link, struct wsl_message *message, int *fd);

/* ---- PID 1's side ---- */

/* Sends a request and replaces it by the answer, within a minute. 0 or a negative errno with a
 * reason. A report that is received in between is kept for wsl_link_take_report. */
int wsl_link_ask(int link, struct wsl_message *message, int *fd, struct failure *why);

/* A report of the process outside: 1 for a warning, 0 for none, a negative errno when the outer
 * relay or the process itself has ended. */
int wsl_link_take_report(int link, struct failure *why);

/* Sends the outer relay the address and token of a restarted broker. */
int wsl_link_update(int link, const struct boot_relay *relay, struct failure *why);

/* Mounts a folder that only the distribution sees: of Windows or of the distribution. A detached
 * mount, nosuid and nodev, or a negative errno. */
int wsl_link_mount(int link, const struct boot_mount *mount, const struct account *account,
                   struct failure *why);

#endif
