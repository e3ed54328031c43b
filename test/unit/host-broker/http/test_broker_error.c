/* The table of errors, and the form of all answers, parsed by the JSON reader. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "host-broker/http/broker_error.h"
#include "test/harness/guard.h"

static void every_error_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < BROKER_ERROR_COUNT; i++) {
        const struct broker_error_kind *kind = &broker_error_kinds[i];
        assert_true(strncmp(kind->type, "codev_", 6) == 0);
        assert_true(kind->status >= 400 && kind->status <= 599);
        assert_true(kind->message[0] != '\0' && kind->message[strlen(kind->message) - 1] != '.');
        size_t length = strlen(kind->fields);
        assert_true(length == 0 || strcmp(kind->fields + length - 2, "\r\n") == 0);
        assert_int_equal(!!strstr(kind->fields, "Retry-After: "), kind->status == 503);
        assert_int_equal(!!strstr(kind->fields, "Allow: "), kind->status == 405);
        assert_int_equal(!!strstr(kind->fields, "Upgrade: "), kind->status == 426);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(kind->type, broker_error_kinds[j].type);
    }
}

static void member(const struct json *document, uint32_t object, const char *name,
                   const char *expected)
{
    uint32_t index = json_member(document, object, name);
    assert_true(expected ? json_string_equals(document, index, expected) : index == 0);
}

static void read_back(const char *text, int length, const char *type, const char *message,
                      const char *rule)
{
    struct json_token tokens[16];
    struct json document;
    struct json_position where;
    assert_int_equal(text[length - 1], '\n');
    assert_int_equal(json_parse(&document, text, (size_t)length, tokens, 16, &where), 0);
    member(&document, 0, "type", "error");
    uint32_t error = json_member(&document, 0, "error");
    member(&document, error, "type", type);
    member(&document, error, "message", message);
    member(&document, error, "rule", rule);
}

static void bodies_are_json(void **state)
{
    (void)state;
    char body[BROKER_ERROR_BODY_MAX];
    int length = broker_error_body(body, sizeof(body), BROKER_ERROR_NO_RULE, NULL, NULL);
    read_back(body, length, "codev_no_rule", broker_error_kinds[BROKER_ERROR_NO_RULE].message,
              NULL);
    length =
        broker_error_body(body, sizeof(body), BROKER_ERROR_UPSTREAM_TLS, "bad \"cert\"\r\n", "npm");
    read_back(body, length, "codev_upstream_tls", "bad \"cert\"\r\n", "npm");
    assert_string_equal(body, "{\"type\":\"error\",\"error\":{\"type\":\"codev_upstream_tls\","
                              "\"message\":\"bad \\\"cert\\\"\\r\\n\",\"rule\":\"npm\"}}\n");
}

static void the_longest_message_fits(void **state)
{
    (void)state;
    char message[2 * BROKER_ERROR_MESSAGE_MAX + 1], rule[65];
    memset(message, 1, sizeof(message));
    memset(rule, 1, sizeof(rule));
    message[sizeof(message) - 1] = rule[64] = '\0';
    char *out = guard_alloc(BROKER_ERROR_RESPONSE_MAX);
    for (int i = 0; i < BROKER_ERROR_COUNT; i++)
        assert_true(broker_error_response(out, BROKER_ERROR_RESPONSE_MAX, (enum broker_error)i,
                                          message, rule, (struct broker_error_framing){0}) > 0);
    guard_free(out, BROKER_ERROR_RESPONSE_MAX);
}

static void answers_are_whole(void **state)
{
    (void)state;
    char out[BROKER_ERROR_RESPONSE_MAX + 1];
    int length = broker_error_response(out, sizeof(out), BROKER_ERROR_BUSY, NULL, "npm",
                                       (struct broker_error_framing){.keep_alive = true});
    assert_true(length > 0);
    out[length] = '\0';
    char *body = strstr(out, "\r\n\r\n") + 4;
    assert_int_equal(strncmp(out, "HTTP/1.1 503 Service Unavailable\r\n", 34), 0);
    assert_non_null(strstr(out, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(out, "\r\nRetry-After: 1\r\n"));
    assert_null(strstr(out, "Connection:"));
    assert_int_equal(atoi(strstr(out, "\r\nContent-Length: ") + 18), strlen(body));
    read_back(body, (int)strlen(body), "codev_busy", broker_error_kinds[BROKER_ERROR_BUSY].message,
              "npm");

    int head = broker_error_response(out, sizeof(out), BROKER_ERROR_BUSY, NULL, "npm",
                                     (struct broker_error_framing){.head_only = true});
    assert_true(head > 0 && head < length);
    out[head] = '\0';
    assert_non_null(strstr(out, "\r\nConnection: close\r\n"));
    assert_string_equal(out + head - 4, "\r\n\r\n");
    assert_int_equal(broker_error_response(out, (size_t)length - 1, BROKER_ERROR_BUSY, NULL, "npm",
                                           (struct broker_error_framing){.keep_alive = true}),
                     -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_is_complete),
        cmocka_unit_test(bodies_are_json),
        cmocka_unit_test(the_longest_message_fits),
        cmocka_unit_test(answers_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
