/* Heads of answers: the choice of framing, and that no field can begin another line. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-broker/http/response_head.h"
#include "test/harness/guard.h"

static void framing_follows_from_facts(void **state)
{
    (void)state;
    static const struct {
        struct response_facts facts;
        enum response_framing framing;
        const char *text; /* behind the status line */
    } cases[] = {
        {{false, 1, 200, true, 5, true}, RESPONSE_LENGTH, "Content-Length: 5\r\n\r\n"},
        {{false, 1, 200, true, 0, true}, RESPONSE_LENGTH, "Content-Length: 0\r\n\r\n"},
        {{false, 1, 200, false, 0, true}, RESPONSE_CHUNKED, "Transfer-Encoding: chunked\r\n\r\n"},
        {{false, 1, 200, false, 0, false},
         RESPONSE_CHUNKED,
         "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"},
        {{false, 0, 200, false, 0, true}, RESPONSE_CLOSE, "Connection: close\r\n\r\n"},
        {{false, 0, 200, true, 7, false},
         RESPONSE_LENGTH,
         "Content-Length: 7\r\nConnection: close\r\n\r\n"},
        {{true, 1, 200, true, 5, true}, RESPONSE_HEADERS, "Content-Length: 5\r\n\r\n"},
        {{true, 1, 200, false, 0, true}, RESPONSE_HEADERS, "\r\n"},
        {{false, 1, 304, true, 5, true}, RESPONSE_HEADERS, "Content-Length: 5\r\n\r\n"},
        {{false, 1, 304, false, 0, true}, RESPONSE_HEADERS, "\r\n"},
        {{false, 1, 204, true, 0, true}, RESPONSE_EMPTY, "\r\n"},
        {{false, 1, 204, false, 0, false}, RESPONSE_EMPTY, "Connection: close\r\n\r\n"},
        {{true, 0, 204, false, 0, false}, RESPONSE_EMPTY, "Connection: close\r\n\r\n"},
        {{false, 1, 103, false, 0, false}, RESPONSE_EMPTY, "\r\n"},
        {{false, 1, 200, true, UINT64_MAX, true},
         RESPONSE_LENGTH,
         "Content-Length: 18446744073709551615\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct response_head head;
        char out[256];
        assert_int_equal(response_framing_choose(&cases[i].facts), cases[i].framing);
        assert_int_equal(response_keeps_alive(&cases[i].facts),
                         cases[i].facts.keep_alive && cases[i].framing != RESPONSE_CLOSE);
        response_head_begin(&head, out, sizeof(out), cases[i].facts.status);
        size_t start = head.length;
        int length = response_head_finish(&head, &cases[i].facts);
        assert_int_equal(length, start + strlen(cases[i].text));
        assert_memory_equal(out + start, cases[i].text, strlen(cases[i].text));
    }
}

static const struct response_facts plain = {.request_minor_version = 1,
                                            .status = 201,
                                            .length_known = true,
                                            .length = 2,
                                            .keep_alive = true};

static void heads_fit_or_fail(void **state)
{
    (void)state;
    static const char expected[] =
        "HTTP/1.1 201 Created\r\nETag: \"x\"\r\nX-Empty: \r\nContent-Length: 2\r\n\r\n";
    for (size_t size = 0; size < sizeof(expected); size++) {
        struct response_head head;
        char *out = guard_alloc(size);
        response_head_begin(&head, out, size, 201);
        response_head_field(&head, SLICE_LITERAL("ETag"), SLICE_LITERAL("\"x\""));
        response_head_field(&head, SLICE_LITERAL("X-Empty"), (struct slice){NULL, 0});
        int length = response_head_finish(&head, &plain);
        assert_int_equal(length, size + 1 < sizeof(expected) ? -ENOSPC : (int)size);
        if (length > 0)
            assert_memory_equal(out, expected, size);
        guard_free(out, size);
    }
}

static void no_field_splits_a_head(void **state)
{
    (void)state;
    static const struct slice bad[] = {SLICE_LITERAL("a\r\nb: c"), SLICE_LITERAL("a\nb"),
                                       SLICE_LITERAL("a\rb"), SLICE_LITERAL("a\0b")};
    for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(bad[0]); i++) {
        struct response_head head;
        char out[256];
        struct slice good = SLICE_LITERAL("x");
        response_head_begin(&head, out, sizeof(out), 201);
        response_head_field(&head, i % 2 ? bad[i / 2] : good, i % 2 ? good : bad[i / 2]);
        assert_int_equal(response_head_finish(&head, &plain), -ENOSPC);
    }
}

static void reasons_are_known(void **state)
{
    (void)state;
    assert_string_equal(response_reason(200), "OK");
    assert_string_equal(response_reason(426), "Upgrade Required");
    assert_string_equal(response_reason(299), "");
    struct response_head head;
    char out[64];
    response_head_begin(&head, out, sizeof(out), 299);
    assert_int_equal(head.length, 15);
    assert_memory_equal(out, "HTTP/1.1 299 \r\n", 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framing_follows_from_facts),
        cmocka_unit_test(heads_fit_or_fail),
        cmocka_unit_test(no_field_splits_a_head),
        cmocka_unit_test(reasons_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
