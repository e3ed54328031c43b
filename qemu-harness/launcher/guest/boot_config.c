/* See boot_config.h. */
#include "qemu-harness/launcher/guest/boot_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json/json_writer.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/launcher/guest/json_merge.h"

static const char *const default_command[] = {"/bin/sh", "-l", NULL};

static int refuse_duplicates(const struct json *document, const char *path, const char *text,
                             size_t length, struct failure *why)
{
    for (uint32_t i = 0; i < document->count; i++) {
        uint32_t twice =
            document->tokens[i].type == JSON_OBJECT ? json_find_duplicate(document, i) : 0;
        struct json_position where;
        if (!twice)
            continue;
        json_locate(text, length, document->tokens[twice].start, &where);
        return failure_set(why, EINVAL, "%s:%u:%u: a name stands there twice", path, where.line,
                           where.column);
    }
    return 0;
}

long boot_config_read(const char *path, char **text, struct failure *why)
{
    CLEANUP_FREE char *bytes = malloc(BOOT_CONFIG_SIZE);
    CLEANUP_FREE struct json_token *tokens = calloc(CONTROL_TOKENS_MAX, sizeof(*tokens));
    struct json document;
    struct json_position where;
    if (!bytes || !tokens)
        return failure_errno(why, ENOMEM, "%s", path);
    ssize_t length = io_read_file(AT_FDCWD, path, 0, bytes, BOOT_CONFIG_SIZE);
    if (length < 0)
        return failure_errno(why, (int)-length, "%s", path);
    if (json_parse(&document, bytes, (size_t)length, tokens, CONTROL_TOKENS_MAX, &where))
        return failure_set(why, EINVAL, "%s:%u:%u: %s", path, where.line, where.column,
                           where.reason);
    if (document.tokens[0].type != JSON_OBJECT)
        return failure_set(why, EINVAL, "%s: an object is wanted, this is %s", path,
                           json_type_names[document.tokens[0].type]);
    int result = refuse_duplicates(&document, path, bytes, (size_t)length, why);
    if (result)
        return result;
    *text = bytes;
    bytes = NULL;
    return length;
}

static void write_mounts(struct json_writer *writer, const struct boot_config_parts *parts)
{
    const char *type = parts->wsl                                         ? "drvfs"
                       : parts->file_server->kind == FILE_SERVER_VIRTIOFS ? "virtiofs"
                                                                          : "9p";
    json_write_name(writer, "mounts");
    json_write_array_begin(writer);
    for (unsigned i = 0; i < parts->mounts->count; i++) {
        const struct mount *mount = &parts->mounts->entries[i];
        json_write_object_begin(writer);
        json_member_string(writer, "type", type);
        json_member_string(writer, "source", parts->wsl ? parts->wsl->sources[i] : mount->tag);
        json_member_string(writer, "target", mount->spec.guest);
        json_member_bool(writer, "readonly", mount->spec.readonly);
        json_write_object_end(writer);
    }
    json_write_array_end(writer);
}

/* True when a later --env names the same variable: the last one counts. */
static bool named_again(const struct option_list *list, unsigned index)
{
    size_t length = strcspn(list->items[index], "=") + 1;
    for (unsigned i = index + 1; i < list->count; i++)
        if (strncmp(list->items[i], list->items[index], length) == 0)
            return true;
    return false;
}

static void write_environment(struct json_writer *writer, const struct boot_config_parts *parts)
{
    const char *terminal = getenv("TERM");
    bool terminal_given = false;
    json_write_name(writer, "env");
    json_write_object_begin(writer);
    for (unsigned i = 0; i < parts->options->environment.count; i++) {
        const char *item = parts->options->environment.items[i];
        char name[256];
        if (named_again(&parts->options->environment, i))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(item, "="), item);
        json_member_string(writer, name, strchr(item, '=') + 1);
        terminal_given |= strcmp(name, "TERM") == 0;
    }
    if (parts->stdio == BOOT_TTY && terminal && terminal[0] && !terminal_given)
        json_member_string(writer, "TERM", terminal);
    json_write_object_end(writer);
}

static void write_server(struct json_writer *writer, const struct boot_config_parts *parts)
{
    const struct options *options = parts->options;
    const char *const *command =
        options->command ? (const char *const *)options->command : default_command;
    json_write_name(writer, "server");
    json_write_object_begin(writer);
    json_write_name(writer, "argv");
    json_write_array_begin(writer);
    for (; *command; command++)
        json_write_string(writer, *command);
    json_write_array_end(writer);
    write_environment(writer, parts);
    const char *cwd = parts->mounts->count ? parts->mounts->entries[0].spec.guest : "/home/codev";
    json_member_string(writer, "cwd", options->cwd ? options->cwd : cwd);
    json_member_int(writer, "port", options->server_port);
    json_member_string(writer, "stdio", parts->stdio == BOOT_TTY ? "tty" : "pipe");
    if (parts->stdio == BOOT_TTY && parts->rows && parts->columns) {
        json_member_int(writer, "rows", parts->rows);
        json_member_int(writer, "cols", parts->columns);
    }
    json_write_object_end(writer);
}

/* On Windows the host is the gateway or 127.0.0.1, as its network mode has it: the guest tries both. */
static void write_transports(struct json_writer *writer, const struct boot_config_parts *parts)
{
    static const char *const machine[] = {"vsock:2:%u", NULL};
    static const char *const wsl[] = {"tcp:gateway:%u", "tcp:127.0.0.1:%u", NULL};
    char transport[32];
    json_write_name(writer, "transport");
    json_write_array_begin(writer);
    for (const char *const *format = parts->wsl ? wsl : machine; *format; format++) {
        snprintf(transport, sizeof(transport), *format, parts->broker->guest_port);
        json_write_string(writer, transport);
    }
    json_write_array_end(writer);
}

static void write_relay(struct json_writer *writer, const struct boot_config_parts *parts)
{
    json_write_name(writer, "relay");
    if (!parts->broker->wanted) {
        json_write_null(writer);
    } else {
        json_write_object_begin(writer);
        json_member_int(writer, "listen", RELAY_PORT);
        write_transports(writer, parts);
        json_member_string(writer, "token", parts->broker->token);
        if (parts->wsl)
            json_member_string(writer, "pin", parts->broker->pin);
        json_write_object_end(writer);
    }
    json_write_name(writer, "egress");
    json_write_raw(writer, parts->broker->egress, strlen(parts->broker->egress));
}

static void write_way_in(struct json_writer *writer, const struct boot_config_parts *parts)
{
    char listen[32];
    json_write_name(writer, "way_in");
    if (!parts->way_in_secret[0]) {
        json_write_null(writer);
        return;
    }
    if (parts->wsl)
        snprintf(listen, sizeof(listen), WSL_WAY_IN_LISTEN "0");
    else
        snprintf(listen, sizeof(listen), "vsock:%d", WAY_IN_VSOCK_PORT);
    json_write_object_begin(writer);
    json_member_string(writer, "listen", listen);
    json_member_string(writer, "secret", parts->way_in_secret);
    json_write_name(writer, "framed");
    json_write_bool(writer, true);
    json_write_object_end(writer);
}

static int write_base(char *out, const struct boot_config_parts *parts, struct failure *why)
{
    char hostname[64];
    struct json_writer writer;
    snprintf(hostname, sizeof(hostname), "codev-%s", parts->id);
    json_writer_start(&writer, out, BOOT_CONFIG_SIZE);
    json_write_object_begin(&writer);
    json_member_int(&writer, "protocol", PROTOCOL_VERSION);
    json_member_string(&writer, "id", parts->id);
    json_member_string(&writer, "hostname", hostname);
    json_write_name(&writer, "account");
    json_write_object_begin(&writer);
    json_member_string(&writer, "name", "codev");
    json_member_int(&writer, "uid", parts->account->uid);
    json_member_int(&writer, "gid", parts->account->gid);
    json_write_object_end(&writer);
    write_mounts(&writer, parts);
    write_server(&writer, parts);
    write_relay(&writer, parts);
    write_way_in(&writer, parts);
    json_write_object_end(&writer);
    int length = json_writer_finish(&writer, false);
    if (length < 0 || length > BOOT_CONFIG_MAX)
        return failure_set(why, E2BIG, "the boot configuration is longer than %d bytes",
                           BOOT_CONFIG_SIZE);
    return length;
}

/* Both texts are JSON that was checked: the parse only makes the tokens again. */
static int merge(char *out, const char *base_text, size_t base_length,
                 const struct boot_config_parts *parts, struct failure *why)
{
    CLEANUP_FREE struct json_token *tokens = calloc(2 * CONTROL_TOKENS_MAX, sizeof(*tokens));
    struct json base, overlay;
    struct json_position where;
    struct json_writer writer;
    if (!tokens)
        return failure_errno(why, ENOMEM, "--config");
    if (json_parse(&base, base_text, base_length, tokens, CONTROL_TOKENS_MAX, &where) ||
        json_parse(&overlay, parts->overlay, parts->overlay_length, tokens + CONTROL_TOKENS_MAX,
                   CONTROL_TOKENS_MAX, &where))
        return failure_set(why, E2BIG, "--config: %s", where.reason);
    json_writer_start(&writer, out, BOOT_CONFIG_SIZE);
    int result = json_merge(&writer, &base, 0, &overlay, 0);
    if (result < 0)
        return failure_errno(why, -result, "--config: a name in it");
    int length = json_writer_finish(&writer, false);
    if (length < 0 || length > BOOT_CONFIG_MAX)
        return failure_set(why, E2BIG, "--config: longer than %d bytes", BOOT_CONFIG_SIZE);
    return length;
}

int boot_config_write(char *out, const struct boot_config_parts *parts, struct failure *why)
{
    if (!parts->overlay)
        return write_base(out, parts, why);
    CLEANUP_FREE char *base = malloc(BOOT_CONFIG_SIZE);
    if (!base)
        return failure_errno(why, ENOMEM, "boot configuration");
    int length = write_base(base, parts, why);
    if (length >= 0)
        length = merge(out, base, (size_t)length, parts, why);
    secret_wipe(base, BOOT_CONFIG_SIZE);
    return length;
}
