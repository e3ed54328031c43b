/* The DNS stub's answers byte for byte, every cut of a query, and names at their limits. */
#include "test/harness/unit.h"

#include <string.h>

#include "agent/dns.h"
#include "test/harness/guard.h"

#define HEADER "\x1c\x2f\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define QUESTION "\7example\3com\0\0\1\0\1"

static const char query[] = HEADER QUESTION;
#define QUERY_LENGTH (sizeof(query) - 1)

/* Answers a guarded copy of the message into guarded memory of `room` bytes. */
static size_t answer(const void *message, size_t length, uint8_t out[DNS_ANSWER_MAX], size_t room)
{
    uint8_t *guarded = guard_copy(message, length), *into = guard_alloc(room);
    size_t got = dns_answer(guarded, length, into, room);
    memcpy(out, into, got);
    guard_free(guarded, length);
    guard_free(into, room);
    return got;
}

static void knows_no_name(void **state)
{
    (void)state;
    uint8_t out[DNS_ANSWER_MAX];
    assert_int_equal(answer(query, QUERY_LENGTH, out, sizeof(out)), QUERY_LENGTH);
    assert_memory_equal(out, "\x1c\x2f\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION,
                        QUERY_LENGTH);
}

static void leaves_out_what_follows_the_question(void **state)
{
    (void)state;
    static const char with_option[] = HEADER QUESTION "\0\0\x29\x04\xd0\0\0\0\0\0\0";
    uint8_t out[DNS_ANSWER_MAX];
    assert_int_equal(answer(with_option, sizeof(with_option) - 1, out, sizeof(out)), QUERY_LENGTH);
}

static void every_cut_is_a_format_error_or_nothing(void **state)
{
    (void)state;
    uint8_t out[DNS_ANSWER_MAX];
    for (size_t length = 0; length < QUERY_LENGTH; length++) {
        size_t got = answer(query, length, out, sizeof(out));
        assert_int_equal(got, length < DNS_HEADER_LENGTH ? 0 : DNS_HEADER_LENGTH);
        if (got > 0)
            assert_memory_equal(out, "\x1c\x2f\x81\x81\0\0\0\0\0\0\0\0", DNS_HEADER_LENGTH);
    }
}

static void too_little_room_is_no_answer(void **state)
{
    (void)state;
    uint8_t out[DNS_ANSWER_MAX];
    for (size_t room = 0; room < QUERY_LENGTH; room++)
        assert_int_equal(answer(query, QUERY_LENGTH, out, room), 0);
    assert_int_equal(answer(query, QUERY_LENGTH, out, QUERY_LENGTH), QUERY_LENGTH);
}

static void a_response_gets_no_answer(void **state)
{
    (void)state;
    uint8_t out[DNS_ANSWER_MAX];
    char response[QUERY_LENGTH];
    memcpy(response, query, sizeof(response));
    response[2] |= (char)0x80;
    assert_int_equal(answer(response, sizeof(response), out, sizeof(out)), 0);
}

static void another_opcode_is_not_implemented(void **state)
{
    (void)state;
    uint8_t out[DNS_ANSWER_MAX];
    char notify[QUERY_LENGTH];
    memcpy(notify, query, sizeof(notify));
    notify[2] = 0x20;
    assert_int_equal(answer(notify, sizeof(notify), out, sizeof(out)), DNS_HEADER_LENGTH);
    assert_memory_equal(out, "\x1c\x2f\xa0\x84\0\0\0\0\0\0\0\0", DNS_HEADER_LENGTH);
}

/* A name of `length` bytes with its final 0, in labels of at most `label` bytes; then type and
 * class. */
static size_t make_query(char *out, size_t length, size_t label)
{
    size_t at = DNS_HEADER_LENGTH;
    memcpy(out, query, DNS_HEADER_LENGTH);
    for (size_t left = length - 1; left > 0;) {
        size_t here = left - 1 < label ? left - 1 : label;
        out[at] = (char)here;
        memset(out + at + 1, 'x', here);
        at += 1 + here;
        left -= 1 + here;
    }
    memcpy(out + at, "\0\0\1\0\1", 5);
    return at + 5;
}

static void names_at_their_limits(void **state)
{
    (void)state;
    static const struct {
        size_t name, label, answer;
    } cases[] = {
        {1, 63, 1},     {DNS_NAME_MAX, 63, DNS_NAME_MAX}, {DNS_NAME_MAX + 1, 62, 0}, /* too long */
        {66, 64, 0}, /* the length 64 is not a label */
        {255, 63, 255},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char message[400];
        uint8_t out[DNS_ANSWER_MAX];
        size_t length = make_query(message, cases[i].name, cases[i].label);
        size_t expected = DNS_HEADER_LENGTH + (cases[i].answer ? cases[i].answer + 4 : 0);
        assert_int_equal(answer(message, length, out, sizeof(out)), expected);
        assert_int_equal(out[3] & 15, cases[i].answer ? 3 : 1);
    }
}

static void only_one_question(void **state)
{
    (void)state;
    static const char counts[][2] = {{0, 0}, {0, 2}, {1, 0}, {1, 1}, {(char)255, (char)255}};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char message[QUERY_LENGTH];
        uint8_t out[DNS_ANSWER_MAX];
        memcpy(message, query, sizeof(message));
        memcpy(message + 4, counts[i], 2);
        assert_int_equal(answer(message, sizeof(message), out, sizeof(out)), DNS_HEADER_LENGTH);
        assert_int_equal(out[3] & 15, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_no_name),
        cmocka_unit_test(leaves_out_what_follows_the_question),
        cmocka_unit_test(every_cut_is_a_format_error_or_nothing),
        cmocka_unit_test(too_little_room_is_no_answer),
        cmocka_unit_test(a_response_gets_no_answer),
        cmocka_unit_test(another_opcode_is_not_implemented),
        cmocka_unit_test(names_at_their_limits),
        cmocka_unit_test(only_one_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
