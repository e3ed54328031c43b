/* The TLS engines of connections. common/net/tls_link.h sends and receives through them. */
#include "agent/tls.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/net/tls_link.h"
#include "common/net/tls_pin.h"
#include "common/os/secret.h"
#include "common/text/encoding.h"

#define PAGE 4096

struct tls_slot {
    br_ssl_client_context client;
    struct tls_pin_check check;
    struct tls_link link;
    uint8_t input[BR_SSL_BUFSIZE_INPUT] __attribute__((aligned(PAGE)));
    uint8_t output[BR_SSL_BUFSIZE_OUTPUT] __attribute__((aligned(PAGE)));
} __attribute__((aligned(PAGE)));

/* One for each slot that can carry requests: connections of the way in and of overflow never dial a
 * broker. */
static struct tls_slot slots[RELAY_CONNECTIONS_MAX];

bool tls_is_wanted(const struct relay_forward *forward, const struct endpoint *address)
{
    return forward->pin[0] != '\0' && endpoint_is_tcp(address);
}

void tls_begin(struct connection *connection, const struct relay_forward *forward)
{
    struct tls_slot *slot = &slots[connection->index];
    br_ssl_engine_context *engine = &slot->client.eng;
    uint8_t pin[TLS_PIN_BYTES] = {0};
    (void)hex_decode(pin, sizeof(pin), forward->pin, SECRET_HEX_LENGTH); /* valid: config_check */
    tls_pin_check_start(&slot->check, pin);
    br_ssl_client_zero(&slot->client);
    tls_profile_apply(engine);
    br_ssl_engine_set_x509(engine, &slot->check.vtable);
    br_ssl_engine_set_buffers_bidi(engine, slot->input, sizeof(slot->input), slot->output,
                                   sizeof(slot->output));
    br_ssl_client_reset(&slot->client, NULL, 0); /* a failure is reported by the handshake */
    tls_link_start(&slot->link, engine);
    connection->tls = &slot->link;
}

void tls_finish(struct connection *connection)
{
    if (!connection->tls)
        return;
    struct tls_slot *slot = &slots[connection->index];
    connection->tls = NULL;
    secret_wipe(slot, offsetof(struct tls_slot, input));
    /* when this fails (the memory is locked), the pages stay allocated */
    madvise(slot, sizeof(*slot), MADV_DONTNEED);
}
