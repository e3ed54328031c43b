/* The keys `relay` and `way_in` of the boot configuration, and the command `relay` (boot_config.h).
 *
 * A value that is a secret is never quoted in a message.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "common/json/json.h"
#include "common/os/cleanup.h"
#include "init/config/boot_config.h"
#include "init/config/boot_config_internal.h"
#include "init/config/schema.h"

#define PIN_PREFIX "sha256:"

static int read_secret(struct schema_parse *parse, uint32_t index, void *target,
                       const struct schema_field *field)
{
    char *out = target;
    int length = json_string(parse->document, index, out, SECRET_HEX_LENGTH + 1);

    (void)field;
    if (length != SECRET_HEX_LENGTH || !secret_is_hex(out))
        return schema_refuse(parse, "64 lower-case hexadecimal digits are wanted");
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
                             "\"" PIN_PREFIX "\" and 64 lower-case hexadecimal digits are wanted");
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
        return schema_refuse(parse, "not one address");
    for (uint32_t item = json_first(parse->document, index); result == 0 && item != 0;
         item = json_next(parse->document, index, item)) {
        struct endpoint *endpoint = &relay->transports[relay->transport_count];
        struct failure why;
        size_t path_length = schema_enter_element(parse, relay->transport_count++);
        if (json_string(parse->document, item, text, sizeof(text)) < 0)
            result = schema_refuse(parse, "an address like \"vsock:2:50117\" is wanted");
        else if (endpoint_parse_dial(endpoint, text, &why) < 0)
            result = schema_refuse(parse, "%s", why.text);
        else
            result = boot_check_transport(parse, endpoint);
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

int boot_read_relay(struct schema_parse *parse, uint32_t index, void *target,
                    const struct schema_field *field)
{
    struct boot_relay *relay = target;

    (void)field;
    relay->listen = RELAY_PORT;
    relay->present = true;
    int result = schema_read_object(parse, index, &relay_table, relay);
    return result < 0 ? result : boot_check_pin(parse, relay);
}

static int read_way_in_listen(struct schema_parse *parse, uint32_t index, void *target,
                              const struct schema_field *field)
{
    char text[ENDPOINT_TEXT_MAX];
    struct failure why;

    (void)field;
    if (json_string(parse->document, index, text, sizeof(text)) < 0)
        return schema_refuse(parse, "an address like \"vsock:4096\" is wanted");
    if (endpoint_parse_listen(target, text, &why) < 0)
        return schema_refuse(parse, "%s", why.text);
    return boot_check_way_in(parse, target);
}

static const struct schema_field way_in_fields[] = {
    {"listen", SCHEMA_REQUIRED, read_way_in_listen, offsetof(struct boot_way_in, listen), 0, 0,
     NULL},
    {"secret", SCHEMA_REQUIRED, read_secret, offsetof(struct boot_way_in, secret), 0, 0, NULL},
    {"framed", SCHEMA_OPTIONAL, schema_read_bool, offsetof(struct boot_way_in, framed), 0, 0, NULL},
};
static const struct schema_table way_in_table = {way_in_fields, ARRAY_LENGTH(way_in_fields)};

int boot_read_way_in(struct schema_parse *parse, uint32_t index, void *target,
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
    result = boot_read_relay(&parse, index, &fresh, NULL);
    if (result == 0)
        *relay = fresh;
    secret_wipe(&fresh, sizeof(fresh));
    return result;
}
