/* The rules of a connection as tables: what it watches, what has to happen, how long it may last. */
#include "test/harness/unit.h"

#include <string.h>
#include <sys/epoll.h>

#include "agent/connection.h"
#include "common/os/cleanup.h"

static struct connection joined(enum relay_role role, bool half_close)
{
    struct connection connection = {
        .state = CONNECTION_JOINED, .role = role, .half_close = half_close};
    connection.sides[SIDE_CLIENT].fd = 10;
    connection.sides[SIDE_TARGET].fd = 11;
    return connection;
}

static void names_are_all_there(void **state)
{
    (void)state;
    for (int i = 0; i < CONNECTION_STATE_COUNT; i++)
        assert_non_null(connection_state_names[i]);
    for (int i = 0; i < VERDICT_COUNT; i++)
        assert_non_null(connection_verdict_names[i]);
}

static void interest_by_state(void **state)
{
    (void)state;
    static const struct {
        enum connection_state state;
        uint32_t client, target;
    } cases[] = {
        {CONNECTION_FREE, 0, 0},
        {CONNECTION_CLOSING, 0, 0},
        {CONNECTION_DEMANDING, EPOLLIN, EPOLLIN},
        {CONNECTION_DIALLING, EPOLLRDHUP, EPOLLOUT},
        {CONNECTION_SECURING, EPOLLRDHUP, EPOLLIN},
        {CONNECTION_JOINED, EPOLLIN | EPOLLRDHUP, EPOLLIN | EPOLLRDHUP},
        {CONNECTION_LINGERING, EPOLLIN, EPOLLIN},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct connection connection = joined(RELAY_TO_BROKER, false);
        connection.state = cases[i].state;
        assert_int_equal(connection_interest(&connection, SIDE_CLIENT), cases[i].client);
        assert_int_equal(connection_interest(&connection, SIDE_TARGET), cases[i].target);
        connection.sides[SIDE_TARGET].fd = -1;
        assert_int_equal(connection_interest(&connection, SIDE_TARGET), 0);
    }
}

static void interest_follows_the_rings(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_AGENT, true);
    connection.flows[SIDE_CLIENT].length =
        FLOW_SIZE; /* full: no more from the client, out to the target */
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLRDHUP);
    assert_int_equal(connection_interest(&connection, SIDE_TARGET),
                     EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    connection.sides[SIDE_TARGET].refuses = true; /* what is for it is thrown away: read on */
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLIN | EPOLLRDHUP);
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLIN | EPOLLRDHUP);
    connection.sides[SIDE_CLIENT].leaving =
        true; /* seen once: not again, or it would wake us for ever */
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLIN);
    connection.sides[SIDE_CLIENT].ended = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLHUP);
    connection.sides[SIDE_CLIENT].gone = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), 0);
}

static void interest_follows_the_records_of_tls(void **state)
{
    (void)state;
    struct tls_link *some_link = (struct tls_link *)16; /* only whether there is one matters */
    struct connection connection = joined(RELAY_TO_BROKER, false);
    connection.tls = some_link;
    connection.sides[SIDE_TARGET].unsent = true;
    assert_int_equal(connection_interest(&connection, SIDE_TARGET),
                     EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    connection.sides[SIDE_TARGET].unsent = false;
    connection.flows[SIDE_TARGET].length = FLOW_SIZE - 16384;
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLIN | EPOLLRDHUP);
    connection.flows[SIDE_TARGET].length++; /* no room for a whole record */
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLRDHUP);
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT),
                     EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    connection.state = CONNECTION_SECURING;
    connection.sides[SIDE_TARGET].unsent = true;
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLIN | EPOLLOUT);
}

static void a_whole_close_between_two_agents_is_a_break(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_AGENT, true);
    struct side *target = &connection.sides[SIDE_TARGET];
    assert_false(connection_is_cut(&connection, SIDE_TARGET)); /* only its sending ended */
    target->gone = true;
    assert_false(connection_is_cut(&connection, SIDE_TARGET)); /* no server, so no OK */
    connection.flows[SIDE_TARGET].received = 3;
    assert_true(connection_is_cut(&connection, SIDE_TARGET));
    assert_false(connection_is_cut(&connection, SIDE_CLIENT));
    target->told = true; /* then our own end looks the same */
    assert_false(connection_is_cut(&connection, SIDE_TARGET));
    connection = joined(RELAY_TO_RELAY, false);
    connection.sides[SIDE_TARGET].gone = true;
    connection.flows[SIDE_TARGET].received = 3;
    assert_true(connection_is_cut(&connection, SIDE_TARGET));
    connection.role = RELAY_TO_BROKER; /* a broker over vsock closes whole as well */
    assert_false(connection_is_cut(&connection, SIDE_TARGET));
}

static void the_other_agent_may_linger(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_BROKER, false);
    assert_int_equal(connection_linger_limit(&connection), LINGER_MS);
    connection.behind_agent = true;
    assert_int_equal(connection_linger_limit(&connection), HALF_OPEN_STALLED_MS);
}

static void a_client_that_left_while_dialling_is_watched_no_more(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_SERVER, true);
    connection.state = CONNECTION_DIALLING;
    connection.sides[SIDE_CLIENT].leaving = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), 0);
}

enum { LEAVING = 1, ENDED = 2, BROKEN = 4, GONE = 8, TOLD = 16 };

struct judged {
    enum relay_role role;
    int half_close, client, target;      /* flags of the sides */
    uint32_t client_bytes, target_bytes; /* pending from that side */
    uint64_t answered;                   /* bytes that ever came from the target */
    enum connection_verdict verdict;
};

static void set_side(struct side *side, int flags)
{
    side->leaving = flags & LEAVING;
    side->ended = flags & ENDED;
    side->broken = flags & BROKEN;
    side->gone = flags & GONE;
    side->told = flags & TOLD;
}

static const struct judged judged[] = {
    /* to the broker: the client's end cancels at once, whatever is pending */
    {RELAY_TO_BROKER, 0, 0, 0, 0, 0, 0, VERDICT_KEEP},
    {RELAY_TO_BROKER, 0, LEAVING, 0, 0, 0, 0, VERDICT_CLOSE},
    {RELAY_TO_BROKER, 1, LEAVING, 0, 9, 9, 9, VERDICT_CLOSE},
    {RELAY_TO_BROKER, 0, ENDED, ENDED, 0, 9, 9, VERDICT_CLOSE},
    /* the broker's end waits for its last byte to be delivered */
    {RELAY_TO_BROKER, 0, 0, ENDED, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_BROKER, 0, 0, ENDED, 0, 0, 9, VERDICT_LINGER},
    {RELAY_TO_BROKER, 0, 0, ENDED, 9, 0, 9, VERDICT_LINGER},
    {RELAY_TO_BROKER, 0, 0, ENDED | BROKEN, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_BROKER, 0, 0, ENDED | BROKEN, 0, 0, 9, VERDICT_BREAK},
    {RELAY_TO_BROKER, 0, 0, ENDED, 0, 0, 0, VERDICT_APOLOGISE},
    {RELAY_TO_BROKER, 0, 0, ENDED | BROKEN, 0, 0, 0, VERDICT_APOLOGISE},
    /* and in front of the other agent the same */
    {RELAY_TO_RELAY, 0, LEAVING, 0, 9, 9, 9, VERDICT_CLOSE},
    {RELAY_TO_RELAY, 0, 0, ENDED, 0, 0, 9, VERDICT_LINGER},
    {RELAY_TO_RELAY, 0, 0, ENDED | BROKEN, 0, 0, 9, VERDICT_BREAK},
    {RELAY_TO_RELAY, 0, 0, ENDED, 0, 0, 0, VERDICT_APOLOGISE},
    /* half-close is passed on, once, after the last byte */
    {RELAY_TO_SERVER, 1, ENDED, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED, 0, 0, 0, 0, VERDICT_PASS_END_TO_TARGET},
    {RELAY_TO_SERVER, 1, ENDED, TOLD, 0, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, 0, ENDED, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_AGENT, 1, 0, ENDED, 9, 0, 9, VERDICT_PASS_END_TO_CLIENT},
    {RELAY_TO_AGENT, 1, TOLD, ENDED, 9, 0, 9, VERDICT_KEEP},
    {RELAY_TO_AGENT, 1, ENDED | TOLD, ENDED | TOLD, 0, 0, 9, VERDICT_CLOSE},
    {RELAY_TO_AGENT, 1, ENDED | TOLD, ENDED | TOLD, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_AGENT, 1, ENDED | BROKEN, 0, 0, 0, 0, VERDICT_BREAK},
    {RELAY_TO_AGENT, 1, ENDED | BROKEN, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_AGENT, 1, ENDED | GONE, 0, 0, 9, 9, VERDICT_CLOSE},
    {RELAY_TO_AGENT, 1, 0, ENDED | GONE, 0, 0, 9, VERDICT_LINGER},
    /* and not passed on over hybrid vsock */
    {RELAY_TO_SERVER, 0, ENDED, 0, 0, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 0, 0, ENDED, 0, 0, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 0, ENDED, ENDED, 0, 0, 9, VERDICT_CLOSE},
    {RELAY_TO_SERVER, 0, ENDED | GONE, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 0, ENDED | GONE, 0, 0, 9, 9, VERDICT_CLOSE},
    {RELAY_TO_SERVER, 0, 0, ENDED | GONE, 0, 0, 9, VERDICT_CLOSE},
};

static void verdicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(judged); i++) {
        struct connection connection = joined(judged[i].role, judged[i].half_close);
        set_side(&connection.sides[SIDE_CLIENT], judged[i].client);
        set_side(&connection.sides[SIDE_TARGET], judged[i].target);
        connection.flows[SIDE_CLIENT].length = judged[i].client_bytes;
        connection.flows[SIDE_TARGET].length = judged[i].target_bytes;
        connection.flows[SIDE_TARGET].received = judged[i].answered;
        enum connection_verdict verdict = connection_judge(&connection);
        if (verdict != judged[i].verdict)
            fail_msg("row %zu: %s, not %s", i, connection_verdict_names[verdict],
                     connection_verdict_names[judged[i].verdict]);
    }
}

static void limits_of_half_open_connections(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_SERVER, false);
    assert_int_equal(connection_end_limit(&connection), NEVER);
    connection.sides[SIDE_CLIENT].leaving = true;
    assert_int_equal(connection_end_limit(&connection), HALF_OPEN_QUIET_MS);
    connection.flows[SIDE_CLIENT].length = 1;
    assert_int_equal(connection_end_limit(&connection), HALF_OPEN_STALLED_MS);
    connection.flows[SIDE_CLIENT].length = 0;
    connection.sides[SIDE_TARGET].ended = true;
    assert_int_equal(connection_end_limit(&connection), SERVER_ENDED_QUIET_MS);
    connection.half_close = true;
    assert_int_equal(connection_end_limit(&connection), HALF_OPEN_PASSED_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_all_there),
        cmocka_unit_test(interest_by_state),
        cmocka_unit_test(interest_follows_the_rings),
        cmocka_unit_test(interest_follows_the_records_of_tls),
        cmocka_unit_test(a_whole_close_between_two_agents_is_a_break),
        cmocka_unit_test(the_other_agent_may_linger),
        cmocka_unit_test(a_client_that_left_while_dialling_is_watched_no_more),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(limits_of_half_open_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
