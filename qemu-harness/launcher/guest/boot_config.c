/* Writes the boot configuration, a member at a time, with --config laid over it. */
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
#include "common/os/secret.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/guest/json_overlay.h"

static const char *const stdio_names[BOOT_STDIO_COUNT] = {
    [BOOT_PIPE] = "pipe",
    [BOOT_TTY] = "tty",
    [BOOT_LOG] = "log",
};

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
        return failure_set(why, EINVAL, "%s:%u:%u: this name occurs twice", path, where.line,
                           where.column);
    }
    return 0;
}

int boot_config_open(struct boot_config *config, const char *file, struct failure *why)
{
    struct json_position where;
    if (!file)
        return 0;
    config->overlay_text = malloc(BOOT_CONFIG_SIZE);
    config->overlay_tokens = calloc(CONTROL_TOKENS_MAX, sizeof(*config->overlay_tokens));
    if (!config->overlay_text || !config->overlay_tokens)
        return failure_errno(why, ENOMEM, "%s", file);
    ssize_t length = io_read_file(AT_FDCWD, file, 0, config->overlay_text, BOOT_CONFIG_SIZE);
    if (length < 0)
        return failure_errno(why, (int)-length, "%s", file);
    if (json_parse(&config->overlay, config->overlay_text, (size_t)length, config->overlay_tokens,
                   CONTROL_TOKENS_MAX, &where))
        return failure_set(why, EINVAL, "%s:%u:%u: %s", file, where.line, where.column,
                           where.reason);
    if (config->overlay.tokens[0].type != JSON_OBJECT)
        return failure_set(why, EINVAL, "%s: an object is wanted, this is %s", file,
                           json_type_names[config->overlay.tokens[0].type]);
    return refuse_duplicates(&config->overlay, file, config->overlay_text, (size_t)length, why);
}

void boot_config_wipe(struct boot_config *config)
{
    if (config->text)
        secret_wipe(config->text, BOOT_CONFIG_SIZE);
    free(config->text);
    config->text = NULL;
}

void boot_config_close(struct boot_config *config)
{
    boot_config_wipe(config);
    free(config->overlay_text);
    free(config->overlay_tokens);
    *config = (struct boot_config){.text = NULL};
}

static void write_mounts(struct json_overlay *out, const struct mount_table *mounts)
{
    struct json_writer *writer = out->writer;
    if (!json_overlay_name(out, "mounts"))
        return;
    json_write_array_begin(writer);
    for (unsigned i = 0; i < mounts->count; i++) {
        const struct mount *mount = &mounts->entries[i];
        json_write_object_begin(writer);
        json_member_string(writer, "type", mount->type);
        json_member_string(writer, "source", mount->source);
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

static void write_environment(struct json_overlay *out, const struct boot_config_parts *parts)
{
    const struct option_list *environment = &parts->options->environment;
    const char *terminal = getenv("TERM");
    bool terminal_given = false;
    json_overlay_object_begin(out, "env");
    for (unsigned i = 0; i < environment->count; i++) {
        const char *item = environment->items[i];
        char name[256];
        if (named_again(environment, i))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(item, "="), item);
        json_overlay_string(out, name, strchr(item, '=') + 1);
        terminal_given |= strcmp(name, "TERM") == 0;
    }
    if (parts->stdio == BOOT_TTY && terminal && terminal[0] && !terminal_given)
        json_overlay_string(out, "TERM", terminal);
    json_overlay_object_end(out);
}

static void write_server(struct json_overlay *out, const struct boot_config_parts *parts)
{
    const struct options *options = parts->options;
    const struct mount_table *mounts = parts->mounts;
    const char *cwd = mounts->count ? mounts->entries[0].spec.guest : "/home/codev";
    const char *const *command =
        options->command ? (const char *const *)options->command : default_command;
    json_overlay_object_begin(out, "server");
    if (json_overlay_name(out, "argv")) {
        json_write_array_begin(out->writer);
        for (; *command; command++)
            json_write_string(out->writer, *command);
        json_write_array_end(out->writer);
    }
    write_environment(out, parts);
    json_overlay_string(out, "cwd", options->cwd ? options->cwd : cwd);
    json_overlay_int(out, "port", options->server_port);
    json_overlay_string(out, "stdio", stdio_names[parts->stdio]);
    if (parts->stdio == BOOT_TTY && parts->rows && parts->columns) {
        json_overlay_int(out, "rows", parts->rows);
        json_overlay_int(out, "cols", parts->columns);
    }
    json_overlay_object_end(out);
}

/* The guest tries the addresses in this order. */
static void write_transports(struct json_overlay *out, const struct boot_config_parts *parts)
{
    char transport[ENDPOINT_TEXT_MAX];
    if (!json_overlay_name(out, "transport"))
        return;
    json_write_array_begin(out->writer);
    for (const char *const *address = parts->link->broker_dial; *address; address++) {
        snprintf(transport, sizeof(transport), "%s:%u", *address, parts->broker->guest_port);
        json_write_string(out->writer, transport);
    }
    json_write_array_end(out->writer);
}

static void write_relay(struct json_overlay *out, const struct boot_config_parts *parts)
{
    const struct broker *broker = parts->broker;
    if (!broker->wanted) {
        json_overlay_null(out, "relay");
    } else {
        json_overlay_object_begin(out, "relay");
        json_overlay_int(out, "listen", RELAY_PORT);
        write_transports(out, parts);
        json_overlay_string(out, "token", broker->token);
        if (parts->link->broker_pinned)
            json_overlay_string(out, "pin", broker->pin);
        json_overlay_object_end(out);
    }
    if (json_overlay_name(out, "egress"))
        json_write_raw(out->writer, broker->egress, strlen(broker->egress));
}

static void write_way_in(struct json_overlay *out, const struct boot_config_parts *parts)
{
    if (!parts->way_in_secret[0]) {
        json_overlay_null(out, "way_in");
        return;
    }
    json_overlay_object_begin(out, "way_in");
    json_overlay_string(out, "listen", parts->link->way_in_listen);
    json_overlay_string(out, "secret", parts->way_in_secret);
    json_overlay_bool(out, "framed", true);
    json_overlay_object_end(out);
}

static void write_members(struct json_overlay *out, const struct boot_config_parts *parts)
{
    char hostname[64];
    snprintf(hostname, sizeof(hostname), "codev-%s", parts->id);
    json_overlay_int(out, "protocol", PROTOCOL_VERSION);
    json_overlay_string(out, "id", parts->id);
    json_overlay_string(out, "hostname", hostname);
    json_overlay_object_begin(out, "account");
    json_overlay_string(out, "name", "codev");
    json_overlay_int(out, "uid", parts->account->uid);
    json_overlay_int(out, "gid", parts->account->gid);
    json_overlay_object_end(out);
    write_mounts(out, parts->mounts);
    write_server(out, parts);
    write_relay(out, parts);
    write_way_in(out, parts);
}

/* What the overlay changes that this program must know. A `stdio` that is none of ours is refused
 * by codev-init. */
static void look_at_overlay(struct boot_config *config, enum boot_stdio stdio)
{
    const struct json *overlay = &config->overlay;
    config->stdio = stdio;
    if (!config->overlay_text)
        return;
    config->has_time = json_member(overlay, 0, "unix_ns");
    uint32_t server = json_member(overlay, 0, "server");
    uint32_t member = server ? json_member(overlay, server, "stdio") : 0;
    for (unsigned i = 0; member && i < BOOT_STDIO_COUNT; i++)
        if (json_string_equals(overlay, member, stdio_names[i]))
            config->stdio = (enum boot_stdio)i;
}

int boot_config_write(struct boot_config *config, const struct boot_config_parts *parts,
                      struct failure *why)
{
    CLEANUP_FREE bool *used = calloc(CONTROL_TOKENS_MAX, sizeof(*used));
    struct json_writer writer;
    struct json_overlay out;
    config->text = malloc(BOOT_CONFIG_SIZE);
    if (!config->text || !used)
        return failure_errno(why, ENOMEM, "boot configuration");
    json_writer_start(&writer, config->text, BOOT_CONFIG_SIZE);
    json_overlay_begin(&out, &writer, config->overlay_text ? &config->overlay : NULL, used);
    write_members(&out, parts);
    int result = json_overlay_end(&out);
    if (result < 0)
        return failure_errno(why, -result, "--config: the name of a member");
    int length = json_writer_finish(&writer, false);
    if (length < 0 || length > BOOT_CONFIG_MAX)
        return failure_set(why, E2BIG, "the boot configuration is longer than %d bytes",
                           BOOT_CONFIG_MAX);
    config->length = (size_t)length;
    look_at_overlay(config, parts->stdio);
    return 0;
}
