/* Endpoint texts: what is accepted is formatted to the same text again; the rest is refused by
 * name. */
#include "test/harness/unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include <linux/vm_sockets.h>

#include "common/net/endpoint.h"
#include "test/harness/guard.h"

#define PATH_20 "/234567890123456789/"
#define PATH_100 PATH_20 PATH_20 PATH_20 PATH_20 PATH_20

static const char *const dials[] = {
    "vsock:2:1",
    "vsock:2:50117",
    "vsock:4294967294:4294967294",
    "tcp:127.0.0.1:8788",
    "tcp:1.2.3.4:65535",
    "tcp:[::1]:1",
    "tcp:[2001:db8::1]:443",
    "tcp:gateway:50123",
    "unix:/run/x.sock",
    "unix:" PATH_100 "1234567",
};
static const char *const listens[] = {
    "vsock:0", "vsock:4096", "tcp:127.0.0.1:0", "tcp:[::1]:0", "tcp:0.0.0.0:80", "unix:/a",
};
static const char *const wrong_everywhere[] = {
    "",
    "vsock",
    "vsock:",
    "vsock::1",
    "vsock:2:",
    "vsock:2:1:1",
    "vsock:02:1",
    "vsock:2:01",
    "vsock:+2:1",
    "vsock:2:4294967295",
    "vsock:4294967296:1",
    "vsock:2: 1",
    "vsock:2:1 ",
    "VSOCK:2:1",
    "tcp:",
    "tcp::1",
    "tcp:127.0.0.1",
    "tcp:127.0.0.1:",
    "tcp:127.0.0.1:65536",
    "tcp:127.0.0.1:-1",
    "tcp:127.1:80",
    "tcp:localhost:80",
    "tcp:0x7f.0.0.1:1",
    "tcp:::1:1",
    "tcp:[::1:1",
    "tcp:[::1]",
    "tcp:[::1]1",
    "tcp:[]:1",
    "tcp:[127.0.0.1]:1",
    "tcp:127.0.0.1:080",
    "tcp:127.0.0.1 :80",
    "unix:",
    "unix:relative",
    "unix:" PATH_100 "12345678",
    "http://x",
    "tcp:[fe80::1%lo]:1",
    "tcp:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1",
};

static void round_trip(int (*parse)(struct endpoint *, const char *, struct failure *),
                       const char *text)
{
    struct endpoint endpoint;
    struct failure why = {""};
    char *guarded = guard_copy(text, strlen(text) + 1), *out = guard_alloc(ENDPOINT_TEXT_MAX);
    if (parse(&endpoint, guarded, &why) != 0)
        fail_msg("%s: %s", text, why.text);
    endpoint_format(&endpoint, out);
    assert_string_equal(out, text);
    guard_free(out, ENDPOINT_TEXT_MAX);
    guard_free(guarded, strlen(text) + 1);
}

static void right_texts_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(dials) / sizeof(dials[0]); i++)
        round_trip(endpoint_parse_dial, dials[i]);
    for (size_t i = 0; i < sizeof(listens) / sizeof(listens[0]); i++)
        round_trip(endpoint_parse_listen, listens[i]);
}

static void refused(int (*parse)(struct endpoint *, const char *, struct failure *),
                    const char *text)
{
    struct endpoint endpoint = {.port = 77};
    struct failure why = {""};
    if (parse(&endpoint, text, &why) != -EINVAL)
        fail_msg("accepted: %s", text);
    assert_int_equal(endpoint.port, 77);
    assert_non_null(strstr(why.text, text));
}

static void wrong_texts_are_quoted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong_everywhere) / sizeof(wrong_everywhere[0]); i++) {
        refused(endpoint_parse_dial, wrong_everywhere[i]);
        refused(endpoint_parse_listen, wrong_everywhere[i]);
    }
    refused(endpoint_parse_dial, "vsock:4096");
    refused(endpoint_parse_dial, "vsock:2:0");
    refused(endpoint_parse_dial, "tcp:127.0.0.1:0");
    refused(endpoint_parse_listen, "vsock:2:4096");
    refused(endpoint_parse_listen, "tcp:gateway:1");
}

static void socket_addresses_are_filled(void **state)
{
    (void)state;
    struct endpoint endpoint;
    struct sockaddr_storage address;
    assert_int_equal(endpoint_parse_dial(&endpoint, "vsock:2:70000", NULL), 0);
    assert_int_equal(endpoint_sockaddr(&endpoint, &address), sizeof(struct sockaddr_vm));
    assert_int_equal(((struct sockaddr_vm *)&address)->svm_cid, 2);
    assert_int_equal(((struct sockaddr_vm *)&address)->svm_port, 70000);
    assert_int_equal(endpoint_parse_dial(&endpoint, "tcp:1.2.3.4:5", NULL), 0);
    assert_int_equal(endpoint_sockaddr(&endpoint, &address), sizeof(struct sockaddr_in));
    assert_int_equal(((struct sockaddr_in *)&address)->sin_addr.s_addr, htonl(0x01020304));
    assert_int_equal(((struct sockaddr_in *)&address)->sin_port, htons(5));
    assert_int_equal(endpoint_parse_dial(&endpoint, "tcp:[::1]:5", NULL), 0);
    assert_int_equal(endpoint_sockaddr(&endpoint, &address), sizeof(struct sockaddr_in6));
    assert_true(IN6_IS_ADDR_LOOPBACK(&((struct sockaddr_in6 *)&address)->sin6_addr));
    assert_int_equal(endpoint_parse_dial(&endpoint, "unix:/x", NULL), 0);
    assert_int_equal(endpoint_sockaddr(&endpoint, &address), sizeof(struct sockaddr_un));
    assert_string_equal(((struct sockaddr_un *)&address)->sun_path, "/x");
    assert_int_equal(endpoint_parse_dial(&endpoint, "tcp:gateway:5", NULL), 0);
    assert_int_equal(endpoint_sockaddr(&endpoint, &address), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_texts_round_trip),
        cmocka_unit_test(wrong_texts_are_quoted),
        cmocka_unit_test(socket_addresses_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
