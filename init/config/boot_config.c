/* The boot configuration: the tables of its keys, and what must hold between them (boot_config.h, schema.h).
 *
 * One pass over the tables reads and checks each value by itself, then boot_config_check.c looks at what several values
 * say together. Nothing is applied here. The tokens live in a mapping that is gone when the parse ends, and the
 * strings in a static arena, of which only the pages that hold something are ever resident.
 */
#include "init/config/boot_config.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/json/json.h"
#include "common/os/cleanup.h"
#include "common/os/pages.h"
#include "init/config/boot_config_internal.h"
#include "init/config/schema.h"

/* Room for every string of the longest text, and for the pointers of argv and env. */
#define ARENA_SIZE                                                                                 \
    (CONTROL_LINE_MAX + (BOOT_ARGUMENTS_MAX + BOOT_ENVIRONMENT_MAX + 16) * sizeof(char *))

#define ARGUMENT_MAX (128 * 1024) /* MAX_ARG_STRLEN of the kernel, 32 pages */

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
    if (list == NULL)
        return schema_refuse(parse, "the configuration holds too much text");
    if (count == 0)
        return schema_refuse(parse, "the program's name is missing");
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
        return schema_refuse(parse, "the program's name is empty");
    *(char ***)target = list;
    return 0;
}

/* "NAME=value", with the name's NUL replaced: the two strings follow each other in the arena. */
static int read_variable(struct schema_parse *parse, uint32_t name, char **out)
{
    char *value;
    size_t name_length, value_length;
    int result = schema_take_text(parse, name, out, &name_length);

    if (result < 0)
        return result;
    if (name_length == 0 || strchr(*out, '=') != NULL)
        return schema_refuse(parse, "\"%s\" is no name of a variable", *out);
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
    if (list == NULL)
        return schema_refuse(parse, "the configuration holds too much text");
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

static int read_egress(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    static const struct schema_field rule_name = {.name = "", .least = 1, .most = RULE_NAME_MAX};
    struct boot_config *config = target;
    struct name_filter seen = {{0}};
    int result = schema_expect_container(parse, index, JSON_ARRAY, field->most);

    for (uint32_t item = json_first(parse->document, index); result == 0 && item != 0;
         item = json_next(parse->document, index, item)) {
        size_t path_length = schema_enter_element(parse, config->egress_count);
        result = schema_read_text(parse, item, &config->egress[config->egress_count], &rule_name);
        if (result == 0)
            result = boot_check_rule_name(parse, config, &seen);
        config->egress_count++;
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
            result = boot_check_path(parse, path);
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
            result = boot_check_mount(parse, config, config->mount_count);
        config->mount_count++;
        schema_leave(parse, path_length);
    }
    return result;
}

/* ---- the whole ---- */

static const struct schema_field account_fields[] = {
    {"name", SCHEMA_OPTIONAL, schema_read_text, offsetof(struct boot_config, account_name), 1, 31,
     NULL},
    {"uid", SCHEMA_OPTIONAL, schema_read_uint32, offsetof(struct boot_config, account_uid), 1,
     BOOT_ID_NUMBER_MAX, NULL},
    {"gid", SCHEMA_OPTIONAL, schema_read_uint32, offsetof(struct boot_config, account_gid), 1,
     BOOT_ID_NUMBER_MAX, NULL},
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
    {"protocol", SCHEMA_REQUIRED, boot_read_protocol, 0, 0, 0, NULL},
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
    {"relay", SCHEMA_NULLABLE, boot_read_relay, offsetof(struct boot_config, relay), 0, 0, NULL},
    {"way_in", SCHEMA_NULLABLE, boot_read_way_in, offsetof(struct boot_config, way_in), 0, 0, NULL},
    {"egress", SCHEMA_OPTIONAL, read_egress, 0, 0, EGRESS_MAX, NULL},
    {"auto_accept", SCHEMA_OPTIONAL, schema_read_nested, 0, 0, 0, &auto_accept_table},
    {"limits", SCHEMA_OPTIONAL, schema_read_nested, 0, 0, 0, &limit_table},
    {"user_namespaces", SCHEMA_OPTIONAL, schema_read_bool,
     offsetof(struct boot_config, user_namespaces), 0, 0, NULL},
};
static const struct schema_table boot_table = {boot_fields, ARRAY_LENGTH(boot_fields)};

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
        result = boot_check_whole(&parse, config);
    return result < 0 ? failure_prefix(why, result, "boot configuration") : 0;
}

int boot_config_parse(struct boot_config *config, enum boot_place place, const char *text,
                      size_t length, struct failure *why)
{
    const size_t size = CONTROL_TOKENS_MAX * sizeof(struct json_token);
    static void *tokens;

    tokens = tokens == NULL ? pages_map(size) : tokens;
    arena = arena == NULL ? pages_map(ARENA_SIZE) : arena;
    if (tokens == NULL || arena == NULL)
        return failure_set(why, ENOMEM, "boot configuration: memory for %d tokens",
                           CONTROL_TOKENS_MAX);
    int result = parse_text(config, place, text, length, tokens, why);
    pages_empty(tokens, size);
    return result;
}
