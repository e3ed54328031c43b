/* The ends of a joined connection, over socket pairs and with a clock of the test's own: who is
 * told an end, who a break, and which limit may cut what. */
#include "test/harness/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qemu-harness/launcher/guest/way_in_connection_internal.h"

#define SECOND 1000000000LL
#define END "\0\0"

static struct way_in_connection connection;
static int client, guest; /* the test's ends */
static int64_t now;

static void nonblocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static void make_pair(int pair[2], bool over_tcp)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    if (!over_tcp) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    } else {
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(listener, 1), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
        pair[1] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(connect(pair[1], (struct sockaddr *)&address, length), 0);
        pair[0] = accept(listener, NULL, NULL);
        close(listener);
    }
    nonblocking(pair[0]);
    nonblocking(pair[1]);
}

static void joined(bool over_tcp)
{
    int pair[2];
    make_pair(pair, over_tcp);
    now = 1000 * SECOND;
    way_in_connection_begin(&connection, pair[0], over_tcp, now);
    client = pair[1];
    make_pair(pair, false);
    connection.state = WAY_IN_JOINED;
    connection.guest = pair[0];
    guest = pair[1];
}

static void leave(void)
{
    way_in_connection_end(&connection);
    close(client);
    if (guest >= 0)
        close(guest);
}

/* As the event loop does, until nothing is ready any more. */
static void work(void)
{
    static const struct guest_link link = {
        .way_in = {.kind = ENDPOINT_UNIX, .path = "/nonexistent/socket"}}; /* refuses every dial */
    struct pollfd fds[2];
    for (int turn = 0; turn < 100 && connection.state != WAY_IN_FREE; turn++) {
        unsigned count = way_in_connection_poll(&connection, fds, 0);
        int ready = poll(fds, count, 5);
        way_in_connection_work(&connection, &link, "", fds, now);
        if (ready == 0)
            return;
    }
}

static void say(int fd, const void *bytes, size_t length)
{
    assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
}

static void hears(int fd, const void *bytes, size_t length)
{
    char have[256];
    if (length == 0)
        return;
    assert_int_equal(recv(fd, have, length, 0), length);
    assert_memory_equal(have, bytes, length);
}

static void hears_the_end(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
}

static void hears_nothing(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static void hears_a_reset(int fd)
{
    char byte;
    assert_int_equal(recv(fd, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

/* Fills what is on the way to the client, until the guest can send no more. */
static size_t fill(void)
{
    static char piece[PIECE_HEAD + 30000];
    size_t bytes = 0;
    piece_write_head((uint8_t *)piece, sizeof(piece) - PIECE_HEAD);
    for (;;) {
        ssize_t sent = send(guest, piece, sizeof(piece), MSG_NOSIGNAL);
        for (size_t rest = sent > 0 ? (size_t)sent : 0; sent > 0 && rest < sizeof(piece);) {
            work();
            sent = send(guest, piece + rest, sizeof(piece) - rest, MSG_NOSIGNAL);
            if (sent < 0)
                return bytes; /* an unfinished piece */
            rest += (size_t)sent;
        }
        if (sent < 0)
            return bytes;
        bytes += sizeof(piece) - PIECE_HEAD;
        work();
    }
}

static void ends_pass_both_ways(void **state)
{
    (void)state;
    for (int over_tcp = 0; over_tcp < 2; over_tcp++) {
        joined(over_tcp);
        say(client, "question", 8);
        shutdown(client, SHUT_WR);
        work();
        hears(guest, "\0\10question" END, 12);
        say(guest, "\0\6answer" END, 10);
        work();
        hears(client, "answer", 6);
        hears_the_end(client);
        assert_int_equal(connection.state, WAY_IN_FREE);
        leave();
    }
}

static void the_clients_rest_passes_after_the_servers_end(void **state)
{
    (void)state;
    joined(false);
    say(guest, END, 2);
    work();
    hears_the_end(client);
    now += 3600 * SECOND;
    say(client, "more", 4);
    work();
    hears(guest, "\0\4more", 6);
    shutdown(client, SHUT_WR);
    work();
    hears(guest, END, 2);
    assert_int_equal(connection.state, WAY_IN_FREE);
    leave();
}

/* Whatever ended the connection to the guest: without the server's end it is no end for the
 * client. */
static void a_guest_that_is_lost_is_a_reset(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length, heard;
    } cases[] = {{"", 0, 0}, {"\0\4half", 6, 4}, {"\0\4half\0", 7, 4}, {"\0\5half", 6, 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        joined(true);
        say(client, "question", 8);
        say(guest, cases[i].bytes, cases[i].length);
        work();
        hears(client, "half", cases[i].heard);
        close(guest);
        guest = -1;
        work();
        hears_a_reset(client);
        assert_int_equal(connection.state, WAY_IN_FREE);
        leave();
    }
}

/* The server that took the connection was about to end: another may start. */
static void a_guest_that_is_lost_before_a_word_is_tried_again(void **state)
{
    (void)state;
    joined(false);
    close(guest);
    guest = -1;
    work();
    assert_int_equal(connection.state, WAY_IN_WAITING);
    hears_nothing(client);
    now += 15 * SECOND;
    work();
    assert_int_equal(connection.state, WAY_IN_FREE);
    leave();
}

static void a_unix_client_with_unread_bytes_reads_a_reset(void **state)
{
    (void)state;
    joined(false);
    say(guest, "\0\4half", 6);
    work();
    say(client, "too late", 8);
    way_in_connection_end(&connection);
    hears(client, "half", 4);
    hears_a_reset(client);
    leave();
}

static void a_client_that_is_reset_is_no_end_for_the_guest(void **state)
{
    (void)state;
    const struct linger at_once = {.l_onoff = 1};
    joined(true);
    say(client, "half", 4);
    work();
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(client);
    work();
    hears(guest, "\0\4half", 6);
    hears_the_end(guest);
    client = -1;
    leave();
}

static void a_client_that_closes_is_an_end_for_the_guest(void **state)
{
    (void)state;
    joined(false);
    say(guest, "\0\6unread", 8);
    work();
    say(client, "all", 3);
    close(client);
    work();
    hears(guest, "\0\3all" END, 7);
    hears_the_end(guest);
    client = -1;
    leave();
}

static void an_upload_arrives_though_the_answer_is_refused(void **state)
{
    (void)state;
    joined(false);
    shutdown(client, SHUT_RD);
    say(guest, "\0\6answer", 8);
    say(client, "upload", 6);
    work();
    hears(guest, "\0\6upload", 8);
    say(client, " and more", 9);
    shutdown(client, SHUT_WR);
    work();
    hears(guest, "\0\11 and more" END, 13);
    leave();
}

static void no_short_limit_cuts_what_a_client_has_still_to_read(void **state)
{
    (void)state;
    joined(true);
    shutdown(client, SHUT_WR);
    size_t bytes = fill();
    now += 599 * SECOND;
    work();
    assert_int_equal(connection.state, WAY_IN_JOINED);
    static char have[65536];
    size_t read_bytes = 0;
    ssize_t length;
    do {
        length = recv(client, have, sizeof(have), 0);
        read_bytes += length > 0 ? (size_t)length : 0;
        work();
    } while (length > 0);
    assert_int_equal(errno, EAGAIN);
    assert_true(read_bytes >= bytes);
    assert_int_equal(connection.state, WAY_IN_JOINED);
    leave();
}

static void what_a_limit_cuts_is_a_reset(void **state)
{
    (void)state;
    joined(true); /* the server is silent */
    shutdown(client, SHUT_WR);
    say(guest, "\0\4half", 6);
    work();
    hears(client, "half", 4);
    now += 59 * SECOND;
    work();
    hears_nothing(client);
    now += SECOND;
    assert_true(way_in_connection_due(&connection) <= now);
    work();
    hears_a_reset(client);
    leave();
    joined(true); /* the client reads nothing */
    shutdown(client, SHUT_WR);
    fill();
    now += 600 * SECOND;
    work();
    assert_int_equal(connection.state, WAY_IN_FREE);
    char byte;
    while (recv(client, &byte, 1, 0) > 0)
        ;
    assert_int_equal(errno, ECONNRESET);
    leave();
}

static void a_unix_client_that_waits_may_wait(void **state)
{
    (void)state;
    joined(false);
    shutdown(client, SHUT_WR);
    work();
    assert_true(way_in_connection_due(&connection) == INT64_MAX);
    now += 36000 * SECOND;
    work();
    hears_nothing(client);
    say(guest, "\0\6answer" END, 10);
    work();
    hears(client, "answer", 6);
    hears_the_end(client);
    leave();
}

/* It may read its last answer, and then hears that its bytes go nowhere. */
static void a_client_sends_not_for_long_to_a_server_that_has_closed(void **state)
{
    (void)state;
    joined(false);
    say(guest, "\0\6answer" END END, 12);
    for (int tenths = 0; tenths < 20; tenths++) {
        say(client, "more", 4);
        work();
        hears(guest, "\0\4more", 6);
        assert_int_equal(connection.state, WAY_IN_JOINED);
        now += SECOND / 10;
    }
    work();
    assert_int_equal(connection.state, WAY_IN_FREE);
    hears(client, "answer", 6);
    hears_the_end(client);
    leave();
}

static void a_guest_that_takes_nothing_does_not_hold_a_client_that_left(void **state)
{
    (void)state;
    static char bytes[60000];
    joined(false);
    while (send(client, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
        work();
    close(client);
    client = -1;
    work();
    now += 599 * SECOND;
    work();
    assert_int_equal(connection.state, WAY_IN_JOINED);
    now += SECOND;
    work();
    assert_int_equal(connection.state, WAY_IN_FREE);
    leave();
}

static void no_answer_from_the_guest_is_a_reset(void **state)
{
    (void)state;
    joined(true);
    connection.state = WAY_IN_GREETING;
    now += 15 * SECOND;
    work();
    hears_a_reset(client);
    leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_pass_both_ways),
        cmocka_unit_test(the_clients_rest_passes_after_the_servers_end),
        cmocka_unit_test(a_guest_that_is_lost_is_a_reset),
        cmocka_unit_test(a_guest_that_is_lost_before_a_word_is_tried_again),
        cmocka_unit_test(a_unix_client_with_unread_bytes_reads_a_reset),
        cmocka_unit_test(a_client_that_is_reset_is_no_end_for_the_guest),
        cmocka_unit_test(a_client_that_closes_is_an_end_for_the_guest),
        cmocka_unit_test(an_upload_arrives_though_the_answer_is_refused),
        cmocka_unit_test(no_short_limit_cuts_what_a_client_has_still_to_read),
        cmocka_unit_test(what_a_limit_cuts_is_a_reset),
        cmocka_unit_test(a_unix_client_that_waits_may_wait),
        cmocka_unit_test(a_client_sends_not_for_long_to_a_server_that_has_closed),
        cmocka_unit_test(a_guest_that_takes_nothing_does_not_hold_a_client_that_left),
        cmocka_unit_test(no_answer_from_the_guest_is_a_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
