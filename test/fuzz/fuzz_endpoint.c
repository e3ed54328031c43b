/* Endpoint texts: what is accepted is formatted to a text that is accepted again and means the
 * same; the routing table's reader takes any bytes.
 */
#include <string.h>

#include "common/net/endpoint.h"
#include "test/fuzz/fuzz.h"

static void check(int (*parse)(struct endpoint *, const char *, struct failure *), const char *text)
{
    struct endpoint endpoint, again;
    struct failure why;
    if (parse(&endpoint, text, &why) != 0)
        return;
    char formatted[ENDPOINT_TEXT_MAX];
    endpoint_format(&endpoint, formatted);
    FUZZ_CHECK(parse(&again, formatted, &why) == 0);
    FUZZ_CHECK(memcmp(&endpoint, &again, sizeof(endpoint)) == 0);
    struct sockaddr_storage address;
    int length = endpoint_sockaddr(&endpoint, &address);
    FUZZ_CHECK((length < 0) == (endpoint.kind == ENDPOINT_TCP_GATEWAY));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    uint8_t gateway[4];
    (void)endpoint_default_gateway((const char *)data, size, gateway);
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check(endpoint_parse_dial, text);
    check(endpoint_parse_listen, text);
    return 0;
}
