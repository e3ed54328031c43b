/* Bytes looked at many at a time are found as they are one by one: every byte at every place, and random runs. */
#include "host-broker/base/byte_block.h"

#include "test/harness/unit.h"

static bool is_in(char byte, const char *set)
{
    return byte != '\0' && strchr(set, byte) != NULL;
}

static bool is_letter(char byte)
{
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'z';
}

static bool is_special(char byte)
{
    return (unsigned char)byte < ' ' || byte == '\\';
}

static bool is_plain(char byte)
{
    return byte > ' ' && byte < 0x7f && !is_in(byte, "#&?\\");
}

static bool is_simple(char byte)
{
    return is_letter(byte) || (byte >= '0' && byte <= '9') || is_in(byte, "!+-./:@_~");
}

static void check_runs(const char *bytes)
{
    size_t text = 0, white = 0, name = 0, plain = 0;
    while (text < 2 * BYTE_RUN && bytes[text] != '"' && !is_special(bytes[text]))
        text++;
    while (white < BYTE_RUN && is_in(bytes[white], " \t\r\n"))
        white++;
    while (name < BYTE_RUN && (is_letter(bytes[name]) || bytes[name] == '-'))
        name++;
    assert_int_equal(byte_run_text(bytes), text);
    assert_int_equal(byte_run_white(bytes), white);
    assert_int_equal(byte_run_name(bytes), name);
    for (int slash = 0; slash < 2; slash++) {
        bool expected = true, simple = true;
        char before = slash ? '/' : 'a';
        for (plain = 0; plain < BYTE_RUN && is_plain(bytes[plain]); plain++) {
            char in_front = plain > 0 ? bytes[plain - 1] : before;
            expected =
                expected && is_simple(bytes[plain]) && !(bytes[plain] == '.' && in_front == '/');
        }
        assert_int_equal(byte_run_link(bytes, before, &simple), plain);
        assert_int_equal(simple, expected);
    }
}

static void check_block(const char *bytes, size_t length)
{
    struct byte_block expected = {0}, found = byte_block_find((struct slice){bytes, length});
    uint64_t between = 0;
    bool inside = false;
    for (size_t at = 0; at < length && at < BYTE_BLOCK; at++) {
        expected.quotes |= (uint64_t)(bytes[at] == '"') << at;
        expected.specials |= (uint64_t)is_special(bytes[at]) << at;
        expected.brackets |= (uint64_t)is_in(bytes[at], "{}[]") << at;
    }
    for (size_t at = 0; at < BYTE_BLOCK; at++) {
        inside = inside != ((expected.quotes >> at & 1) != 0);
        between |= (uint64_t)inside << at;
    }
    assert_true(found.quotes == expected.quotes);
    assert_true(found.specials == expected.specials);
    assert_true(found.brackets == expected.brackets);
    assert_true(byte_block_between(found.quotes) == between);
}

static void test_each_byte_at_each_place(void **state)
{
    (void)state;
    static const char grounds[] = {'a', '-', '/', ' ', '{'};
    for (size_t ground = 0; ground < sizeof(grounds); ground++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            for (size_t at = 0; at < BYTE_BLOCK; at++) {
                char bytes[BYTE_BLOCK];
                memset(bytes, grounds[ground], sizeof(bytes));
                bytes[at] = (char)byte;
                check_block(bytes, sizeof(bytes));
                if (at < 2 * BYTE_RUN)
                    check_runs(bytes);
            }
        }
    }
}

static void test_mixed_bytes(void **state)
{
    (void)state;
    static const char letters[] = "aZ09-./:@_!+~ \t\r\n\"\\{}[]#&?%'\x7f\x80\xff\x01";
    uint32_t random = 1;
    for (unsigned round = 0; round < 20000; round++) {
        char bytes[BYTE_BLOCK];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = letters[(random >> 16) % (sizeof(letters) - 1)];
        }
        check_runs(bytes);
        check_block(bytes, 1 + round % BYTE_BLOCK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_byte_at_each_place),
        cmocka_unit_test(test_mixed_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
