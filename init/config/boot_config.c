/* The boot configuration: the tables of its keys, and the checks that span several values.
 *
 * One pass over the tables (schema.h) reads and checks each value by itself; check_whole then looks
 * at what several values say together. Nothing is applied here. The tokens live in a mapping whose
 * pages are given back after the parse, and the strings in a static arena, of which only the pages
 * in use are resident. A secret is never quoted in a message.
 */
#include "init/config/boot_config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/json/json.h"
#include "common/os/cleanup.h"
#include "common/os/memory.h"
#include "common/wire/guest_path.h"
#include "init/config/schema.h"

/* Space for every string of the longest text, and for the pointers of argv and env. */
#define ARENA_SIZE                                                                                 \
    (CONTROL_LINE_MAX + (BOOT_ARGUMENTS_MAX + BOOT_ENVIRONMENT_MAX + 16) * sizeof(char *))

#define ARGUMENT_MAX (128 * 1024) /* MAX_ARG_STRLEN of the kernel, 32 pages */
#define ID_NUMBER_MAX 4294967294u /* (uid_t)-1 is no id */
#define PIN_PREFIX "sha256:"
#define DIGITS "0123456789"
#define LOWER_CASE "abcdefghijklmnopqrstuvwxyz"

const char *const mount_type_names[] = {
    [MOUNT_VIRTIOFS] = "virtiofs", [MOUNT_9P] = "9p",       [MOUNT_DRVFS] = "drvfs",
    [MOUNT_BIND] = "bind",         [MOUNT_TMPFS] = "tmpfs", [MOUNT_EXT4] = "ext4",
    [MOUNT_EROFS] = "erofs",
};
static_assert(ARRAY_LENGTH(mount_type_names) == MOUNT_TYPE_COUNT, "a name for every type");

const char *const server_stdio_names[] = {
    [STDIO_LOG] = "log", [STDIO_PIPE] = "pipe", [STDIO_TTY] = "tty"};
static_assert(ARRAY_LENGTH(server_stdio_names) == STDIO_COUNT, "a name for every mode");
static_assert(sizeof(enum mount_type) == sizeof(unsigned) &&
                  sizeof(enum server_stdio) == sizeof(unsigned),
              "schema_read_choice writes an unsigned");

static char *arena; /* ARENA_SIZE; made once */

/* ---- single values ---- */

static int read_protocol(struct schema_parse *parse, uint32_t index, void *target,
                         const struct schema_field *field)
{
    int64_t version;

    (void)target;
    (void)field;
    if (json_int64(parse->document, index, &version) < 0 || version != PROTOCOL_VERSION)
        return schema_refuse(parse, "this codev-init (%s) supports protocol %d only", CODEV_VERSION,
                             PROTOCOL_VERSION);
    return 0;
}

static int check_path(struct schema_parse *parse, const char *path)
{
    const char *fault = guest_path_fault(path);

    return fault ? schema_refuse(parse, "the path \"%s\" %s", path, fault) : 0;
}

/* ---- lists ---- */

static const struct schema_field any_text = {.name = "", .least = 0, .most = ARGUMENT_MAX - 1};

static int read_arguments(struct schema_parse *parse, uint32_t index, void *target,
                          const struct schema_field *field)
{
    int result = schema_expect_container(parse, index, JSON_ARRAY, field->most);
    if (result < 0)
        return result;
    unsigned count = parse->document->tokens[index].size, number = 0;
    char **list = schema_take_room(parse, (count + 1) * sizeof(*list));
    if (!list)
        return schema_refuse(parse, "the configuration is too large");
    if (count == 0)
        return schema_refuse(parse, "the name of the program is missing");
    for (uint32_t item = json_first(parse->document, index); item != 0;
         item = json_next(parse->document, index, item)) {
        size_t path_length = schema_enter_element(parse, number);
        result = schema_read_text(parse, item, &list[number++], &any_text);
        if (result < 0)
            return result;
        schema_leave(parse, path_length);
    }
    list[count] = NULL;
    if (list[0][0] == '\0')
        return schema_refuse(parse, "the name of the program is empty");
    *(char ***)target = list;
    return 0;
}

/* Makes "NAME=value" by replacing the NUL behind the name: both strings are adjacent in the
 * arena. */
static int read_variable(struct schema_parse *parse, uint32_t name, char **out)
{
    char *value;
    size_t name_length, value_length;
    int result = schema_take_text(parse, name, out, &name_length);

    if (result < 0)
        return result;
    if (name_length == 0 || strchr(*out, '='))
        return schema_refuse(parse, "\"%s\" is not a valid variable name", *out);
    size_t path_length = schema_enter_key(parse, *out);
    result = schema_take_text(parse, name + 1, &value, &value_length);
    if (result == 0 && name_length + value_length + 2 > ARGUMENT_MAX)
        result = schema_refuse(parse, "longer than %d bytes", ARGUMENT_MAX);
    if (result < 0)
        return result;
    schema_leave(parse, path_length);
    (*out)[name_length] = '=';
    return 0;
}

static int read_environment(struct schema_parse *parse, uint32_t index, void *target,
                            const struct schema_field *field)
{
    int result = schema_expect_container(parse, index, JSON_OBJECT, field->most);
    if (result < 0)
        return result;
    unsigned count = parse->document->tokens[index].size, number = 0;
    char **list = schema_take_room(parse, (count + 1) * sizeof(*list));
    if (!list)
        return schema_refuse(parse, "the configuration is too large");
    for (uint32_t name = json_first(parse->document, index); name != 0;
         name = json_next(parse->document, index, name)) {
        result = read_variable(parse, name, &list[number++]);
        if (result < 0)
            return result;
    }
    list[count] = NULL;
    *(char ***)target = list;
    return 0;
}

static int read_rule_name(struct schema_parse *parse, uint32_t item, const char **out)
{
    static const struct schema_field rule_name = {.name = "", .least = 1, .most = RULE_NAME_MAX};
    int result = schema_read_text(parse, item, out, &rule_name);

    if (result == 0 &&
        ((*out)[strspn(*out, LOWER_CASE DIGITS "._-")] != '\0' || strchr("._-", (*out)[0])))
        return schema_refuse(parse, "\"%s\" is not a valid rule name", *out);
    return result;
}

/* Names of rules: [a-z0-9][a-z0-9._-]{0,63}, none of them twice. */
static int read_egress(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    struct boot_config *config = target;
    int result = schema_expect_container(parse, index, JSON_ARRAY, field->most);
    uint32_t twice = result == 0 ? json_find_duplicate(parse->document, index) : 0;

    for (uint32_t item = json_first(parse->document, index); result == 0 && item != 0;
         item = json_next(parse->document, index, item)) {
        size_t path_length = schema_enter_element(parse, config->egress_count);
        const char **name = &config->egress[config->egress_count++];
        result = read_rule_name(parse, item, name);
        if (result == 0 && item == twice)
            result = schema_refuse(parse, "\"%s\" is listed twice", *name);
        schema_leave(parse, path_length);
    }
    return result;
}

static int read_directories(struct schema_parse *parse, uint32_t index, void *target,
                            const struct schema_field *field)
{
    struct boot_config *config = target;
    int result = schema_expect_container(parse, index, JSON_OBJECT, field->most);

    for (uint32_t name = json_first(parse->document, index); result == 0 && name != 0;
         name = json_next(parse->document, index, name)) {
        struct boot_directory *directory = &config->directories[config->directory_count++];
        char *path;
        result = schema_take_text(parse, name, &path, NULL);
        if (result == 0)
            result = check_path(parse, path);
        if (result == 0)
            result = schema_read_bool(parse, name + 1, &directory->auto_accept, NULL);
        directory->path = path;
    }
    return result;
}

/* ---- mounts ---- */

static const struct schema_field mount_fields[] = {
    {"type", SCHEMA_REQUIRED, schema_read_choice, offsetof(struct boot_mount, type), 0,
     MOUNT_TYPE_COUNT, mount_type_names},
    {"source", SCHEMA_OPTIONAL, schema_read_text, offsetof(struct boot_mount, source), 0, 4095,
     NULL},
    {"target", SCHEMA_REQUIRED, schema_read_text, offsetof(struct boot_mount, target), 1, 4095,
     NULL},
    {"readonly", SCHEMA_OPTIONAL, schema_read_bool, offsetof(struct boot_mount, readonly), 0, 0,
     NULL},
};
static const struct schema_table mount_table = {mount_fields, ARRAY_LENGTH(mount_fields)};

/* In WSL a folder of the host is a drvfs or a bind mount; there are no tags and no disks. */
static bool exists_here(enum boot_place place, enum mount_type type)
{
    if (type == MOUNT_BIND || type == MOUNT_TMPFS)
        return true;
    return (type == MOUNT_DRVFS) == (place == PLACE_WSL);
}

static int check_source(struct schema_parse *parse, const struct boot_mount *mount)
{
    const char *fault;

    if (!exists_here(parse->place, mount->type))
        return schema_refuse(parse,
                             parse->place == PLACE_WSL
                                 ? "%s mounts do not exist in WSL: use drvfs or bind"
                                 : "%s mounts exist in WSL only",
                             mount_type_names[mount->type]);
    switch (mount->type) {
    case MOUNT_VIRTIOFS:
    case MOUNT_9P:
        if (mount->source[0] == '\0')
            return schema_refuse(parse, "the source of a %s mount must be its tag",
                                 mount_type_names[mount->type]);
        return 0;
    case MOUNT_BIND:
        fault = guest_folder_fault(mount->source);
        return fault ? schema_refuse(parse, "the source \"%s\" %s", mount->source, fault) : 0;
    case MOUNT_EXT4:
    case MOUNT_EROFS:
        if (!guest_disk_name(mount->source))
            return schema_refuse(parse, "the source of a %s mount must be /dev/NAME",
                                 mount_type_names[mount->type]);
        return 0;
    case MOUNT_TMPFS:
        if (mount->source[0] != '\0')
            return schema_refuse(parse, "a tmpfs mount has no source");
        return 0;
    case MOUNT_DRVFS:
        if (mount->source[0] == '\0' || mount->source[0] == '-')
            return schema_refuse(parse, "the source of a drvfs mount must be a folder of Windows");
        return 0;
    case MOUNT_TYPE_COUNT:
        break;
    }
    return -EINVAL;
}

/* The mount number `index`, also against those before it. */
static int check_mount(struct schema_parse *parse, const struct boot_config *config, unsigned index)
{
    const struct boot_mount *mount = &config->mounts[index];
    const char *fault = guest_target_fault(mount->target);

    if (fault)
        return schema_refuse(parse, "the target \"%s\" %s", mount->target, fault);
    if (check_source(parse, mount) < 0)
        return -EINVAL;
    for (unsigned earlier = 0; earlier < index; earlier++)
        if (strcmp(config->mounts[earlier].target, mount->target) == 0)
            return schema_refuse(parse, "the target \"%s\" is used twice", mount->target);
    return 0;
}

static int read_mounts(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    struct boot_config *config = target;
    int result = schema_expect_container(parse, index, JSON_ARRAY, field->most);

    for (uint32_t item = json_first(parse->document, index); result == 0 && item != 0;
         item = json_next(parse->document, index, item)) {
        struct boot_mount *mount = &config->mounts[config->mount_count];
        mount->source = "";
        size_t path_length = schema_enter_element(parse, config->mount_count);
        result = schema_read_object(parse, item, &mount_table, mount);
        if (result == 0)
            result = check_mount(parse, config, config->mount_count);
        config->mount_count++;
        schema_leave(parse, path_length);
    }
    return result;
}

/* ---- relay and way in ---- */

/* A virtual machine has no network, so that both ends are vsock; WSL has TCP. */
static int check_transport(struct schema_parse *parse, const struct endpoint *endpoint)
{
    bool tcp = endpoint->kind == ENDPOINT_TCP4 || endpoint->kind == ENDPOINT_TCP6 ||
               endpoint->kind == ENDPOINT_TCP_GATEWAY;

    if (parse->place == PLACE_MACHINE && endpoint->kind != ENDPOINT_VSOCK)
        return schema_refuse(parse, "a virtual machine reaches its host over vsock only");
    if (parse->place == PLACE_WSL && !tcp)
        return schema_refuse(parse, "a sandbox in WSL reaches Windows over tcp only");
    return 0;
}

static int check_pin(struct schema_parse *parse, const struct boot_relay *relay)
{
    if (parse->place == PLACE_WSL && relay->pin[0] == '\0')
        return schema_refuse(
            parse, "\"pin\" is required in WSL: other programs can listen on a TCP port too");
    return 0;
}

/* 127.0.0.0/8 or ::1: any other address could be reached from the network of the Windows host. */
static bool is_loopback(const struct endpoint *endpoint)
{
    static const uint8_t six[16] = {[15] = 1};

    if (endpoint->kind == ENDPOINT_TCP4)
        return endpoint->address[0] == 127;
    return endpoint->kind == ENDPOINT_TCP6 && memcmp(endpoint->address, six, sizeof(six)) == 0;
}

static int check_way_in(struct schema_parse *parse, const struct endpoint *endpoint)
{
    if (parse->place == PLACE_WSL) {
        if (!is_loopback(endpoint))
            return schema_refuse(parse, "in WSL the way in must be tcp:127.0.0.1:PORT or "
                                        "tcp:[::1]:PORT");
        return 0;
    }
    if (endpoint->kind != ENDPOINT_VSOCK || endpoint->port == 0)
        return schema_refuse(parse, "in a virtual machine the way in must be vsock:PORT");
    return 0;
}

static int read_secret(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    char *out = target;
    int length = json_string(parse->document, index, out, SECRET_HEX_LENGTH + 1);

    (void)field;
    if (length != SECRET_HEX_LENGTH || !secret_is_hex(out))
        return schema_refuse(parse, "must be 64 lower-case hexadecimal digits");
    return 0;
}

static int read_pin(struct schema_parse *parse, uint32_t index, void *target,
                    const struct schema_field *field)
{
    char text[sizeof(PIN_PREFIX) + SECRET_HEX_LENGTH];
    const size_t prefix = strlen(PIN_PREFIX);
    int length = json_string(parse->document, index, text, sizeof(text));

    (void)field;
    if (length != (int)prefix + SECRET_HEX_LENGTH || memcmp(text, PIN_PREFIX, prefix) != 0 ||
        !secret_is_hex(text + prefix))
        return schema_refuse(parse,
                             "must be \"" PIN_PREFIX "\" and 64 lower-case hexadecimal digits");
    memcpy(target, text + prefix, SECRET_HEX_LENGTH + 1);
    return 0;
}

static int read_transports(struct schema_parse *parse, uint32_t index, void *target,
                           const struct schema_field *field)
{
    struct boot_relay *relay = target;
    char text[ENDPOINT_TEXT_MAX];
    int result = schema_expect_container(parse, index, JSON_ARRAY, field->most);

    if (result == 0 && parse->document->tokens[index].size == 0)
        return schema_refuse(parse, "must hold at least one address");
    for (uint32_t item = json_first(parse->document, index); result == 0 && item != 0;
         item = json_next(parse->document, index, item)) {
        struct endpoint *endpoint = &relay->transports[relay->transport_count];
        struct failure why;
        size_t path_length = schema_enter_element(parse, relay->transport_count++);
        if (json_string(parse->document, item, text, sizeof(text)) < 0)
            result = schema_refuse(parse, "must be an address like \"vsock:2:50117\"");
        else if (endpoint_parse_dial(endpoint, text, &why) < 0)
            result = schema_refuse(parse, "%s", why.text);
        else
            result = check_transport(parse, endpoint);
        schema_leave(parse, path_length);
    }
    return result;
}

static const struct schema_field relay_fields[] = {
    {"listen", SCHEMA_OPTIONAL, schema_read_uint16, offsetof(struct boot_relay, listen), 1, 65535,
     NULL},
    {"transport", SCHEMA_REQUIRED, read_transports, 0, 1, BOOT_TRANSPORTS_MAX, NULL},
    {"token", SCHEMA_REQUIRED, read_secret, offsetof(struct boot_relay, token), 0, 0, NULL},
    {"pin", SCHEMA_NULLABLE, read_pin, offsetof(struct boot_relay, pin), 0, 0, NULL},
};
static const struct schema_table relay_table = {relay_fields, ARRAY_LENGTH(relay_fields)};

static int read_relay(struct schema_parse *parse, uint32_t index, void *target,
                      const struct schema_field *field)
{
    struct boot_relay *relay = target;

    (void)field;
    relay->listen = RELAY_PORT;
    relay->present = true;
    int result = schema_read_object(parse, index, &relay_table, relay);
    return result < 0 ? result : check_pin(parse, relay);
}

static int read_way_in_listen(struct schema_parse *parse, uint32_t index, void *target,
                              const struct schema_field *field)
{
    char text[ENDPOINT_TEXT_MAX];
    struct failure why;

    (void)field;
    if (json_string(parse->document, index, text, sizeof(text)) < 0)
        return schema_refuse(parse, "must be an address like \"vsock:4096\"");
    if (endpoint_parse_listen(target, text, &why) < 0)
        return schema_refuse(parse, "%s", why.text);
    return check_way_in(parse, target);
}

static const struct schema_field way_in_fields[] = {
    {"listen", SCHEMA_REQUIRED, read_way_in_listen, offsetof(struct boot_way_in, listen), 0, 0,
     NULL},
    {"secret", SCHEMA_REQUIRED, read_secret, offsetof(struct boot_way_in, secret), 0, 0, NULL},
    {"framed", SCHEMA_OPTIONAL, schema_read_bool, offsetof(struct boot_way_in, framed), 0, 0, NULL},
};
static const struct schema_table way_in_table = {way_in_fields, ARRAY_LENGTH(way_in_fields)};

static int read_way_in(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    struct boot_way_in *way_in = target;

    (void)field;
    way_in->present = true;
    return schema_read_object(parse, index, &way_in_table, way_in);
}

int boot_relay_parse(struct boot_relay *relay, enum boot_place place, const struct json *document,
                     uint32_t index, struct failure *why)
{
    struct schema_parse parse = {.document = document, .why = why, .place = place};
    struct boot_relay fresh = {.present = false};
    int result;

    schema_enter_key(&parse, "relay");
    result = read_relay(&parse, index, &fresh, NULL);
    if (result == 0)
        *relay = fresh;
    secret_wipe(&fresh, sizeof(fresh));
    return result;
}

/* ---- the whole ---- */

static const struct schema_field account_fields[] = {
    {"name", SCHEMA_OPTIONAL, schema_read_text, offsetof(struct boot_config, account_name), 1, 31,
     NULL},
    {"uid", SCHEMA_OPTIONAL, schema_read_uint32, offsetof(struct boot_config, account_uid), 1,
     ID_NUMBER_MAX, NULL},
    {"gid", SCHEMA_OPTIONAL, schema_read_uint32, offsetof(struct boot_config, account_gid), 1,
     ID_NUMBER_MAX, NULL},
};
static const struct schema_table account_table = {account_fields, ARRAY_LENGTH(account_fields)};

static const struct schema_field server_fields[] = {
    {"argv", SCHEMA_REQUIRED, read_arguments, offsetof(struct boot_server, argv), 1,
     BOOT_ARGUMENTS_MAX, NULL},
    {"env", SCHEMA_OPTIONAL, read_environment, offsetof(struct boot_server, env), 0,
     BOOT_ENVIRONMENT_MAX, NULL},
    {"cwd", SCHEMA_OPTIONAL, schema_read_text, offsetof(struct boot_server, cwd), 1, 4095, NULL},
    {"port", SCHEMA_NULLABLE, schema_read_uint16, offsetof(struct boot_server, port), 0, 65535,
     NULL},
    {"stdio", SCHEMA_OPTIONAL, schema_read_choice, offsetof(struct boot_server, stdio), 0,
     STDIO_COUNT, server_stdio_names},
    {"ready_timeout_ms", SCHEMA_OPTIONAL, schema_read_int64,
     offsetof(struct boot_server, ready_timeout_ms), 1, 3600 * 1000, NULL},
    {"rows", SCHEMA_OPTIONAL, schema_read_uint16, offsetof(struct boot_server, rows), 0, 65535,
     NULL},
    {"cols", SCHEMA_OPTIONAL, schema_read_uint16, offsetof(struct boot_server, columns), 0, 65535,
     NULL},
};
static const struct schema_table server_table = {server_fields, ARRAY_LENGTH(server_fields)};

static const struct schema_field auto_accept_fields[] = {
    {"default", SCHEMA_OPTIONAL, schema_read_bool, offsetof(struct boot_config, auto_accept), 0, 0,
     NULL},
    {"directories", SCHEMA_OPTIONAL, read_directories, 0, 0, BOOT_DIRECTORIES_MAX, NULL},
};
static const struct schema_table auto_accept_table = {auto_accept_fields,
                                                      ARRAY_LENGTH(auto_accept_fields)};

static const struct schema_field limit_fields[] = {
    {"pids", SCHEMA_OPTIONAL, schema_read_int64, offsetof(struct boot_config, limit_pids), 1,
     4 * 1024 * 1024, NULL},
    {"memory_mib", SCHEMA_OPTIONAL, schema_read_int64,
     offsetof(struct boot_config, limit_memory_mib), 0, 1024 * 1024 * 1024, NULL},
    {"nofile", SCHEMA_OPTIONAL, schema_read_int64, offsetof(struct boot_config, limit_nofile), 64,
     1024 * 1024, NULL},
};
static const struct schema_table limit_table = {limit_fields, ARRAY_LENGTH(limit_fields)};

static const struct schema_field boot_fields[] = {
    {"protocol", SCHEMA_REQUIRED, read_protocol, 0, 0, 0, NULL},
    {"id", SCHEMA_REQUIRED, schema_read_text, offsetof(struct boot_config, id), 1, BOOT_ID_MAX,
     NULL},
    {"hostname", SCHEMA_OPTIONAL, schema_read_text, offsetof(struct boot_config, hostname), 0, 4095,
     NULL},
    {"unix_ns", SCHEMA_OPTIONAL, schema_read_int64, offsetof(struct boot_config, unix_ns), 0,
     INT64_MAX, NULL},
    {"account", SCHEMA_OPTIONAL, schema_read_nested, 0, 0, 0, &account_table},
    {"mounts", SCHEMA_OPTIONAL, read_mounts, 0, 0, BOOT_MOUNTS_MAX, NULL},
    {"server", SCHEMA_REQUIRED, schema_read_nested, offsetof(struct boot_config, server), 0, 0,
     &server_table},
    {"relay", SCHEMA_NULLABLE, read_relay, offsetof(struct boot_config, relay), 0, 0, NULL},
    {"way_in", SCHEMA_NULLABLE, read_way_in, offsetof(struct boot_config, way_in), 0, 0, NULL},
    {"egress", SCHEMA_OPTIONAL, read_egress, 0, 0, EGRESS_MAX, NULL},
    {"auto_accept", SCHEMA_OPTIONAL, schema_read_nested, 0, 0, 0, &auto_accept_table},
    {"limits", SCHEMA_OPTIONAL, schema_read_nested, 0, 0, 0, &limit_table},
    {"user_namespaces", SCHEMA_OPTIONAL, schema_read_bool,
     offsetof(struct boot_config, user_namespaces), 0, 0, NULL},
};
static const struct schema_table boot_table = {boot_fields, ARRAY_LENGTH(boot_fields)};

static int check_account(struct schema_parse *parse, const struct boot_config *config)
{
    const char *name = config->account_name;

    if (name[strspn(name, LOWER_CASE DIGITS "_-")] != '\0' || !strchr(LOWER_CASE "_", name[0]))
        return schema_refuse(parse, "account.name: \"%s\" is not a valid account name", name);
    if (strcmp(name, "root") == 0 || strcmp(name, "codev-relay") == 0)
        return schema_refuse(parse, "account.name: the server cannot run as \"%s\"", name);
    return 0;
}

static int check_ports(struct schema_parse *parse, const struct boot_config *config)
{
    uint16_t port = config->server.port;

    if (config->relay.present && config->relay.listen == DNS_PORT)
        return schema_refuse(parse, "relay.listen: port %d is used for DNS", DNS_PORT);
    if (port == DNS_PORT || (config->relay.present && port != 0 && port == config->relay.listen))
        return schema_refuse(parse, "server.port: the relay listens on port %d", port);
    return 0;
}

/* A bind may show a part of another mount again; in WSL any other source is the distribution's. */
static void find_outside(struct boot_config *config)
{
    for (unsigned number = 0; number < config->mount_count; number++) {
        struct boot_mount *mount = &config->mounts[number];
        mount->outside = config->place == PLACE_WSL && mount->type == MOUNT_BIND;
        for (unsigned other = 0; other < config->mount_count; other++)
            if (other != number && guest_path_is_below(mount->source, config->mounts[other].target))
                mount->outside = false;
    }
}

static int check_whole(struct schema_parse *parse, struct boot_config *config)
{
    if (config->id[strspn(config->id, LOWER_CASE DIGITS "-")] != '\0')
        return schema_refuse(parse, "id: \"%s\" may hold a-z, 0-9 and - only", config->id);
    if (check_account(parse, config) < 0 || check_ports(parse, config) < 0)
        return -EINVAL;
    size_t path_length = schema_enter_key(parse, "server.cwd");
    if (check_path(parse, config->server.cwd) < 0)
        return -EINVAL;
    schema_leave(parse, path_length);
    find_outside(config);
    if (!config->relay.present && config->egress_count > 0)
        return schema_refuse(parse, "egress: needs \"relay\"");
    return 0;
}

static void set_defaults(struct boot_config *config)
{
    static char *no_environment[] = {NULL};

    memset(config, 0, sizeof(*config));
    config->hostname = "codev";
    config->account_name = "codev";
    config->account_uid = (uid_t)-1;
    config->account_gid = (gid_t)-1;
    config->server.env = no_environment;
    config->server.cwd = "/";
    config->server.stdio = STDIO_LOG;
    config->server.ready_timeout_ms = 60000;
    config->auto_accept = true;
    config->limit_pids = 4096;
    config->limit_nofile = 65536;
}

static int parse_text(struct boot_config *config, enum boot_place place, const char *text,
                      size_t length, struct json_token *tokens, struct failure *why)
{
    struct json document;
    struct json_position where;
    int result = json_parse(&document, text, length, tokens, CONTROL_TOKENS_MAX, &where);

    if (result < 0)
        return failure_set(why, -result, "boot configuration, column %u: %s", where.column,
                           where.reason);
    struct schema_parse parse = {.document = &document,
                                 .arena = arena,
                                 .arena_size = ARENA_SIZE,
                                 .why = why,
                                 .place = place};
    set_defaults(config);
    config->place = place;
    result = schema_read_object(&parse, 0, &boot_table, config);
    if (result == 0)
        result = check_whole(&parse, config);
    return result < 0 ? failure_prefix(why, result, "boot configuration") : 0;
}

int boot_config_parse(struct boot_config *config, enum boot_place place, const char *text,
                      size_t length, struct failure *why)
{
    const size_t size = CONTROL_TOKENS_MAX * sizeof(struct json_token);
    static void *tokens;

    tokens = !tokens ? memory_reserve(size) : tokens;
    arena = !arena ? memory_reserve(ARENA_SIZE) : arena;
    if (!tokens || !arena)
        return failure_set(why, ENOMEM, "boot configuration: memory for %d tokens",
                           CONTROL_TOKENS_MAX);
    int result = parse_text(config, place, text, length, tokens, why);
    memory_discard(tokens, size);
    return result;
}
