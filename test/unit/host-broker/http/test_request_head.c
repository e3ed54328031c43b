/* The head parser: accepted heads, refused heads and the reasons, at every split and at a guard
 * page. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/http/request_head.h"
#include "test/harness/guard.h"

#define HOST "Host: h\r\n"
#define GET "GET / HTTP/1.1\r\n"

/* Feeds ever longer beginnings, `step` bytes more each time, each in memory of its own that ends at
 * a guard page: nothing may be kept of the last one. *head has slices into *guarded on success. */
static ssize_t feed(struct request_head *head, const char *text, size_t length, size_t step,
                    enum request_fault *fault, char **guarded)
{
    struct request_scan scan = {0};
    for (size_t given = 0;;) {
        given = given + step < length ? given + step : length;
        *guarded = guard_copy(text, given);
        ssize_t result = request_head_parse(head, *guarded, given, &scan, fault);
        if (result != 0 || given == length) {
            if (result <= 0)
                guard_free(*guarded, given);
            return result;
        }
        guard_free(*guarded, given);
    }
}

static ssize_t parse(struct request_head *head, const char *text, enum request_fault *fault)
{
    char *guarded;
    size_t length = strlen(text);
    ssize_t result = feed(head, text, length, length, fault, &guarded);
    if (result > 0) /* slices into the literal instead: it lives on */
        result = request_head_parse(head, text, length, &(struct request_scan){0}, fault);
    return result;
}

static void assert_refused(const char *text, size_t length, enum request_fault expected)
{
    for (size_t step = 1; step <= length; step += length > 1 ? length - 1 : 1) {
        struct request_head head = {.minor_version = 77};
        enum request_fault fault = REQUEST_FAULT_NONE;
        char *guarded;
        ssize_t result = feed(&head, text, length, step, &fault, &guarded);
        if (result != -EBADMSG || fault != expected)
            fail_msg("%s: %d, %s", text, (int)result, request_fault_kinds[fault].reason);
        assert_int_equal(head.minor_version, 77);
    }
}

static void a_head_is_taken_apart(void **state)
{
    (void)state;
    static const char text[] = "POST /npm/%2f?x=1 HTTP/1.1\r\nHost: a.b:80\r\nContent-Length: 5\r\n"
                               "X-Empty:\r\nx-UPPER:\t v  w \r\nExpect: 100-Continue\r\n\r\nhello";
    for (size_t step = 1; step < sizeof(text); step++) {
        struct request_head head;
        enum request_fault fault;
        char *guarded;
        ssize_t length = feed(&head, text, sizeof(text) - 1, step, &fault, &guarded);
        assert_true(length == (ssize_t)sizeof(text) - 6);
        assert_true(slice_equal(head.method, SLICE_LITERAL("POST")));
        assert_true(slice_equal(head.target, SLICE_LITERAL("/npm/%2f?x=1")));
        assert_true(slice_equal(head.host, SLICE_LITERAL("a.b:80")));
        assert_int_equal(head.minor_version, 1);
        assert_int_equal(head.framing, BODY_LENGTH);
        assert_int_equal(head.content_length, 5);
        assert_true(head.keep_alive && head.expect_continue && !head.upgrade);
        assert_int_equal(head.field_count, 5);
        assert_true(slice_equal(head.fields[2].name, SLICE_LITERAL("X-Empty")));
        assert_int_equal(head.fields[2].value.length, 0);
        assert_true(slice_equal(head.fields[3].name, SLICE_LITERAL("x-UPPER")));
        assert_true(slice_equal(head.fields[3].value, SLICE_LITERAL("v  w")));
        size_t given = ((size_t)length + step - 1) / step * step;
        guard_free(guarded, given < sizeof(text) - 1 ? given : sizeof(text) - 1);
    }
}

static void unfinished_heads_need_more(void **state)
{
    (void)state;
    static const char text[] = GET HOST "A: b\r\n\r";
    for (size_t length = 0; length < sizeof(text); length++) {
        struct request_head head = {.minor_version = 77};
        enum request_fault fault = REQUEST_FAULT_NONE;
        char *guarded;
        assert_int_equal(feed(&head, text, length, 1, &fault, &guarded), 0);
        assert_int_equal(head.minor_version, 77);
    }
}

static void empty_lines_before_are_skipped(void **state)
{
    (void)state;
    struct request_head head;
    enum request_fault fault;
    struct request_scan scan = {0};
    assert_int_equal(parse(&head, "\r\n\r\n" GET HOST "\r\n", &fault), 31);
    assert_true(slice_equal(head.method, SLICE_LITERAL("GET")));
    assert_int_equal(request_head_parse(&head, "\r\n\r\n", 4, &scan, &fault), 0);
    assert_false(request_scan_begun(&scan));
    assert_int_equal(request_head_parse(&head, "\r\n\r\nG", 5, &scan, &fault), 0);
    assert_true(request_scan_begun(&scan));
    assert_refused("\r\n\r\n\r\n\r\n\r\n", 10, REQUEST_FAULT_REQUEST_LINE);
    assert_refused("\n" GET, 17, REQUEST_FAULT_LINE_END);
    assert_refused("\rG", 2, REQUEST_FAULT_LINE_END);
}

#define REFUSED(text, fault)                                                                       \
    {                                                                                              \
        text, sizeof(text) - 1, fault                                                              \
    }

static const struct {
    const char *text;
    size_t length;
    enum request_fault fault;
} malformed_heads[] = {
    REFUSED(" ", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET  / HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET\t/ HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET /\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET / \r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET / HTTP/1.1 \r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET /a b HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET /\x80 HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET /\0 HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET / http/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET / HTTP/1.10\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("GET / HTTP/1.1\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("G\0T / HTTP/1.1\r\n", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("\x16\x03\x01", REQUEST_FAULT_REQUEST_LINE),
    REFUSED("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REQUEST_FAULT_VERSION),
    REFUSED("GET / HTTP/1.2\r\n", REQUEST_FAULT_VERSION),
    REFUSED("GET / HTTP/0.9\r\n", REQUEST_FAULT_VERSION),
    REFUSED("GET / HTTP/1.1\rX", REQUEST_FAULT_LINE_END),
    REFUSED(GET "Host: h\n", REQUEST_FAULT_LINE_END),
    REFUSED(GET "Host: h\rX", REQUEST_FAULT_LINE_END),
    REFUSED(GET HOST "\n", REQUEST_FAULT_LINE_END),
    REFUSED(GET HOST "\rX", REQUEST_FAULT_LINE_END),
    REFUSED(GET " Host: h\r\n", REQUEST_FAULT_FOLDING),
    REFUSED(GET HOST "A: b\r\n c\r\n", REQUEST_FAULT_FOLDING),
    REFUSED(GET HOST "A: b\r\n\tc\r\n", REQUEST_FAULT_FOLDING),
    REFUSED(GET "Host : h\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET "Host\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET ": v\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET "Fo@: v\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET "F\0o: v\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET "F\xffo: v\r\n", REQUEST_FAULT_FIELD_NAME),
    REFUSED(GET "A: \0\r\n", REQUEST_FAULT_FIELD_VALUE),
    REFUSED(GET "A: \x01\r\n", REQUEST_FAULT_FIELD_VALUE),
    REFUSED(GET "A: \x7f\r\n", REQUEST_FAULT_FIELD_VALUE),
    REFUSED(GET "\r\n", REQUEST_FAULT_HOST_MISSING),
    REFUSED(GET HOST HOST "\r\n", REQUEST_FAULT_HOST_TWICE),
    REFUSED("GET / HTTP/1.0\r\n" HOST "hOST: h\r\n\r\n", REQUEST_FAULT_HOST_TWICE),
    REFUSED(GET "Host:\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: a b\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: a/b\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: a@b\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: :80\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: a:b\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: a:65536\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: [::1\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: []\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET "Host: [::1]x\r\n\r\n", REQUEST_FAULT_HOST_INVALID),
    REFUSED(GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", REQUEST_FAULT_LENGTH_TWICE),
    REFUSED(GET HOST "Content-Length: 1, 1\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length:\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: +1\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: -1\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: 0x1\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: 1 1\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: 9223372036854775808\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: 18446744073709551617\r\n\r\n", REQUEST_FAULT_LENGTH_INVALID),
    REFUSED(GET HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            REQUEST_FAULT_LENGTH_AND_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            REQUEST_FAULT_LENGTH_AND_CODING),
    REFUSED(GET HOST "Transfer-Encoding:\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: gzip\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: identity\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: xchunked\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked\t\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked \r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding:\tchunked\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: \"chunked\"\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked;x\r\n\r\n", REQUEST_FAULT_CODING),
    REFUSED(GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            REQUEST_FAULT_CODING),
    REFUSED("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", REQUEST_FAULT_CODING_IN_1_0),
    REFUSED(GET HOST "Expect: 200-ok\r\n\r\n", REQUEST_FAULT_EXPECTATION),
};

static void malformed_heads_are_refused(void **state)
{
    (void)state;
    bool seen[REQUEST_FAULT_COUNT] = {0};
    for (size_t i = 0; i < sizeof(malformed_heads) / sizeof(malformed_heads[0]); i++) {
        assert_refused(malformed_heads[i].text, malformed_heads[i].length,
                       malformed_heads[i].fault);
        seen[malformed_heads[i].fault] = true;
    }
    for (int fault = REQUEST_FAULT_NONE + 1; fault < REQUEST_FAULT_COUNT; fault++)
        assert_true(seen[fault] || fault == REQUEST_FAULT_TOO_LARGE ||
                    fault == REQUEST_FAULT_TOO_MANY_FIELDS);
}

static void framing_and_connection_are_decoded(void **state)
{
    (void)state;
    enum { KEEP = 1, EXPECT = 2, UPGRADE = 4 };
    static const struct {
        const char *text;
        enum body_framing framing;
        uint64_t length;
        int flags;
    } cases[] = {
        {GET HOST "\r\n", BODY_NONE, 0, KEEP},
        {GET HOST "Connection: close\r\n\r\n", BODY_NONE, 0, 0},
        {GET HOST "Connection: x, ,CLOSE\r\n\r\n", BODY_NONE, 0, 0},
        {GET HOST "Connection: keep-alive\r\nConnection: close\r\n\r\n", BODY_NONE, 0, 0},
        {GET HOST "Connection: closed\r\n\r\n", BODY_NONE, 0, KEEP},
        {GET HOST "Content-Length: 0\r\n\r\n", BODY_LENGTH, 0, KEEP},
        {GET HOST "Content-Length:  007\t\r\n\r\n", BODY_LENGTH, 7, KEEP},
        {GET HOST "Content-Length: 9223372036854775807\r\n\r\n", BODY_LENGTH, INT64_MAX, KEEP},
        {GET HOST "Transfer-Encoding: chunked\r\n\r\n", BODY_CHUNKED, 0, KEEP},
        {GET HOST "transfer-ENCODING:CHUNKED\r\n\r\n", BODY_CHUNKED, 0, KEEP},
        {GET HOST "Expect: 100-continue\r\n\r\n", BODY_NONE, 0, KEEP},
        {GET HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", BODY_LENGTH, 1,
         KEEP | EXPECT},
        {"GET / HTTP/1.0\r\n\r\n", BODY_NONE, 0, 0},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", BODY_NONE, 0, 0},
        {"POST / HTTP/1.0\r\nExpect: x\r\nContent-Length: 3\r\n\r\n", BODY_LENGTH, 3, 0},
        {GET HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", BODY_NONE, 0,
         KEEP | UPGRADE},
        {GET HOST "Upgrade: h2c, websocket\r\nConnection: keep-alive, upgrade\r\n\r\n", BODY_NONE,
         0, KEEP | UPGRADE},
        {GET HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n", BODY_NONE, 0,
         KEEP},
        {GET HOST "Upgrade: websocket\r\n\r\n", BODY_NONE, 0, KEEP},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request_head head;
        enum request_fault fault = REQUEST_FAULT_NONE;
        ssize_t result = parse(&head, cases[i].text, &fault);
        if (result != (ssize_t)strlen(cases[i].text))
            fail_msg("%s: %s", cases[i].text, request_fault_kinds[fault].reason);
        assert_int_equal(head.framing, cases[i].framing);
        assert_int_equal(head.content_length, cases[i].length);
        assert_int_equal(head.keep_alive, (cases[i].flags & KEEP) != 0);
        assert_int_equal(head.expect_continue, (cases[i].flags & EXPECT) != 0);
        assert_int_equal(head.upgrade, (cases[i].flags & UPGRADE) != 0);
    }
}

static void hosts_of_every_form_pass(void **state)
{
    (void)state;
    static const char *const hosts[] = {"h",   "127.0.0.1:8788", "[::1]",   "[::ffff:1.2.3.4]:1",
                                        "a_b", "a.b.:",          "x%41~!$", "0.0.0.0=5000"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char text[128];
        struct request_head head;
        enum request_fault fault;
        snprintf(text, sizeof(text), GET "Host: %s \r\n\r\n", hosts[i]);
        assert_true(parse(&head, text, &fault) > 0);
        assert_true(slice_equal(head.host, slice_of(hosts[i])));
    }
}

/* A head of exactly `length` bytes, its last field padded. */
static char *head_of(size_t length)
{
    static const char start[] = GET HOST "A: ", end[] = "\r\n\r\n";
    char *text = guard_alloc(length);
    memset(text, 'x', length);
    memcpy(text, start, sizeof(start) - 1);
    memcpy(text + length - 4, end, 4);
    return text;
}

static void size_is_limited(void **state)
{
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        size_t length = REQUEST_HEAD_MAX + over;
        char *text = head_of(length);
        for (size_t step = 1; step <= length; step += length - 1) {
            struct request_scan scan = {0};
            struct request_head head;
            enum request_fault fault = REQUEST_FAULT_NONE;
            ssize_t result = 0;
            for (size_t given = step; given <= length && result == 0; given += step)
                result = request_head_parse(&head, text, given, &scan, &fault);
            assert_true(result == (over ? -EBADMSG : (ssize_t)length));
            assert_int_equal(fault, over ? REQUEST_FAULT_TOO_LARGE : REQUEST_FAULT_NONE);
        }
        guard_free(text, length);
    }
}

static void the_number_of_fields_is_limited(void **state)
{
    (void)state;
    for (size_t count = REQUEST_FIELDS_MAX; count <= REQUEST_FIELDS_MAX + 1; count++) {
        char text[4096] = GET HOST;
        for (size_t i = 1; i < count; i++)
            strcat(text, "A: b\r\n");
        strcat(text, "\r\n");
        struct request_head head;
        enum request_fault fault = REQUEST_FAULT_NONE;
        ssize_t result = parse(&head, text, &fault);
        if (count > REQUEST_FIELDS_MAX) {
            assert_int_equal(result, -EBADMSG);
            assert_int_equal(fault, REQUEST_FAULT_TOO_MANY_FIELDS);
        } else {
            assert_int_equal(result, strlen(text));
            assert_int_equal(head.field_count, REQUEST_FIELDS_MAX);
        }
    }
}

static void what_follows_a_head_is_left_alone(void **state)
{
    (void)state;
    static const char two[] = GET HOST "\r\nGET /2 HTTP/1.0\r\n\r\n";
    struct request_head head;
    enum request_fault fault;
    ssize_t first =
        request_head_parse(&head, two, sizeof(two) - 1, &(struct request_scan){0}, &fault);
    assert_int_equal(first, sizeof(GET HOST "\r\n") - 1);
    ssize_t second = request_head_parse(&head, two + first, sizeof(two) - 1 - (size_t)first,
                                        &(struct request_scan){0}, &fault);
    assert_int_equal(second, sizeof(two) - 1 - (size_t)first);
    assert_true(slice_equal(head.target, SLICE_LITERAL("/2")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_taken_apart),
        cmocka_unit_test(unfinished_heads_need_more),
        cmocka_unit_test(empty_lines_before_are_skipped),
        cmocka_unit_test(malformed_heads_are_refused),
        cmocka_unit_test(framing_and_connection_are_decoded),
        cmocka_unit_test(hosts_of_every_form_pass),
        cmocka_unit_test(size_is_limited),
        cmocka_unit_test(the_number_of_fields_is_limited),
        cmocka_unit_test(what_follows_a_head_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
