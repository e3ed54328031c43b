/* Prefaces at every length, with every byte wrong in turn, and with a secret that was never set. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/wire/preface.h"
#include "test/harness/guard.h"

#define SECRET_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SECRET_B "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee"

typedef enum preface_result (*check_function)(const char *, size_t, const char *);

static const struct {
    check_function check;
    const char *text;
    size_t length, secret_at;
} kinds[] = {
    {preface_check_broker, "CODEV/1 " SECRET_A "\r\n", PREFACE_BROKER_LENGTH, 8},
    {preface_check_way_in, "CODEV-IN 1 " SECRET_A "\n", PREFACE_WAY_IN_LENGTH, 11},
};

static enum preface_result check(int kind, const char *bytes, size_t length, const char *secret)
{
    char *guarded = guard_copy(bytes, length);
    enum preface_result result = kinds[kind].check(guarded, length, secret);
    guard_free(guarded, length);
    return result;
}

static void writes_the_documented_text(void **state)
{
    (void)state;
    char *broker = guard_alloc(PREFACE_BROKER_LENGTH), *way_in = guard_alloc(PREFACE_WAY_IN_LENGTH);
    preface_write_broker(broker, SECRET_A);
    assert_memory_equal(broker, kinds[0].text, PREFACE_BROKER_LENGTH);
    preface_write_way_in(way_in, SECRET_A);
    assert_memory_equal(way_in, kinds[1].text, PREFACE_WAY_IN_LENGTH);
    guard_free(broker, PREFACE_BROKER_LENGTH);
    guard_free(way_in, PREFACE_WAY_IN_LENGTH);
}

static void decides_at_every_length(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        assert_int_equal(strlen(kinds[kind].text), kinds[kind].length);
        for (size_t length = 0; length < kinds[kind].length; length++)
            assert_int_equal(check(kind, kinds[kind].text, length, SECRET_A), PREFACE_MORE);
        assert_int_equal(check(kind, kinds[kind].text, kinds[kind].length, SECRET_A),
                         PREFACE_RIGHT);
        assert_int_equal(check(kind, kinds[kind].text, kinds[kind].length, SECRET_B),
                         PREFACE_WRONG);
    }
}

static void what_follows_is_not_looked_at(void **state)
{
    (void)state;
    char text[200];
    for (int kind = 0; kind < 2; kind++) {
        memset(text, 0xff, sizeof(text));
        memcpy(text, kinds[kind].text, kinds[kind].length);
        assert_int_equal(check(kind, text, sizeof(text), SECRET_A), PREFACE_RIGHT);
    }
}

static void a_wrong_byte_is_seen_at_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (size_t wrong = 0; wrong < kinds[kind].length; wrong++) {
            char text[128];
            memcpy(text, kinds[kind].text, kinds[kind].length);
            text[wrong] = 'G';
            assert_int_equal(check(kind, text, wrong + 1, SECRET_A), PREFACE_MALFORMED);
            assert_int_equal(check(kind, text, kinds[kind].length, SECRET_A), PREFACE_MALFORMED);
        }
}

static void every_digit_of_the_secret_counts(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < SECRET_HEX_LENGTH; i++) {
            char text[128];
            memcpy(text, kinds[kind].text, kinds[kind].length);
            char *digit = &text[kinds[kind].secret_at + i];
            *digit = *digit == '0' ? '1' : '0';
            assert_int_equal(check(kind, text, kinds[kind].length, SECRET_A), PREFACE_WRONG);
        }
}

static void no_secret_is_never_right(void **state)
{
    (void)state;
    assert_int_equal(check(0, kinds[0].text, kinds[0].length, ""), PREFACE_WRONG);
    assert_int_equal(check(1, kinds[1].text, kinds[1].length, "abc"), PREFACE_WRONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_documented_text),
        cmocka_unit_test(decides_at_every_length),
        cmocka_unit_test(what_follows_is_not_looked_at),
        cmocka_unit_test(a_wrong_byte_is_seen_at_once),
        cmocka_unit_test(every_digit_of_the_secret_counts),
        cmocka_unit_test(no_secret_is_never_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
