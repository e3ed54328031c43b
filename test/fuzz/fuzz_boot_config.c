/* The boot configuration: whatever it accepts must satisfy what the stages rely on. */
#include <string.h>

#include "init/config/boot_config.h"
#include "test/fuzz/fuzz.h"

static struct boot_config config;

static void check_path(const char *path)
{
    FUZZ_CHECK(path[0] == '/');
    FUZZ_CHECK(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
}

static void check_mounts(void)
{
    FUZZ_CHECK(config.mount_count <= BOOT_MOUNTS_MAX);
    for (unsigned i = 0; i < config.mount_count; i++) {
        const struct boot_mount *mount = &config.mounts[i];
        FUZZ_CHECK(mount->type < MOUNT_TYPE_COUNT && mount->type != MOUNT_DRVFS);
        FUZZ_CHECK(mount->source && strlen(mount->target) > 3);
        check_path(mount->target);
        for (unsigned other = 0; other < i; other++)
            FUZZ_CHECK(strcmp(config.mounts[other].target, mount->target) != 0);
    }
}

static void check_server(const struct boot_server *server)
{
    unsigned count = 0;

    FUZZ_CHECK(server->argv && server->argv[0] && server->argv[0][0] != '\0');
    while (server->argv[count])
        count++;
    FUZZ_CHECK(count <= BOOT_ARGUMENTS_MAX);
    for (count = 0; server->env[count]; count++)
        FUZZ_CHECK(strchr(server->env[count], '=') > server->env[count]);
    FUZZ_CHECK(count <= BOOT_ENVIRONMENT_MAX);
    check_path(server->cwd);
    FUZZ_CHECK(server->stdio < STDIO_COUNT && server->ready_timeout_ms > 0);
}

static void parse_in(enum boot_place place, const uint8_t *data, size_t size)
{
    struct failure why = {.text = ""};

    if (boot_config_parse(&config, place, (const char *)data, size, &why) < 0) {
        FUZZ_CHECK(why.text[0] != '\0');
        return;
    }
    FUZZ_CHECK(config.id[0] != '\0' && strlen(config.id) <= BOOT_ID_MAX && !strchr(config.id, '/'));
    FUZZ_CHECK(config.account_uid != 0 && config.account_gid != 0);
    FUZZ_CHECK(config.relay.present
                   ? secret_is_hex(config.relay.token) && config.relay.transport_count > 0
                   : config.egress_count == 0);
    FUZZ_CHECK(!config.way_in.present || secret_is_hex(config.way_in.secret));
    check_mounts();
    check_server(&config.server);
    FUZZ_CHECK(place == PLACE_MACHINE || !config.relay.present || secret_is_hex(config.relay.pin));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse_in(PLACE_MACHINE, data, size);
    parse_in(PLACE_WSL, data, size);
    return 0;
}
