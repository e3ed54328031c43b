/* Connects the TLS code of relay and broker by two socket pairs and a loop that copies between
 * them. */
#include "test/harness/tls_pair.h"

#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct tls_server pair_server;

br_ssl_client_context *pair_client(struct pair *pair)
{
    return (br_ssl_client_context *)(void *)pair->relay->engine; /* its first member */
}

void pair_open(struct pair *pair)
{
    int relay[2], broker[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, relay), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, broker), 0);
    *pair = (struct pair){
        .relay_fd = relay[0],
        .broker_fd = broker[0],
        .wire = {relay[1], broker[1]},
        .limit = {SIZE_MAX, SIZE_MAX},
    };
    memcpy(pair->forward.pin, pair_server.pin + strlen("sha256:"), SECRET_HEX_LENGTH + 1);
    tls_begin(&pair->connection, &pair->forward);
    pair->relay = pair->connection.tls;
    pair->broker = tls_server_begin(&pair_server, 0);
}

void pair_close(struct pair *pair)
{
    tls_finish(&pair->connection);
    tls_server_finish(&pair_server, 0);
    close(pair->relay_fd);
    close(pair->broker_fd);
    for (int i = 0; i < 2; i++)
        if (pair->wire[i] >= 0)
            close(pair->wire[i]);
}

static void spoil(struct pair *pair, uint8_t *bytes, size_t length)
{
    size_t first = pair->passed[DOWN];
    if (pair->spoiled > first && pair->spoiled <= first + length)
        bytes[pair->spoiled - 1 - first] ^= 0x10;
}

size_t pair_pass(struct pair *pair, enum way way)
{
    uint8_t bytes[4096];
    int from = pair->wire[way == UP ? 0 : 1], to = pair->wire[way == UP ? 1 : 0];
    size_t room = pair->limit[way] - pair->passed[way];
    if (room > sizeof(bytes))
        room = sizeof(bytes);
    ssize_t length = room > 0 && from >= 0 && to >= 0 ? recv(from, bytes, room, MSG_DONTWAIT) : 0;
    if (length <= 0)
        return 0;
    if (way == DOWN)
        spoil(pair, bytes, (size_t)length);
    assert_int_equal(send(to, bytes, (size_t)length, MSG_NOSIGNAL), length);
    pair->passed[way] += (size_t)length;
    return (size_t)length;
}

void pair_shake_hands(struct pair *pair)
{
    size_t moved;
    do {
        (void)tls_link_handshake(pair->relay, pair->relay_fd);
        (void)tls_link_handshake(pair->broker, pair->broker_fd);
        moved = pair_pass(pair, UP) + pair_pass(pair, DOWN);
    } while (moved > 0);
}

void pair_establish(struct pair *pair)
{
    pair_open(pair);
    pair_shake_hands(pair);
    assert_int_equal(tls_link_handshake(pair->relay, pair->relay_fd), 1);
    assert_int_equal(tls_link_handshake(pair->broker, pair->broker_fd), 1);
}

void pair_cut(struct pair *pair, enum way way)
{
    int end = way == UP ? 1 : 0;
    close(pair->wire[end]);
    pair->wire[end] = -1;
}
