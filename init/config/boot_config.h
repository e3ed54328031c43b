/* The boot configuration: what the host asks of this start (doc/control-channel.md lists the keys).
 *
 * boot_config_parse validates the whole text before anything is applied: an unknown key, a wrong
 * type, a value out of range, a path that is not normal, a target that is used twice is an error
 * that names the key. All strings point into one static arena, which lives as long as PID 1.
 */
#ifndef INIT_CONFIG_BOOT_CONFIG_H
#define INIT_CONFIG_BOOT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/net/endpoint.h"
#include "common/os/failure.h"
#include "common/os/secret.h"
#include "common/wire/protocol.h"

#define BOOT_MOUNTS_MAX 64
#define BOOT_ARGUMENTS_MAX 4096
#define BOOT_ENVIRONMENT_MAX 1024
#define BOOT_DIRECTORIES_MAX 256
#define BOOT_TRANSPORTS_MAX 4
#define BOOT_ID_MAX 32

enum mount_type {
    MOUNT_VIRTIOFS,
    MOUNT_9P,
    MOUNT_DRVFS,
    MOUNT_BIND,
    MOUNT_TMPFS,
    MOUNT_EXT4,
    MOUNT_EROFS,
    MOUNT_TYPE_COUNT
};
extern const char *const mount_type_names[MOUNT_TYPE_COUNT];

/* Where codev-init runs; it decides which addresses and mounts are allowed. */
enum boot_place { PLACE_MACHINE, PLACE_WSL };

struct boot_mount {
    enum mount_type type;
    const char *source; /* tag, device, directory; "" for tmpfs */
    const char *target; /* as guest_target_fault allows it */
    bool readonly;
    bool outside; /* WSL: a bind whose source is the distribution's, not a part of another mount */
};

enum server_stdio { STDIO_LOG, STDIO_PIPE, STDIO_TTY, STDIO_COUNT };
extern const char *const server_stdio_names[STDIO_COUNT];

struct boot_server {
    char **argv; /* NULL-terminated; argv[0] is a path, or a name that is looked up in PATH */
    char **env;  /* NULL-terminated "NAME=value" */
    const char *cwd;
    uint16_t port; /* 0: none; the server counts as ready once it runs */
    enum server_stdio stdio;
    int64_t ready_timeout_ms;
    unsigned short rows, columns; /* tty only; 0: unknown */
};

struct boot_relay {
    bool present; /* false: no egress at all */
    uint16_t listen;
    struct endpoint transports[BOOT_TRANSPORTS_MAX];
    unsigned transport_count;
    char token[SECRET_HEX_LENGTH + 1];
    char pin[SECRET_HEX_LENGTH + 1]; /* "" without one */
};

struct boot_way_in {
    bool present;
    struct endpoint listen;
    char secret[SECRET_HEX_LENGTH + 1];
    bool framed; /* clients speak in pieces (common/wire/piece.h) */
};

struct boot_directory {
    const char *path;
    bool auto_accept;
};

struct boot_config {
    enum boot_place place;
    const char *id;       /* [a-z0-9-]{1,32} */
    const char *hostname; /* as given; hostname_set makes it valid */
    int64_t unix_ns;      /* 0: do not set the clock */
    const char *account_name;
    uid_t account_uid; /* (uid_t)-1: the image's own */
    gid_t account_gid;
    struct boot_mount mounts[BOOT_MOUNTS_MAX]; /* in the given order */
    unsigned mount_count;
    struct boot_server server;
    struct boot_relay relay;
    struct boot_way_in way_in;
    const char *egress[EGRESS_MAX];
    unsigned egress_count;
    bool auto_accept;
    struct boot_directory directories[BOOT_DIRECTORIES_MAX];
    unsigned directory_count;
    int64_t limit_pids;
    int64_t limit_memory_mib; /* 0: no limit */
    int64_t limit_nofile;
    bool user_namespaces;
};

/* Parses and validates one JSON object by the rules of this place. 0, or a negative errno with a
 * reason that names the key or the column. On failure *config must not be used. The caller wipes
 * the secrets in `text`. */
int boot_config_parse(struct boot_config *config, enum boot_place place, const char *text,
                      size_t length, struct failure *why);

/* Parses the object {"listen":..., "transport":[...], "token":..., "pin":...} of the command
 * `relay`, which is at `index` of a parsed document. */
struct json;
int boot_relay_parse(struct boot_relay *relay, enum boot_place place, const struct json *document,
                     uint32_t index, struct failure *why);

#endif
