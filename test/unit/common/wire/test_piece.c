/* Pieces: lengths at every split of the bytes, the end, and what comes behind it. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/wire/piece.h"
#include "test/harness/guard.h"

#define END "\0\0"

/* Reads a whole stream in blocks of `block` bytes: the bytes without their lengths. */
static size_t read_in_blocks(struct piece_reader *reader, const char *stream, size_t length,
                             size_t block, char *out)
{
    size_t out_length = 0;
    for (size_t from = 0; from < length; from += block) {
        size_t rest = length - from < block ? length - from : block;
        uint8_t *guarded = guard_copy(stream + from, rest);
        for (size_t at = 0; at < rest;) {
            at += piece_read_head(reader, guarded + at, rest - at);
            size_t piece = reader->left < rest - at ? reader->left : rest - at;
            if (piece == 0)
                break;
            memcpy(out + out_length, guarded + at, piece);
            reader->left -= (uint16_t)piece;
            out_length += piece;
            at += piece;
        }
        guard_free(guarded, rest);
    }
    return out_length;
}

static void a_stream_reads_the_same_in_blocks_of_every_size(void **state)
{
    (void)state;
    static const char stream[] = "\0\5hello\0\1,\0\6 world\0\0";
    const size_t length = sizeof(stream) - 1;
    char out[sizeof(stream)];
    for (size_t block = 1; block <= length; block++) {
        struct piece_reader reader = {0};
        assert_int_equal(read_in_blocks(&reader, stream, length, block, out), 12);
        assert_memory_equal(out, "hello, world", 12);
        assert_true(reader.ended);
    }
    for (size_t cut = 0; cut < length; cut++) { /* without its last byte it has not ended */
        struct piece_reader reader = {0};
        read_in_blocks(&reader, stream, cut, 4, out);
        assert_false(reader.ended);
    }
}

static void lengths_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 255, 256, 32766, PIECE_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct piece_reader reader = {0};
        uint8_t head[PIECE_HEAD];
        piece_write_head(head, lengths[i]);
        assert_int_equal(piece_read_head(&reader, head, sizeof(head)), PIECE_HEAD);
        assert_int_equal(reader.left, lengths[i]);
        assert_false(reader.ended);
    }
}

static void nothing_is_taken_behind_the_end(void **state)
{
    (void)state;
    struct piece_reader reader = {0};
    static const uint8_t stream[] = {0, 0, 0, 1, 'x'};
    assert_int_equal(piece_read_head(&reader, stream, sizeof(stream)), 2 * PIECE_HEAD);
    assert_true(reader.ended);
    assert_false(reader.closed);
    assert_false(piece_reader_is_right(&reader)); /* a piece behind the end */
    reader = (struct piece_reader){0};
    assert_int_equal(piece_read_head(&reader, (const uint8_t *)END END "x", 5), 2 * PIECE_HEAD);
    assert_true(reader.ended && reader.closed && piece_reader_is_right(&reader));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_reads_the_same_in_blocks_of_every_size),
        cmocka_unit_test(lengths_are_written_as_they_are_read),
        cmocka_unit_test(nothing_is_taken_behind_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
