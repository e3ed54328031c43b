/* The writer: exact text, escapes, every size of a buffer that is too small. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "test/harness/guard.h"

static void write_sample(struct json_writer *writer)
{
    json_write_object_begin(writer);
    json_member_string(writer, "event", "ready");
    json_write_name(writer, "boot_ms");
    json_write_ms(writer, 61249999);
    json_write_name(writer, "checks");
    json_write_array_begin(writer);
    json_write_object_begin(writer);
    json_member_bool(writer, "ok", true);
    json_member_int(writer, "n", INT64_MIN);
    json_write_object_end(writer);
    json_write_null(writer);
    json_write_bool(writer, false);
    json_write_array_begin(writer);
    json_write_array_end(writer);
    json_write_array_end(writer);
    json_write_name(writer, "data");
    json_write_base64(writer, "foobar!", 7);
    json_write_name(writer, "raw");
    json_write_raw(writer, "{\"x\":1}", 7);
    json_write_object_end(writer);
}

static const char sample[] =
    "{\"event\":\"ready\",\"boot_ms\":61.2,\"checks\":[{\"ok\":true,\"n\":-9223372036854775808},"
    "null,false,[]],\"data\":\"Zm9vYmFyIQ==\",\"raw\":{\"x\":1}}\n";

static void writes_the_exact_text(void **state)
{
    (void)state;
    struct json_writer writer;
    size_t size = sizeof(sample); /* with the NUL: just enough */
    char *buffer = guard_alloc(size);
    json_writer_start(&writer, buffer, size);
    write_sample(&writer);
    assert_int_equal(json_writer_finish(&writer, true), strlen(sample));
    assert_string_equal(buffer, sample);
    guard_free(buffer, size);
}

static void a_small_buffer_is_an_error_at_every_size(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof(sample); size++) {
        struct json_writer writer;
        char *buffer = guard_alloc(size);
        json_writer_start(&writer, buffer, size);
        write_sample(&writer);
        assert_int_equal(json_writer_finish(&writer, true), -ENOSPC);
        assert_true(writer.length <= size);
        guard_free(buffer, size);
    }
}

static const char *written(const char *value, size_t length)
{
    static char buffer[256];
    struct json_writer writer;
    char *guarded = guard_copy(value, length);
    json_writer_start(&writer, buffer, sizeof(buffer));
    json_write_bytes(&writer, guarded, length);
    assert_true(json_writer_finish(&writer, false) >= 0);
    guard_free(guarded, length);
    return buffer;
}

static void strings_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(written("", 0), "\"\"");
    assert_string_equal(written("a\"b\\c/", 6), "\"a\\\"b\\\\c/\"");
    assert_string_equal(written("\b\f\n\r\t\x01\x1f\x7f\0z", 10),
                        "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000z\"");
    assert_string_equal(written("\xc3\xa9\xf0\x9f\x98\x80", 6), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
}

static void broken_bytes_become_the_replacement_character(void **state)
{
    (void)state;
    assert_string_equal(written("a\xff"
                                "b",
                                3),
                        "\"a\xef\xbf\xbd"
                        "b\"");
    assert_string_equal(written("\xe2\x82", 2), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_string_equal(written("\xed\xa0\x80", 3), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void every_byte_pair_makes_valid_json(void **state)
{
    (void)state;
    for (int pair = 0; pair < 65536; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)pair}, buffer[64];
        struct json_writer writer;
        struct json document;
        struct json_token token;
        struct json_position where;
        json_writer_start(&writer, buffer, sizeof(buffer));
        json_write_bytes(&writer, bytes, 2);
        int length = json_writer_finish(&writer, true);
        assert_true(length > 0);
        assert_int_equal(json_parse(&document, buffer, (size_t)length, &token, 1, &where), 0);
    }
}

static void milliseconds_are_rounded(void **state)
{
    (void)state;
    static const struct {
        int64_t nanoseconds;
        const char *text;
    } cases[] = {{0, "0.0"},
                 {49999, "0.0"},
                 {50000, "0.1"},
                 {999950000, "1000.0"},
                 {1300000, "1.3"},
                 {-1300000, "-1.3"},
                 {INT64_MAX, "9223372036854.8"},
                 {INT64_MIN, "-9223372036854.8"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char buffer[32];
        struct json_writer writer;
        json_writer_start(&writer, buffer, sizeof(buffer));
        json_write_ms(&writer, cases[i].nanoseconds);
        json_writer_finish(&writer, false);
        assert_string_equal(buffer, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_exact_text),
        cmocka_unit_test(a_small_buffer_is_an_error_at_every_size),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(broken_bytes_become_the_replacement_character),
        cmocka_unit_test(every_byte_pair_makes_valid_json),
        cmocka_unit_test(milliseconds_are_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
