/* Real sockets on loopback and in the file system: listening, dialling, and the default gateway. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "test/harness/guard.h"

static char folder[] = "/tmp/codev-unit-endpoint-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return !mkdtemp(folder) ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void assert_flags(int fd)
{
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Listens, dials, passes a byte. Returns the listener, still open. */
static int meet(struct endpoint *endpoint)
{
    struct failure why = {""};
    int listener = endpoint_listen(endpoint, 4, &why);
    if (listener < 0)
        fail_msg("%s", why.text);
    assert_flags(listener);
    int client = endpoint_dial(endpoint);
    assert_true(client >= 0);
    assert_flags(client);
    struct pollfd ready[] = {{.fd = listener, .events = POLLIN}, {.fd = client, .events = POLLOUT}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(poll(&ready[i], 1, 10000), 1);
    int server = accept(listener, NULL, NULL);
    assert_true(server >= 0);
    char byte = 0;
    assert_int_equal(write(client, "x", 1), 1);
    assert_int_equal(read(server, &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(server);
    close(client);
    return listener;
}

static void tcp_learns_its_port(void **state)
{
    (void)state;
    static const char *const texts[] = {"tcp:127.0.0.1:0", "tcp:[::1]:0"};
    for (int i = 0; i < 2; i++) {
        struct endpoint endpoint;
        assert_int_equal(endpoint_parse_listen(&endpoint, texts[i], NULL), 0);
        int listener = meet(&endpoint);
        assert_int_not_equal(endpoint.port, 0);
        struct failure why;
        assert_int_equal(endpoint_listen(&endpoint, 4, &why), -EADDRINUSE);
        assert_non_null(strstr(why.text, "Address already in use"));
        close(listener);
        close(meet(&endpoint)); /* again at once: SO_REUSEADDR */
    }
}

static void unix_sockets_are_private(void **state)
{
    (void)state;
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};
    snprintf(endpoint.path, sizeof(endpoint.path), "%s/s", folder);
    mode_t before = umask(0);
    int listener = meet(&endpoint);
    umask(before);
    struct stat status;
    assert_int_equal(stat(endpoint.path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    struct failure why;
    assert_int_equal(endpoint_listen(&endpoint, 4, &why), -EADDRINUSE);
    assert_non_null(strstr(why.text, endpoint.path));
    assert_int_equal(stat(endpoint.path, &status), 0); /* the existing file stays */
    close(listener);
    assert_int_equal(endpoint_dial(&endpoint), -ECONNREFUSED);
    assert_int_equal(unlink(endpoint.path), 0);
    assert_int_equal(endpoint_dial(&endpoint), -ENOENT);
}

#define HEADER                                                                                     \
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
#define ROW(destination, gateway, flags, metric, mask)                                             \
    "eth0\t" destination "\t" gateway "\t" flags "\t0\t0\t" metric "\t" mask "\t0\t0\t0\n"

static void the_gateway_is_the_lowest_metric(void **state)
{
    (void)state;
    static const struct {
        const char *table;
        int result;
        uint8_t address[4];
    } cases[] = {
        {"", -ENETUNREACH, {0}},
        {HEADER, -ENETUNREACH, {0}},
        {HEADER ROW("00000000", "0102A8C0", "0003", "0", "00000000"), 0, {192, 168, 2, 1}},
        {HEADER ROW("00000000", "0100000A", "0003", "100", "00000000")
             ROW("00000000", "0200000A", "0003", "50", "00000000")
                 ROW("00000000", "0300000A", "0003", "50", "00000000"),
         0,
         {10, 0, 0, 2}},
        {HEADER ROW("0000000A", "0100000A", "0003", "0", "000000FF"), -ENETUNREACH, {0}},
        {HEADER ROW("00000000", "0100000A", "0003", "0", "00000080"), -ENETUNREACH, {0}},
        {HEADER ROW("00000000", "00000000", "0001", "0", "00000000"), -ENETUNREACH, {0}},
        {HEADER ROW("00000000", "0100000A", "0203", "0", "00000000") "cut", 0, {10, 0, 0, 1}},
        {"eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000", -ENETUNREACH, {0}},
        {"nonsense\n\n\t\t\n", -ENETUNREACH, {0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t address[4] = {0};
        size_t length = strlen(cases[i].table);
        char *guarded = guard_copy(cases[i].table, length);
        assert_int_equal(endpoint_default_gateway(guarded, length, address), cases[i].result);
        assert_memory_equal(address, cases[i].address, 4);
        guard_free(guarded, length);
    }
}

static void the_table_is_read_at_each_dial(void **state)
{
    (void)state;
    struct endpoint server;
    assert_int_equal(endpoint_parse_listen(&server, "tcp:127.0.0.1:0", NULL), 0);
    int listener = endpoint_listen(&server, 4, NULL);
    assert_true(listener >= 0);
    struct endpoint gateway = {.kind = ENDPOINT_TCP_GATEWAY, .port = server.port};
    FILE *table = tmpfile();
    fputs(HEADER, table);
    fflush(table);
    assert_int_equal(endpoint_dial_by(&gateway, fileno(table)), -ENETUNREACH);
    fputs(ROW("00000000", "0100007F", "0003", "0", "00000000"), table);
    fflush(table);
    int client = endpoint_dial_by(&gateway, fileno(table));
    assert_true(client >= 0);
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 10000), 1);
    close(client);
    close(listener);
    fclose(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_learns_its_port),
        cmocka_unit_test(unix_sockets_are_private),
        cmocka_unit_test(the_gateway_is_the_lowest_metric),
        cmocka_unit_test(the_table_is_read_at_each_dial),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
