/* Canned answers are complete HTTP/1.1 with the length they say and one JSON document. */
#include "test/harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/canned.h"
#include "common/json/json.h"

static void check(const char *answer, size_t length, const char *status_line, const char *type)
{
    struct json document;
    struct json_token tokens[32];
    struct json_position where;
    assert_true(length < CANNED_MAX);
    assert_int_equal(strncmp(answer, status_line, strlen(status_line)), 0);
    const char *end = memmem(answer, length, "\r\n\r\n", 4);
    assert_non_null(end);
    const char *body = end + 4;
    size_t body_length = length - (size_t)(body - answer);
    char field[64];
    snprintf(field, sizeof(field), "\r\nContent-Length: %zu\r\n", body_length);
    assert_non_null(memmem(answer, length, field, strlen(field)));
    assert_non_null(memmem(answer, length, "\r\nConnection: close\r\n", 21));
    assert_int_equal(json_parse(&document, body, body_length, tokens, 32, &where), 0);
    uint32_t error = json_member(&document, 0, "error");
    assert_true(json_string_equals(&document, json_member(&document, 0, "type"), "error"));
    assert_true(json_string_equals(&document, json_member(&document, error, "type"), type));
}

static void unreachable(void **state)
{
    (void)state;
    char answer[CANNED_MAX] = "";
    check(answer, canned_unreachable(answer, "Connection refused"), "HTTP/1.1 502 Bad Gateway\r\n",
          "codev_broker_unreachable");
    assert_non_null(strstr(answer, "Connection refused"));
}

static void a_long_reason_is_cut(void **state)
{
    (void)state;
    char answer[CANNED_MAX] = "", reason[4096];
    memset(reason, '"', sizeof(reason) - 1); /* each needs a backslash: the longest it can get */
    reason[sizeof(reason) - 1] = '\0';
    check(answer, canned_unreachable(answer, reason), "HTTP/1.1 502 ", "codev_broker_unreachable");
}

static void full(void **state)
{
    (void)state;
    char answer[CANNED_MAX] = "";
    check(answer, canned_full(answer), "HTTP/1.1 503 Service Unavailable\r\n", "codev_relay_full");
    assert_non_null(strstr(answer, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(answer, " 512 connections"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unreachable),
        cmocka_unit_test(a_long_reason_is_cut),
        cmocka_unit_test(full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
