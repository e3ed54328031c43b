/* The memory of libcurl behaves as that of malloc, and is wiped when it is freed. */
#include "test/harness/unit.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "host-broker/keys/curl_memory.h"

static void blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    char *a = curl_memory_new(1), *b = curl_memory_new(0), *c = curl_memory_copy("text");
    assert_true(a && b && c && a != b);
    assert_int_equal((uintptr_t)a % _Alignof(max_align_t), 0);
    assert_string_equal(c, "text");
    curl_memory_free(a);
    curl_memory_free(b);
    curl_memory_free(c);
    curl_memory_free(NULL);
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    unsigned char *bytes = curl_memory_new_zeroed(100, 7);
    for (int i = 0; i < 700; i++)
        assert_int_equal(bytes[i], 0);
    curl_memory_free(bytes);
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    assert_null(curl_memory_new(SIZE_MAX));
    assert_null(curl_memory_new_zeroed(SIZE_MAX / 2, 3));
    char *kept = curl_memory_copy("kept");
    assert_null(curl_memory_resize(kept, SIZE_MAX));
    assert_string_equal(kept, "kept");
    curl_memory_free(kept);
}

static void resizing_keeps_the_beginning(void **state)
{
    (void)state;
    char *bytes = curl_memory_resize(NULL, 4);
    memcpy(bytes, "abcd", 4);
    bytes = curl_memory_resize(bytes, 1000);
    assert_memory_equal(bytes, "abcd", 4);
    memset(bytes, 'x', 1000);
    bytes = curl_memory_resize(bytes, 2);
    assert_memory_equal(bytes, "xx", 2);
    curl_memory_free(bytes);
}

/* Small blocks, large ones of which some are kept and some are not, and one that is never kept. */
static void freed_blocks_are_wiped(void **state)
{
    static const size_t sizes[] = {100, 16384, 20000, 32769, 98304};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned char *blocks[150];
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned k = 0; k < 150; k++) {
                blocks[k] = curl_memory_new(sizes[i]);
                assert_non_null(blocks[k]);
                /* malloc may have written pointers: not all is zero */
                assert_null(memmem(blocks[k], sizes[i], "xxxxxxxx", 8));
                memset(blocks[k], 'x', sizes[i]);
            }
            for (unsigned k = 0; k < 150; k++)
                curl_memory_free(blocks[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_apart),
        cmocka_unit_test(zeroed_memory_is_zero),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(resizing_keeps_the_beginning),
        cmocka_unit_test(freed_blocks_are_wiped),
    };
    return curl_memory_start() < 0 || cmocka_run_group_tests(tests, NULL, NULL);
}
