/* gzip in pieces: cut everywhere, damaged everywhere, several members. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-broker/rewrite/rewrite_gzip.h"
#include "test/harness/guard.h"

#define TEXT_LENGTH 30000
#define PACKED_MAX 40000

static char text[TEXT_LENGTH];
static struct rewrite_gzip gzip;

static size_t pack(char *out, const char *bytes, size_t length, int level)
{
    z_stream stream = {0};
    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)length;
    stream.next_out = (Bytef *)out;
    stream.avail_out = PACKED_MAX;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return PACKED_MAX - stream.avail_out;
}

static int make_text(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (size_t i = 0; i < TEXT_LENGTH; i++) {
        random = random * 1103515245 + 12345;
        text[i] = (char)(i < TEXT_LENGTH / 2 ? 'a' : random >> 24);
    }
    return 0;
}

/* Takes one piece, at a guard page. 0 or -EBADMSG. */
static int take(const char *bytes, size_t length, char *out, size_t *out_length)
{
    char *in = guard_copy(bytes, length);
    size_t at = 0;
    ssize_t taken = 0;
    while (taken >= 0 && (at < length || gzip.more)) {
        taken = rewrite_gzip_take(&gzip, (struct slice){in + at, length - at});
        if (taken < 0)
            break;
        at += (size_t)taken;
        assert_true(*out_length + gzip.end - gzip.start <= 2 * TEXT_LENGTH);
        memcpy(out + *out_length, gzip.plain + gzip.start, gzip.end - gzip.start);
        *out_length += gzip.end - gzip.start;
        gzip.start = gzip.end = 0;
    }
    guard_free(in, length);
    return taken < 0 ? (int)taken : 0;
}

static int decode(const char *bytes, size_t length, size_t cut, char *out, size_t *out_length)
{
    *out_length = 0;
    assert_int_equal(rewrite_gzip_start(&gzip), 0);
    int result = take(bytes, cut, out, out_length);
    return result == 0 ? take(bytes + cut, length - cut, out, out_length) : result;
}

static void test_at_every_cut(void **state)
{
    (void)state;
    static char packed[PACKED_MAX], out[2 * TEXT_LENGTH];
    for (int level = 0; level <= 9; level += 9) {
        size_t length = pack(packed, text, TEXT_LENGTH, level), out_length;
        for (size_t cut = 0; cut <= length; cut += cut > 40 && cut + 40 < length ? 101 : 1) {
            assert_int_equal(decode(packed, length, cut, out, &out_length), 0);
            assert_int_equal(out_length, TEXT_LENGTH);
            assert_memory_equal(out, text, TEXT_LENGTH);
            assert_true(rewrite_gzip_is_whole(&gzip));
        }
    }
}

static void test_cut_off(void **state)
{
    (void)state;
    static char packed[PACKED_MAX], out[2 * TEXT_LENGTH];
    size_t length = pack(packed, text, TEXT_LENGTH, 9), out_length;
    for (size_t left = 0; left<length; left += left> 40 && left + 40 < length ? 101 : 1) {
        assert_int_equal(decode(packed, left, left / 2, out, &out_length), 0);
        assert_memory_equal(out, text, out_length);
        assert_int_equal(rewrite_gzip_is_whole(&gzip), left == 0);
    }
}

static void test_spoiled(void **state)
{
    (void)state;
    static char packed[PACKED_MAX], out[2 * TEXT_LENGTH];
    size_t length = pack(packed, text, 1000, 9), out_length;
    packed[length - 6] ^= 1; /* the check sum */
    assert_int_equal(decode(packed, length, 0, out, &out_length), -EBADMSG);
    assert_int_equal(decode("no gzip", 7, 3, out, &out_length), -EBADMSG);
    /* anything else may happen, but for a read or write where none belongs */
    for (size_t at = 0; at < length; at++) {
        packed[at] ^= 0x55;
        (void)decode(packed, length, at, out, &out_length);
        packed[at] ^= 0x55;
    }
}

static void test_members(void **state)
{
    (void)state;
    static char packed[2 * PACKED_MAX + 10], out[2 * TEXT_LENGTH];
    size_t first = pack(packed, text, 1000, 9), out_length;
    size_t length = first + pack(packed + first, text + 1000, TEXT_LENGTH - 1000, 9);
    memset(packed + length, 0, 10);
    for (size_t cut = 0; cut <= length + 10; cut += cut > 60 && cut + 60 < length ? 101 : 1) {
        assert_int_equal(decode(packed, length + 10, cut, out, &out_length), 0);
        assert_int_equal(out_length, TEXT_LENGTH);
        assert_memory_equal(out, text, TEXT_LENGTH);
        assert_true(rewrite_gzip_is_whole(&gzip));
    }
    assert_int_equal(decode(packed, first + 3, first, out, &out_length), 0);
    assert_false(rewrite_gzip_is_whole(&gzip));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_every_cut),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_spoiled),
        cmocka_unit_test(test_members),
    };
    return cmocka_run_group_tests_name("rewrite_gzip", tests, make_text, NULL);
}
