/* The rules of a connection: events, verdicts, limits. */
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
    connection.sides[SIDE_TARGET].refuses = true; /* bytes for it are dropped, so reading goes on */
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLIN | EPOLLRDHUP);
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLIN | EPOLLRDHUP);
    connection.sides[SIDE_CLIENT].leaving =
        true; /* handled: watching it again would cause endless wake-ups */
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLIN);
    connection.sides[SIDE_CLIENT].ended = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), EPOLLHUP);
    connection.sides[SIDE_CLIENT].gone = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), 0);
}

static void interest_follows_the_records_of_tls(void **state)
{
    (void)state;
    struct tls_link *some_link = (struct tls_link *)16; /* only compared with NULL */
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
    target->told = true; /* after our own end the two look the same */
    assert_false(connection_is_cut(&connection, SIDE_TARGET));
    connection = joined(RELAY_TO_RELAY, false);
    connection.sides[SIDE_TARGET].gone = true;
    connection.flows[SIDE_TARGET].received = 3;
    assert_true(connection_is_cut(&connection, SIDE_TARGET));
    connection.role = RELAY_TO_BROKER; /* a broker over vsock closes completely too */
    assert_false(connection_is_cut(&connection, SIDE_TARGET));
}

static void interest_of_a_framed_client(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_SERVER, true);
    connection.framed = true;
    connection.flows[SIDE_TARGET].length = FLOW_SIZE - PIECE_HEAD - 1;
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLIN | EPOLLRDHUP);
    connection.flows[SIDE_TARGET].length++; /* no room for a length and a byte */
    assert_int_equal(connection_interest(&connection, SIDE_TARGET), EPOLLRDHUP);
    connection.flows[SIDE_TARGET].length = 0;
    connection.sides[SIDE_CLIENT].leaving = connection.sides[SIDE_CLIENT].ended = true;
    assert_true(connection_interest(&connection, SIDE_CLIENT) & EPOLLIN); /* it may still close */
    connection.sides[SIDE_CLIENT].gone = true;
    assert_int_equal(connection_interest(&connection, SIDE_CLIENT), 0);
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
    uint64_t answered;                   /* all bytes received from the target */
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
    /* the same towards the other relay */
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

/* In pieces: the host closes first, and a close without an end before it is a break. */
static const struct judged framed[] = {
    {RELAY_TO_SERVER, 1, ENDED, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED, 0, 0, 0, 0, VERDICT_PASS_END_TO_TARGET},
    {RELAY_TO_SERVER, 1, 0, ENDED, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, 0, ENDED, 0, 0, 9, VERDICT_PASS_END_TO_CLIENT},
    {RELAY_TO_SERVER, 1, TOLD, ENDED, 0, 0, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED | TOLD, ENDED | TOLD, 0, 0, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED | GONE | TOLD, ENDED | TOLD, 0, 0, 9, VERDICT_CLOSE},
    {RELAY_TO_SERVER, 1, ENDED | GONE, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED | GONE, 0, 0, 9, 9, VERDICT_CLOSE},
    {RELAY_TO_SERVER, 1, ENDED | GONE | BROKEN, 0, 9, 0, 0, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, ENDED | GONE | BROKEN, 0, 0, 9, 9, VERDICT_BREAK},
    {RELAY_TO_SERVER, 1, 0, ENDED | BROKEN, 0, 9, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, 0, ENDED | BROKEN, 0, 0, 9, VERDICT_BREAK},
    /* an end that was passed on stays an end, whatever happens to the target */
    {RELAY_TO_SERVER, 1, TOLD, ENDED | BROKEN, 0, 0, 9, VERDICT_KEEP},
    {RELAY_TO_SERVER, 1, TOLD, ENDED | GONE | BROKEN, 9, 0, 9, VERDICT_LINGER},
    {RELAY_TO_SERVER, 1, 0, ENDED | GONE, 0, 0, 9, VERDICT_PASS_END_TO_CLIENT},
};

static struct connection connection_of(const struct judged *row, bool in_pieces)
{
    struct connection connection = joined(row->role, row->half_close);
    connection.framed = in_pieces;
    set_side(&connection.sides[SIDE_CLIENT], row->client);
    set_side(&connection.sides[SIDE_TARGET], row->target);
    connection.flows[SIDE_CLIENT].length = row->client_bytes;
    connection.flows[SIDE_TARGET].length = row->target_bytes;
    connection.flows[SIDE_TARGET].received = row->answered;
    return connection;
}

static void check_verdicts(const struct judged *rows, size_t count, bool in_pieces)
{
    for (size_t i = 0; i < count; i++) {
        struct connection connection = connection_of(&rows[i], in_pieces);
        enum connection_verdict verdict = connection_judge(&connection);
        if (verdict != rows[i].verdict)
            fail_msg("row %zu: %s, not %s", i, connection_verdict_names[verdict],
                     connection_verdict_names[rows[i].verdict]);
    }
}

static void verdicts(void **state)
{
    (void)state;
    check_verdicts(judged, ARRAY_LENGTH(judged), false);
    check_verdicts(framed, ARRAY_LENGTH(framed), true);
}

static void no_limit_cuts_what_the_host_has_still_to_take(void **state)
{
    (void)state;
    struct connection connection = joined(RELAY_TO_SERVER, true);
    connection.framed = true;
    connection.sides[SIDE_TARGET].leaving = true;
    assert_int_equal(connection_end_limit(&connection), NEVER);
    connection.flows[SIDE_TARGET].length = 1;
    assert_int_equal(connection_end_limit(&connection), NEVER);
    connection.flows[SIDE_TARGET].length = 0;
    connection.sides[SIDE_TARGET].ended = connection.sides[SIDE_CLIENT].told = true;
    assert_int_equal(connection_end_limit(&connection), NEVER);
    connection.sides[SIDE_CLIENT].ended = connection.sides[SIDE_CLIENT].leaving = true;
    assert_int_equal(connection_end_limit(&connection), NEVER);
    connection.sides[SIDE_CLIENT].gone = true;
    connection.flows[SIDE_CLIENT].length = 1; /* which the server does not take */
    assert_int_equal(connection_end_limit(&connection), HALF_OPEN_STALLED_MS);
}

/* A side that has the other's whole stream is closed, any other is reset. */
static void a_limit_is_an_end_only_for_who_has_all(void **state)
{
    (void)state;
    static const struct {
        struct judged row;
        bool client_has_all, target_has_all;
    } cases[] = {
        {{RELAY_TO_SERVER, 0, 0, ENDED, 0, 0, 9, VERDICT_CLOSE}, true, false},
        {{RELAY_TO_SERVER, 0, 0, ENDED, 0, 9, 9, VERDICT_BREAK}, false, false},
        {{RELAY_TO_SERVER, 0, 0, ENDED, 9, 0, 9, VERDICT_BREAK}, true, false},
        {{RELAY_TO_SERVER, 0, ENDED, 0, 0, 0, 9, VERDICT_BREAK}, false, true},
        {{RELAY_TO_SERVER, 0, ENDED, 0, 9, 0, 9, VERDICT_BREAK}, false, false},
        {{RELAY_TO_SERVER, 1, TOLD, ENDED, 0, 0, 9, VERDICT_BREAK}, true, false},
        {{RELAY_TO_AGENT, 1, ENDED, TOLD, 0, 0, 9, VERDICT_BREAK}, false, true},
        {{RELAY_TO_BROKER, 0, 0, ENDED, 0, 9, 9, VERDICT_BREAK}, false, false},
        {{RELAY_TO_SERVER, 1, 0, ENDED | BROKEN, 0, 0, 9, VERDICT_BREAK}, false, false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct connection connection = connection_of(&cases[i].row, false);
        assert_int_equal(connection_judge_expired(&connection), cases[i].row.verdict);
        assert_int_equal(connection_has_all(&connection, SIDE_CLIENT), cases[i].client_has_all);
        assert_int_equal(connection_has_all(&connection, SIDE_TARGET), cases[i].target_has_all);
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
        cmocka_unit_test(interest_of_a_framed_client),
        cmocka_unit_test(a_whole_close_between_two_agents_is_a_break),
        cmocka_unit_test(the_other_agent_may_linger),
        cmocka_unit_test(a_client_that_left_while_dialling_is_watched_no_more),
        cmocka_unit_test(verdicts),
        cmocka_unit_test(limits_of_half_open_connections),
        cmocka_unit_test(no_limit_cuts_what_the_host_has_still_to_take),
        cmocka_unit_test(a_limit_is_an_end_only_for_who_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
