/* What must hold for the boot configuration's values beyond their types (design, sections 3 and 4). */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "init/config/boot_config_internal.h"

/* Below these lie the user's folders; everything else is the image's. */
static const char *const target_roots[] = {"/workspace", "/home", "/opt",
                                           "/mnt",       "/srv",  "/run/codev"};

/* Our own files below /run/codev: no mount may lie over them. */
static const char *const reserved_targets[] = {"/run/codev", "/run/codev/sandbox.json"};

#define DIGITS "0123456789"
#define LOWER_CASE "abcdefghijklmnopqrstuvwxyz"

int boot_read_protocol(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    int64_t version;

    (void)target;
    (void)field;
    if (json_int64(parse->document, index, &version) < 0 || version != PROTOCOL_VERSION)
        return schema_refuse(parse, "this codev-init (%s) speaks %d", CODEV_VERSION,
                             PROTOCOL_VERSION);
    return 0;
}

static const char *path_fault(const char *path)
{
    if (path[0] != '/')
        return "is not absolute";
    if (path[1] == '\0')
        return NULL;
    for (const char *name = path; *name == '/';) {
        size_t length = strcspn(++name, "/");
        if (length == 0)
            return "has an empty name in it, or a slash at its end";
        if ((length == 1 && name[0] == '.') || (length == 2 && name[0] == '.' && name[1] == '.'))
            return "has . or .. in it";
        if (length > NAME_MAX)
            return "has a name of more than 255 bytes in it";
        name += length;
    }
    return strlen(path) >= PATH_MAX ? "is longer than 4095 bytes" : NULL;
}

int boot_check_path(struct schema_parse *parse, const char *path)
{
    const char *fault = path_fault(path);

    return fault == NULL ? 0 : schema_refuse(parse, "the path \"%s\" %s", path, fault);
}

static bool lies_in(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static int check_target(struct schema_parse *parse, const char *target)
{
    bool allowed = false;

    if (boot_check_path(parse, target) < 0)
        return -EINVAL;
    for (unsigned number = 0; number < ARRAY_LENGTH(target_roots); number++)
        allowed = allowed || lies_in(target, target_roots[number]);
    for (unsigned number = 0; number < ARRAY_LENGTH(reserved_targets); number++)
        allowed = allowed && strcmp(target, reserved_targets[number]) != 0;
    if (!allowed)
        return schema_refuse(
            parse,
            "the target \"%s\" is not below /workspace, /home, /opt, /mnt, /srv or /run/codev",
            target);
    return 0;
}

/* In WSL the host's folders come as drvfs or by a bind; there is no tag and no disk of the sandbox's own. */
static bool exists_here(enum boot_place place, enum mount_type type)
{
    if (type == MOUNT_BIND || type == MOUNT_TMPFS)
        return true;
    return (type == MOUNT_DRVFS) == (place == PLACE_WSL);
}

static int check_source(struct schema_parse *parse, const struct boot_mount *mount)
{
    if (!exists_here(parse->place, mount->type))
        return schema_refuse(parse,
                             parse->place == PLACE_WSL
                                 ? "%s mounts do not exist in WSL: drvfs or bind is wanted"
                                 : "%s mounts exist in WSL only",
                             mount_type_names[mount->type]);
    switch (mount->type) {
    case MOUNT_VIRTIOFS:
    case MOUNT_9P:
        if (mount->source[0] == '\0')
            return schema_refuse(parse, "the source of a %s mount is its tag: it is missing",
                                 mount_type_names[mount->type]);
        return 0;
    case MOUNT_BIND:
        return boot_check_path(parse, mount->source);
    case MOUNT_EXT4:
    case MOUNT_EROFS:
        if (boot_check_path(parse, mount->source) < 0)
            return -EINVAL;
        if (strncmp(mount->source, "/dev/", 5) != 0)
            return schema_refuse(parse, "the source of a %s mount is a device below /dev",
                                 mount_type_names[mount->type]);
        return 0;
    case MOUNT_TMPFS:
        if (mount->source[0] != '\0')
            return schema_refuse(parse, "a tmpfs mount has no source");
        return 0;
    case MOUNT_DRVFS:
        if (mount->source[0] == '\0' || mount->source[0] == '-')
            return schema_refuse(parse, "the source of a drvfs mount is a folder of Windows");
        return 0;
    case MOUNT_TYPE_COUNT:
        break;
    }
    return -EINVAL;
}

int boot_check_mount(struct schema_parse *parse, const struct boot_config *config, unsigned index)
{
    const struct boot_mount *mount = &config->mounts[index];

    if (check_target(parse, mount->target) < 0 || check_source(parse, mount) < 0)
        return -EINVAL;
    for (unsigned earlier = 0; earlier < index; earlier++)
        if (strcmp(config->mounts[earlier].target, mount->target) == 0)
            return schema_refuse(parse, "the target \"%s\" stands there twice", mount->target);
    return 0;
}

int boot_check_rule_name(struct schema_parse *parse, const struct boot_config *config,
                         struct name_filter *seen)
{
    const char *name = config->egress[config->egress_count];
    uint32_t hash = NAME_FILTER_SEED;

    if (name[strspn(name, LOWER_CASE DIGITS "._-")] != '\0' || strchr("._-", name[0]) != NULL)
        return schema_refuse(parse, "\"%s\" is no name of a rule", name);
    for (const char *at = name; *at != '\0'; at++)
        hash = name_filter_hash(hash, (unsigned char)*at);
    bool perhaps = name_filter_seen(seen, hash);
    for (unsigned earlier = 0; perhaps && earlier < config->egress_count; earlier++)
        if (strcmp(config->egress[earlier], name) == 0)
            return schema_refuse(parse, "\"%s\" stands there twice", name);
    return 0;
}

int boot_check_transport(struct schema_parse *parse, const struct endpoint *endpoint)
{
    bool tcp = endpoint->kind == ENDPOINT_TCP4 || endpoint->kind == ENDPOINT_TCP6 ||
               endpoint->kind == ENDPOINT_TCP_GATEWAY;

    if (parse->place == PLACE_MACHINE && endpoint->kind != ENDPOINT_VSOCK)
        return schema_refuse(parse, "a virtual machine reaches its host over vsock only");
    if (parse->place == PLACE_WSL && !tcp)
        return schema_refuse(parse, "a sandbox in WSL reaches Windows over tcp only");
    return 0;
}

int boot_check_pin(struct schema_parse *parse, const struct boot_relay *relay)
{
    if (parse->place == PLACE_WSL && relay->pin[0] == '\0')
        return schema_refuse(parse, "\"pin\" is needed: others can listen on a TCP port too");
    return 0;
}

/* 127.0.0.0/8, or ::1: another address would be open to the network that Windows is in. */
static bool is_loopback(const struct endpoint *endpoint)
{
    static const uint8_t six[16] = {[15] = 1};

    if (endpoint->kind == ENDPOINT_TCP4)
        return endpoint->address[0] == 127;
    return endpoint->kind == ENDPOINT_TCP6 && memcmp(endpoint->address, six, sizeof(six)) == 0;
}

int boot_check_way_in(struct schema_parse *parse, const struct endpoint *endpoint)
{
    if (parse->place == PLACE_WSL) {
        if (!is_loopback(endpoint))
            return schema_refuse(parse, "a sandbox in WSL is entered over tcp:127.0.0.1 or "
                                        "tcp:[::1] only");
        return 0;
    }
    if (endpoint->kind != ENDPOINT_VSOCK || endpoint->port == 0)
        return schema_refuse(parse, "a virtual machine is entered over a vsock port only");
    return 0;
}

static int check_account(struct schema_parse *parse, const struct boot_config *config)
{
    const char *name = config->account_name;

    if (name[strspn(name, LOWER_CASE DIGITS "_-")] != '\0' ||
        strchr(LOWER_CASE "_", name[0]) == NULL)
        return schema_refuse(parse, "account.name: \"%s\" is no name of an account", name);
    if (strcmp(name, "root") == 0 || strcmp(name, "codev-relay") == 0)
        return schema_refuse(parse, "account.name: \"%s\" is no account for a server", name);
    return 0;
}

static int check_ports(struct schema_parse *parse, const struct boot_config *config)
{
    uint16_t port = config->server.port;

    if (config->relay.present && config->relay.listen == DNS_PORT)
        return schema_refuse(parse, "relay.listen: port %d answers DNS", DNS_PORT);
    if (port == DNS_PORT || (config->relay.present && port != 0 && port == config->relay.listen))
        return schema_refuse(parse, "server.port: %d is taken by the relay", port);
    return 0;
}

/* As in a virtual machine a bind may show part of another mount again; any other source is the distribution's. */
static void find_outside(struct boot_config *config)
{
    for (unsigned number = 0; number < config->mount_count; number++) {
        struct boot_mount *mount = &config->mounts[number];
        mount->outside = config->place == PLACE_WSL && mount->type == MOUNT_BIND;
        for (unsigned other = 0; other < config->mount_count; other++)
            if (other != number && lies_in(mount->source, config->mounts[other].target))
                mount->outside = false;
    }
}

int boot_check_whole(struct schema_parse *parse, struct boot_config *config)
{
    if (config->id[strspn(config->id, LOWER_CASE DIGITS "-")] != '\0')
        return schema_refuse(parse, "id: \"%s\" holds more than a-z, 0-9 and -", config->id);
    if (check_account(parse, config) < 0 || check_ports(parse, config) < 0)
        return -EINVAL;
    size_t path_length = schema_enter_key(parse, "server.cwd");
    if (boot_check_path(parse, config->server.cwd) < 0)
        return -EINVAL;
    schema_leave(parse, path_length);
    find_outside(config);
    if (!config->relay.present && config->egress_count > 0)
        return schema_refuse(parse, "egress: there is none without \"relay\"");
    return 0;
}
