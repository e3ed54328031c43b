/* TLS between the real relay's and the real broker's end: every split of the stream, every place
 * where it can be cut or spoiled, the wrong key, and what is refused. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "test/harness/tls_pair.h"

#define TEXT "a token that nobody may see in the clear"

static void assert_receives(struct tls_link *link, int fd, const char *text)
{
    char got[256];
    assert_int_equal(tls_link_receive(link, fd, got, sizeof(got)), strlen(text));
    assert_memory_equal(got, text, strlen(text));
}

static void assert_result(struct tls_link *link, int fd, ssize_t result)
{
    char got[64];
    assert_int_equal(tls_link_receive(link, fd, got, sizeof(got)), result);
    assert_int_equal(tls_link_receive(link, fd, got, sizeof(got)), result); /* the error stays */
}

/* The overhead of a record: header, tag, and the explicit part of GCM's nonce. */
static size_t overhead(void)
{
    return tls_profile_has_hardware() ? 5 + 8 + 16 : 5 + 16;
}

/* The first test: without a seed no handshake succeeds. */
static void without_a_seed_there_is_no_handshake(void **state)
{
    struct connection connection = {.index = 0};
    struct relay_forward forward = {.listen_fd = -1};
    int ends[2];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    tls_begin(&connection, &forward);
    assert_int_equal(tls_link_handshake(connection.tls, ends[0]), -EPROTO);
    tls_finish(&connection);
    assert_null(connection.tls);
    struct failure why;
    assert_int_equal(tls_server_open(&pair_server, 1, &why), 0);
}

static void both_ways_and_both_ends(void **state)
{
    struct pair pair;
    (void)state;
    pair_establish(&pair);
    assert_int_equal(tls_link_transmit(pair.relay, pair.relay_fd, TEXT, strlen(TEXT)),
                     strlen(TEXT));
    assert_int_equal(tls_link_transmit(pair.broker, pair.broker_fd, "ok", 2), 2);
    pair_pass(&pair, UP), pair_pass(&pair, DOWN);
    assert_receives(pair.broker, pair.broker_fd, TEXT);
    assert_receives(pair.relay, pair.relay_fd, "ok");
    assert_result(pair.relay, pair.relay_fd, -EAGAIN);
    tls_link_end(pair.broker, pair.broker_fd);
    pair_pass(&pair, DOWN);
    assert_result(pair.relay, pair.relay_fd, 0);
    assert_int_equal(tls_link_transmit(pair.relay, pair.relay_fd, "x", 1), -EPIPE);
    pair_close(&pair);
}

static void the_suite_follows_the_hardware(void **state)
{
    struct pair pair;
    (void)state;
    pair_establish(&pair);
    assert_int_equal(pair.relay->engine->session.version, BR_TLS12);
    assert_int_equal(pair.relay->engine->session.cipher_suite,
                     tls_profile_has_hardware() ? BR_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                                                : BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256);
    pair_close(&pair);
    static const uint16_t software[] = {BR_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256};
    pair_open(&pair);
    br_ssl_engine_set_suites(pair.relay->engine, software, 1);
    br_ssl_client_reset(pair_client(&pair), NULL, 0);
    pair_shake_hands(&pair);
    assert_int_equal(pair.broker->engine->session.cipher_suite, software[0]);
    assert_int_equal(tls_link_transmit(pair.relay, pair.relay_fd, TEXT, strlen(TEXT)),
                     strlen(TEXT));
    pair_pass(&pair, UP);
    assert_receives(pair.broker, pair.broker_fd, TEXT);
    pair_close(&pair);
}

/* The stream stops after byte `split` until neither end has anything to do, then continues. */
static void with_a_split(enum way way, size_t split, size_t total[2])
{
    struct pair pair;
    pair_open(&pair);
    pair.limit[way] = split;
    pair_shake_hands(&pair);
    pair.limit[way] = SIZE_MAX;
    pair_shake_hands(&pair);
    assert_int_equal(tls_link_handshake(pair.relay, pair.relay_fd), 1);
    assert_int_equal(tls_link_handshake(pair.broker, pair.broker_fd), 1);
    memcpy(total, pair.passed, sizeof(pair.passed));
    pair_close(&pair);
}

static void a_handshake_split_anywhere(void **state)
{
    size_t total[2] = {1, 1};
    (void)state;
    for (int way = 0; way < 2; way++)
        for (size_t split = 0; split < total[way]; split++)
            with_a_split((enum way)way, split, total);
    assert_true(total[UP] > 200 && total[DOWN] > 200);
}

static void data_split_anywhere(void **state)
{
    struct pair pair;
    (void)state;
    pair_establish(&pair);
    for (size_t split = 0; split < sizeof(TEXT) + overhead(); split++) {
        assert_int_equal(tls_link_transmit(pair.broker, pair.broker_fd, TEXT, sizeof(TEXT)),
                         sizeof(TEXT));
        pair.limit[DOWN] = pair.passed[DOWN] + split;
        pair_pass(&pair, DOWN);
        assert_result(pair.relay, pair.relay_fd, -EAGAIN);
        pair.limit[DOWN] = SIZE_MAX;
        pair_pass(&pair, DOWN);
        char got[sizeof(TEXT)];
        size_t half = split < sizeof(got) ? split + 1
                                          : sizeof(got); /* the bytes are also taken in two parts */
        assert_int_equal(tls_link_receive(pair.relay, pair.relay_fd, got, half), half);
        assert_int_equal(tls_link_held(pair.relay), sizeof(got) - half);
        if (half < sizeof(got))
            assert_int_equal(
                tls_link_receive(pair.relay, pair.relay_fd, got + half, sizeof(got) - half),
                sizeof(got) - half);
        assert_memory_equal(got, TEXT, sizeof(TEXT));
    }
    pair_close(&pair);
}

/* The handshake stops after so many bytes and the network is gone: never anything but a broken
 * connection, on both sides. */
static void a_handshake_cut_anywhere(void **state)
{
    (void)state;
    for (size_t length = 0; length < 400; length += 3) {
        struct pair pair;
        pair_open(&pair);
        pair.limit[DOWN] = length;
        pair_shake_hands(&pair);
        bool over = pair.relay->established;
        pair_cut(&pair, DOWN);
        if (!over)
            assert_int_equal(tls_link_handshake(pair.relay, pair.relay_fd), -ECONNRESET);
        assert_result(pair.relay, pair.relay_fd, -ECONNRESET);
        pair_close(&pair);
    }
}

/* An answer and a close_notify of which `length` bytes arrive. Returns how many there were. */
static size_t with_a_cut(size_t length, ssize_t *end)
{
    struct pair pair;
    char got[64];
    pair_establish(&pair);
    size_t before = pair.passed[DOWN];
    assert_int_equal(tls_link_transmit(pair.broker, pair.broker_fd, "answer", 6), 6);
    tls_link_end(pair.broker, pair.broker_fd);
    pair.limit[DOWN] = length == SIZE_MAX ? SIZE_MAX : before + length;
    while (pair_pass(&pair, DOWN) > 0)
        continue;
    pair_cut(&pair, DOWN);
    *end = tls_link_receive(pair.relay, pair.relay_fd, got, sizeof(got));
    if (*end > 0) {
        assert_int_equal(*end, 6);
        *end = tls_link_receive(pair.relay, pair.relay_fd, got, sizeof(got));
    }
    size_t passed = pair.passed[DOWN] - before;
    pair_close(&pair);
    return passed;
}

static void only_a_whole_answer_ends_cleanly(void **state)
{
    ssize_t end;
    (void)state;
    size_t whole = with_a_cut(SIZE_MAX, &end);
    assert_int_equal(whole, 6 + 2 + 2 * overhead());
    assert_int_equal(end, 0);
    for (size_t length = 0; length < whole; length++) {
        assert_int_equal(with_a_cut(length, &end), length);
        assert_int_equal(end, -ECONNRESET);
    }
}

/* One bit of a record, its header included, is changed: no byte of it is accepted. */
static void a_spoiled_record(void **state)
{
    (void)state;
    for (size_t at = 0; at < 6 + overhead(); at++) {
        struct pair pair;
        char got[64];
        pair_establish(&pair);
        pair.spoiled = pair.passed[DOWN] + at + 1;
        assert_int_equal(tls_link_transmit(pair.broker, pair.broker_fd, "answer", 6), 6);
        pair_pass(&pair, DOWN);
        pair_cut(&pair, DOWN);
        ssize_t received = tls_link_receive(pair.relay, pair.relay_fd, got, sizeof(got));
        assert_true(received == -EPROTO || received == -ECONNRESET);
        pair_close(&pair);
    }
}

static void a_wrong_key_gets_no_byte(void **state)
{
    struct pair pair;
    char got[64];
    (void)state;
    pair_open(&pair);
    tls_finish(&pair.connection);
    pair.forward.pin[0] = pair.forward.pin[0] == '0' ? '1' : '0';
    tls_begin(&pair.connection, &pair.forward);
    pair.relay = pair.connection.tls;
    pair_shake_hands(&pair);
    assert_int_equal(tls_link_handshake(pair.relay, pair.relay_fd), -EKEYREJECTED);
    assert_int_equal(tls_link_transmit(pair.relay, pair.relay_fd, TEXT, strlen(TEXT)),
                     -EKEYREJECTED);
    assert_true(tls_link_receive(pair.broker, pair.broker_fd, got, sizeof(got)) <= 0);
    assert_false(pair.broker->established);
    pair_close(&pair);
}

/* A peer that knows the public point but not the private key. */
static void the_point_alone_proves_nothing(void **state)
{
    struct pair pair;
    struct tls_server other;
    struct failure why;
    (void)state;
    assert_int_equal(tls_server_open(&other, 1, &why), 0);
    br_ec_private_key right = pair_server.private_key;
    pair_server.private_key = other.private_key;
    pair_open(&pair);
    pair_shake_hands(&pair);
    assert_int_equal(tls_link_handshake(pair.relay, pair.relay_fd), -EKEYREJECTED);
    pair_close(&pair);
    pair_server.private_key = right;
    tls_server_close(&other);
}

static void what_is_no_tls_is_known_by_its_first_byte(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        struct pair pair;
        uint8_t first = (uint8_t)byte;
        pair_open(&pair);
        assert_int_equal(send(pair.wire[1], &first, 1, 0), 1);
        int result = tls_link_handshake(pair.broker, pair.broker_fd);
        assert_int_equal(result, byte == 21 || byte == 22 ? 0 : -EPROTO);
        assert_int_equal(recv(pair.wire[1], &first, 1, MSG_DONTWAIT), -1); /* no answer */
        pair_close(&pair);
    }
}

static void renegotiation_is_refused(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct pair pair;
        pair_establish(&pair);
        struct tls_link *asking = way == UP ? pair.relay : pair.broker;
        asking->engine->flags &= ~BR_OPT_NO_RENEGOTIATION;
        assert_int_equal(br_ssl_engine_renegotiate(asking->engine), 1);
        pair_shake_hands(&pair);
        int fd = way == UP ? pair.relay_fd : pair.broker_fd;
        assert_int_equal(tls_link_handshake(asking, fd), -EPROTO); /* no_renegotiation, 100 */
        assert_int_equal(br_ssl_engine_last_error(asking->engine), BR_ERR_RECV_FATAL_ALERT + 100);
        pair_close(&pair);
    }
}

static void a_slow_socket_holds_one_record(void **state)
{
    static char block[1 << 20];
    static char got[65536];
    struct pair pair;
    size_t taken = 0, received = 0;
    (void)state;
    pair_establish(&pair);
    for (ssize_t piece; (piece = tls_link_transmit(pair.broker, pair.broker_fd, block + taken,
                                                   sizeof(block) - taken)) > 0;)
        taken += (size_t)piece;
    assert_true(taken > 0 && taken < sizeof(block)); /* the sockets between hold less than 1 MiB */
    assert_true(tls_link_unsent(pair.broker));
    while (received < taken) {
        pair_pass(&pair, DOWN);
        assert_int_equal(tls_link_transmit(pair.broker, pair.broker_fd, NULL, 0), 0);
        ssize_t piece = tls_link_receive(pair.relay, pair.relay_fd, got, sizeof(got));
        assert_true(piece > 0 || piece == -EAGAIN);
        received += piece > 0 ? (size_t)piece : 0;
    }
    assert_int_equal(received, taken);
    assert_false(tls_link_unsent(pair.broker));
    pair_close(&pair);
}

static int close_server(void **state)
{
    (void)state;
    tls_server_close(&pair_server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_seed_there_is_no_handshake),
        cmocka_unit_test(both_ways_and_both_ends),
        cmocka_unit_test(the_suite_follows_the_hardware),
        cmocka_unit_test(a_handshake_split_anywhere),
        cmocka_unit_test(data_split_anywhere),
        cmocka_unit_test(a_handshake_cut_anywhere),
        cmocka_unit_test(only_a_whole_answer_ends_cleanly),
        cmocka_unit_test(a_spoiled_record),
        cmocka_unit_test(a_wrong_key_gets_no_byte),
        cmocka_unit_test(the_point_alone_proves_nothing),
        cmocka_unit_test(what_is_no_tls_is_known_by_its_first_byte),
        cmocka_unit_test(renegotiation_is_refused),
        cmocka_unit_test(a_slow_socket_holds_one_record),
    };
    return cmocka_run_group_tests(tests, NULL, close_server);
}
