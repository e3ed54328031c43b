/* A connection with a simulated socket and exchange: whenever `out` gets room, a paused upstream is
 * resumed or the event loop watches for it. The linker wraps send(2) and the exchange. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-broker/serve/connection_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#define ROOM_WANTED 17000

static struct broker broker;
static struct connection table[1];
static struct exchange exchange;
static int peer;

/* The results of send(2), one for each call: -1 is EAGAIN, others are the most bytes it takes.
 * After the last one it takes everything. */
static const long *script;
static size_t script_left;

ssize_t __wrap_send(int fd, const void *data, size_t length, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t length, int flags)
{
    (void)fd, (void)data, (void)flags;
    long answer = script_left > 0 ? *script : (long)length;
    if (script_left > 0) {
        script++;
        script_left--;
    }
    if (answer < 0) {
        errno = EAGAIN;
        return -1;
    }
    return answer < (long)length ? answer : (ssize_t)length;
}

static bool paused;
static unsigned resumed;

bool __wrap_exchange_resume(struct exchange *unused);
bool __wrap_exchange_resume(struct exchange *unused)
{
    (void)unused;
    buffer_take(&table->client.out, &broker.buffers);
    if (!paused || buffer_room(&table->client.out) < ROOM_WANTED)
        return false;
    paused = false;
    resumed++;
    return true;
}

bool __wrap_exchange_body_is_done(const struct exchange *unused);
bool __wrap_exchange_body_is_done(const struct exchange *unused)
{
    (void)unused;
    return true;
}

static int open_connection(void **state)
{
    struct failure why;
    int ends[2];
    (void)state;
    memset(&broker, 0, sizeof(broker));
    broker.options.max_connections = 1;
    broker.options.idle_timeout_seconds = 60;
    broker.connections = broker.unused_connections = table;
    broker.next_deadline = broker.drain_until = NEVER;
    if (event_loop_open(&broker.loop, &why) < 0 || buffer_pool_open(&broker.buffers, 2, &why) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
        return -1;
    line_sink_init(&broker.log.lines, -1);
    line_sink_init(&broker.log.events, -1);
    peer = ends[1];
    struct connection *connection = connection_open(&broker, ends[0], ENDPOINT_UNIX);
    connection->state = CONNECTION_EXCHANGE;
    connection->exchange = &exchange;
    connection->authenticated = true;
    paused = true;
    resumed = 0;
    return 0;
}

static int close_connection(void **state)
{
    (void)state;
    if (table->state != CONNECTION_UNUSED) {
        table->exchange = NULL;
        connection_close(table);
        connection_settle(table);
    }
    close(peer);
    event_loop_close(&broker.loop);
    buffer_pool_close(&broker.buffers);
    return 0;
}

static void fill_out(size_t length)
{
    static char data[BUFFER_BLOCK];
    buffer_take(&table->client.out, &broker.buffers);
    buffer_append(&table->client.out, data, length);
}

static void settle(const long *answers, size_t count)
{
    script = answers;
    script_left = count;
    connection_settle(table);
}

/* The upstream was resumed, or the event loop reports when there is room. */
static void assert_no_stall(void)
{
    assert_true(!paused ||
                (buffer_length(&table->client.out) > 0 && (table->armed & EVENT_WRITABLE)));
}

static void a_socket_that_takes_bytes_at_any_call_resumes_the_upstream(void **state)
{
    static const long answers[][4] = {
        {-1, -1, -1, -1},      {-1, 100000, 100000, -1}, {-1, -1, 100000, 100000},
        {1000, -1, 100000, 0}, {1000, -1, -1, 100000},   {100000, -1, -1, -1},
        {40000, -1, -1, -1},   {1, -1, 100000, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        paused = true;
        fill_out(BUFFER_BLOCK - 100 - buffer_length(&table->client.out));
        settle(answers[i], 4);
        assert_no_stall();
        settle(NULL, 0); /* the socket takes everything */
        assert_false(paused);
        assert_int_equal(buffer_length(&table->client.out), 0);
    }
    assert_int_equal(resumed, sizeof(answers) / sizeof(answers[0]));
}

static void a_client_that_leaves_is_closed_despite_unsent_bytes(void **state)
{
    static const long never[] = {-1, -1, -1, -1};
    (void)state;
    fill_out(1000);
    settle(never, 4);
    assert_int_equal(table->state, CONNECTION_EXCHANGE);
    table->exchange = NULL; /* not a real one that could be cancelled */
    table->state = CONNECTION_FLUSHING;
    connection_ready(table, EVENT_PEER_ENDED);
    settle(never, 4);
    assert_int_equal(table->state, CONNECTION_UNUSED);
    assert_int_equal(broker.connection_count, 0);
    assert_int_equal(broker.buffers.unused_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_socket_that_takes_bytes_at_any_call_resumes_the_upstream,
                                        open_connection, close_connection),
        cmocka_unit_test_setup_teardown(a_client_that_leaves_is_closed_despite_unsent_bytes,
                                        open_connection, close_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
