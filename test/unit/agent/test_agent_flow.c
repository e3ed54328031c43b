/* The ring: order across its end, the limit of one write, errors, and the pages it returns. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/flow.h"

static struct flow flow;
static uint8_t *ring;
static int in[2], out[2]; /* write in[0], the flow reads in[1]; it sends to out[0], read out[1] */

static int set_up(void **state)
{
    (void)state;
    ring = mmap(NULL, FLOW_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    flow_init(&flow, ring);
    return ring == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, in) < 0 ||
           socketpair(AF_UNIX, SOCK_STREAM, 0, out) < 0;
}

static int tear_down(void **state)
{
    (void)state;
    munmap(ring, FLOW_SIZE);
    close(in[0]), close(in[1]), close(out[0]), close(out[1]);
    return 0;
}

static void bytes_keep_their_order_over_the_seam(void **state)
{
    (void)state;
    uint32_t sent = 0, got = 0;
    srand(7);
    while (got < 3000000) {
        uint8_t piece[40000];
        size_t length = (size_t)rand() % sizeof(piece);
        if (flow.length + length <= FLOW_SIZE) {
            for (size_t i = 0; i < length; i++)
                piece[i] = (uint8_t)(sent++ * 2654435761u >> 24);
            assert_int_equal(flow_put(&flow, piece, length), 1);
        }
        assert_true(flow_transmit(&flow, out[0]) >= 0);
        ssize_t read_length = recv(out[1], piece, (size_t)rand() % sizeof(piece) + 1, MSG_DONTWAIT);
        for (ssize_t i = 0; i < read_length; i++)
            assert_int_equal(piece[i], (uint8_t)(got++ * 2654435761u >> 24));
    }
    assert_int_equal(flow.received, 0); /* only what came from a socket counts */
}

static void receives_up_to_its_size_and_no_more(void **state)
{
    (void)state;
    int size = 1 << 20;
    uint8_t block[FLOW_SIZE + 1000] = {0};
    setsockopt(in[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    assert_int_equal(send(in[0], block, sizeof(block), MSG_DONTWAIT), sizeof(block));
    while (flow_has_room(&flow))
        assert_true(flow_receive(&flow, in[1]) > 0);
    assert_int_equal(flow.length, FLOW_SIZE);
    assert_int_equal(flow.received, FLOW_SIZE);
    assert_int_equal(flow_put(&flow, "x", 1), 0);
}

static void says_why_nothing_came(void **state)
{
    (void)state;
    assert_int_equal(flow_receive(&flow, in[1]), -EAGAIN);
    shutdown(in[0], SHUT_WR);
    assert_int_equal(flow_receive(&flow, in[1]), 0);
    assert_int_equal(flow_receive(&flow, -1), -EBADF);
    assert_int_equal(flow.length, 0);
}

static void says_why_nothing_went(void **state)
{
    (void)state;
    uint8_t block[32768] = {0};
    assert_int_equal(flow_transmit(&flow, -1), 0); /* nothing to send: the socket is not touched */
    while (send(out[0], block, sizeof(block), MSG_DONTWAIT) > 0)
        ;
    flow_put(&flow, "abc", 3);
    assert_int_equal(flow_transmit(&flow, out[0]), 0);
    assert_int_equal(flow.length, 3);
    close(out[1]);
    assert_true(flow_transmit(&flow, out[0]) < 0); /* and no SIGPIPE */
    assert_int_equal(flow_transmit(&flow, out[0]), -EPIPE);
    flow_discard(&flow);
    assert_int_equal(flow.length, 0);
}

/* A datagram socket shows the size of each write. */
static void no_write_is_larger_than_32_kib(void **state)
{
    (void)state;
    int pair[2], size = 1 << 20;
    uint8_t block[FLOW_SIZE] = {0};
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    flow_put(&flow, block, sizeof(block));
    assert_int_equal(flow_transmit(&flow, pair[0]), FLOW_SIZE);
    assert_int_equal(recv(pair[1], block, sizeof(block), MSG_DONTWAIT), FLOW_WRITE_MAX);
    assert_int_equal(recv(pair[1], block, sizeof(block), MSG_DONTWAIT), FLOW_WRITE_MAX);
    close(pair[0]), close(pair[1]);
}

static unsigned resident_pages(void)
{
    unsigned char there[FLOW_SIZE / 4096];
    unsigned count = 0;
    assert_int_equal(mincore(ring, FLOW_SIZE, there), 0);
    for (size_t i = 0; i < sizeof(there); i++)
        count += there[i] & 1;
    return count;
}

static void gives_its_pages_back(void **state)
{
    (void)state;
    uint8_t block[FLOW_SIZE] = {1};
    assert_int_equal(resident_pages(), 0);
    flow_put(&flow, block, 5000);
    assert_int_equal(resident_pages(), 2);
    flow_discard(&flow);
    flow_put(&flow, block, sizeof(block));
    assert_int_equal(resident_pages(), FLOW_SIZE / 4096);
    flow_reset(&flow);
    assert_int_equal(resident_pages(), FLOW_KEPT / 4096);
    assert_int_equal(flow.length, 0);
    flow_put(&flow, block, sizeof(block)); /* and can be used again */
    assert_memory_equal(ring, block, sizeof(block));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(bytes_keep_their_order_over_the_seam),
        TEST(receives_up_to_its_size_and_no_more),
        TEST(says_why_nothing_came),
        TEST(says_why_nothing_went),
        TEST(no_write_is_larger_than_32_kib),
        TEST(gives_its_pages_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
