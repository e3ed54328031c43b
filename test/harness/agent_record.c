/* Writes the record that codev-init gives to the relay (common/wire/relay_config.h) to standard
 * output, for tests that make the listeners and start the relay themselves.
 *
 *     agent_record [--magic N] [--route FD] [forward KEY=VALUE...]... [dns FD...]
 *
 * Keys: role=broker|server|agent|relay  fd=N  half_close=0|1  framed=0|1  dial=ENDPOINT (repeated)
 * secret=  pin=
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/relay_config.h"

static const char *const roles[RELAY_ROLE_COUNT] = {"broker", "server", "agent", "relay"};

static void die(const char *what)
{
    fprintf(stderr, "agent_record: %s\n", what);
    exit(2);
}

static void set(struct relay_forward *forward, const char *key, const char *value)
{
    struct failure why;
    if (!strcmp(key, "role")) {
        for (forward->role = 0; forward->role < RELAY_ROLE_COUNT; forward->role++)
            if (!strcmp(value, roles[forward->role]))
                return;
    } else if (!strcmp(key, "fd")) {
        forward->listen_fd = atoi(value);
    } else if (!strcmp(key, "half_close")) {
        forward->half_close = (uint32_t)atoi(value);
    } else if (!strcmp(key, "framed")) {
        forward->framed = (uint32_t)atoi(value);
    } else if (!strcmp(key, "dial")) {
        if (forward->dial_count == RELAY_DIALS_MAX ||
            endpoint_parse_dial(&forward->dials[forward->dial_count++], value, &why) < 0)
            die(value);
    } else if (!strcmp(key, "secret")) {
        snprintf(forward->secret, sizeof(forward->secret), "%s", value);
    } else if (!strcmp(key, "pin")) {
        snprintf(forward->pin, sizeof(forward->pin), "%s", value);
    } else {
        die(key);
    }
}

int main(int argc, char **argv)
{
    struct relay_config config = {.magic = RELAY_CONFIG_MAGIC, .size = sizeof(config)};
    struct relay_forward *forward = NULL;
    int dns = 0;
    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!strcmp(argv[i], "--magic") && i + 1 < argc) {
            config.magic = (uint32_t)strtoul(argv[++i], NULL, 0);
        } else if (!strcmp(argv[i], "forward") && config.forward_count < RELAY_FORWARDS_MAX) {
            forward = &config.forwards[config.forward_count++];
        } else if (!strcmp(argv[i], "--route") && i + 1 < argc) {
            config.route_fd = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "dns")) {
            dns = 1;
        } else if (dns && config.dns_count < RELAY_DNS_MAX) {
            config.dns_fds[config.dns_count++] = atoi(argv[i]);
        } else if (forward && equals) {
            *equals = '\0';
            set(forward, argv[i], equals + 1);
        } else {
            die(argv[i]);
        }
    }
    return fwrite(&config, sizeof(config), 1, stdout) == 1 ? 0 : 1;
}
