/* Both ends of TLS, fed with whatever a stranger may send: no byte of it is ever taken for data,
 * and nobody gets through the handshake. The first byte chooses the end, the second the size of the
 * pieces. */
#include <stdlib.h>
#include <string.h>

#include "common/net/tls_link.h"
#include "common/net/tls_pin.h"
#include "host-broker/keys/tls.h"
#include "test/fuzz/fuzz.h"

static struct tls_server server;

static br_ssl_engine_context *broker_end(void)
{
    struct failure why;
    if (!server.sessions && tls_server_open(&server, 1, &why) < 0)
        abort();
    return tls_server_begin(&server, 0)->engine;
}

static br_ssl_engine_context *relay_end(void)
{
    static br_ssl_client_context client;
    static struct tls_pin_check check;
    static uint8_t input[BR_SSL_BUFSIZE_INPUT], output[BR_SSL_BUFSIZE_OUTPUT];
    static const uint8_t pin[TLS_PIN_BYTES] = {1, 2, 3};
    (void)broker_end(); /* seeds the generator */
    tls_pin_check_start(&check, pin);
    br_ssl_client_zero(&client);
    tls_profile_apply(&client.eng);
    br_ssl_engine_set_x509(&client.eng, &check.vtable);
    br_ssl_engine_set_buffers_bidi(&client.eng, input, sizeof(input), output, sizeof(output));
    br_ssl_client_reset(&client, NULL, 0);
    return &client.eng;
}

static void drain(br_ssl_engine_context *engine)
{
    size_t length;
    while (br_ssl_engine_sendrec_buf(engine, &length))
        br_ssl_engine_sendrec_ack(engine, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    br_ssl_engine_context *engine = data[0] & 1 ? relay_end() : broker_end();
    size_t piece = data[1] + (size_t)1, length;
    for (size_t at = 2; at < size;) {
        drain(engine);
        uint8_t *room = br_ssl_engine_recvrec_buf(engine, &length);
        if (!room)
            break;
        length = length < piece ? length : piece;
        length = length < size - at ? length : size - at;
        memcpy(room, data + at, length);
        br_ssl_engine_recvrec_ack(engine, length);
        at += length;
        FUZZ_CHECK(!br_ssl_engine_recvapp_buf(engine, &length));
        FUZZ_CHECK(!br_ssl_engine_sendapp_buf(engine, &length));
    }
    return 0;
}
