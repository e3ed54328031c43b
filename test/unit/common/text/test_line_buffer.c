/* The line buffer: every way of cutting a stream gives the same lines; the limit is exact. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/text/line_buffer.h"
#include "test/harness/guard.h"

/* Feeds at most `piece` bytes at a time and joins the lines with '|'. Returns the last result. */
static int feed(size_t size, const char *stream, size_t length, size_t piece, char *joined)
{
    char *memory = guard_alloc(size), *line;
    struct line_buffer buffer;
    line_buffer_init(&buffer, memory, size);
    size_t at = 0, line_length;
    int result = 0;
    *joined = '\0';
    while (at < length && result == 0) {
        size_t room, count;
        char *to = line_buffer_room(&buffer, &room);
        assert_int_not_equal(room, 0);
        count = length - at < piece ? length - at : piece;
        count = count < room ? count : room;
        memcpy(to, stream + at, count);
        line_buffer_filled(&buffer, count);
        at += count;
        while ((result = line_buffer_take(&buffer, &line, &line_length)) == 1) {
            assert_int_equal(line[line_length], '\0');
            assert_int_equal(strlen(line), line_length);
            strcat(strcat(joined, line), "|");
        }
    }
    guard_free(memory, size);
    return result;
}

static void cutting_makes_no_difference(void **state)
{
    (void)state;
    static const char stream[] = "one\n\ntwo two\nthree\n\n\nfour4\nrest";
    for (size_t size = 10; size < 50; size++)
        for (size_t piece = 1; piece < sizeof(stream); piece++) {
            char joined[100];
            assert_int_equal(feed(size, stream, strlen(stream), piece, joined), 0);
            assert_string_equal(joined, "one||two two|three|||four4|");
        }
}

static void the_limit_includes_the_newline(void **state)
{
    (void)state;
    char joined[100];
    for (size_t piece = 1; piece < 12; piece++) {
        assert_int_equal(feed(10, "a\n123456789\n", 12, piece, joined), 0);
        assert_string_equal(joined, "a|123456789|");
        assert_int_equal(feed(10, "a\n1234567890\n", 13, piece, joined), -EMSGSIZE);
        assert_string_equal(joined, "a|");
    }
}

static void a_full_buffer_has_no_room(void **state)
{
    (void)state;
    char memory[4], *line;
    struct line_buffer buffer;
    size_t room, length;
    line_buffer_init(&buffer, memory, sizeof(memory));
    memcpy(line_buffer_room(&buffer, &room), "abcd", 4);
    assert_int_equal(room, 4);
    line_buffer_filled(&buffer, 4);
    assert_int_equal(line_buffer_take(&buffer, &line, &length), -EMSGSIZE);
    line_buffer_room(&buffer, &room);
    assert_int_equal(room, 0);
    assert_int_equal(line_buffer_take(&buffer, &line, &length), -EMSGSIZE);
}

static void room_may_be_asked_for_while_lines_wait(void **state)
{
    (void)state;
    char memory[16], *line;
    struct line_buffer buffer;
    size_t room, length;
    line_buffer_init(&buffer, memory, sizeof(memory));
    memcpy(line_buffer_room(&buffer, &room), "ab\ncd\nef", 8);
    line_buffer_filled(&buffer, 8);
    assert_int_equal(line_buffer_take(&buffer, &line, &length), 1);
    assert_string_equal(line, "ab");
    *line_buffer_room(&buffer, &room) = '\n';
    assert_int_equal(room, 11);
    line_buffer_filled(&buffer, 1);
    assert_int_equal(line_buffer_take(&buffer, &line, &length), 1);
    assert_string_equal(line, "cd");
    assert_int_equal(line_buffer_take(&buffer, &line, &length), 1);
    assert_string_equal(line, "ef");
    assert_int_equal(line_buffer_take(&buffer, &line, &length), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutting_makes_no_difference),
        cmocka_unit_test(the_limit_includes_the_newline),
        cmocka_unit_test(a_full_buffer_has_no_room),
        cmocka_unit_test(room_may_be_asked_for_while_lines_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
