/* The window of unread bytes, and the pool of blocks. */
#include "test/harness/unit.h"

#include <string.h>

#include "host-broker/base/buffer.h"

static void bytes_are_read_in_order(void **state)
{
    (void)state;
    struct failure why;
    struct buffer_pool pool;
    struct buffer buffer = {0};
    assert_int_equal(buffer_pool_open(&pool, 1, &why), 0);
    buffer_take(&buffer, &pool);
    assert_int_equal(buffer_room(&buffer), BUFFER_BLOCK);
    unsigned char in = 0, out = 0;
    for (int round = 0; round < 5000; round++) {
        for (int i = 0; i < 97 && buffer_room(&buffer) > 0; i++, in++)
            buffer_append(&buffer, &in, 1);
        for (int i = 0; i < 89; i++, out++) {
            assert_int_equal((unsigned char)*buffer_front(&buffer), out);
            buffer_consume(&buffer, 1);
        }
    }
    buffer_give_back(&buffer, &pool);
    buffer_pool_close(&pool);
}

static void a_block_can_be_filled_whatever_its_start(void **state)
{
    (void)state;
    static char data[BUFFER_BLOCK];
    struct failure why;
    struct buffer_pool pool;
    struct buffer buffer = {0};
    assert_int_equal(buffer_pool_open(&pool, 1, &why), 0);
    buffer_take(&buffer, &pool);
    buffer_append(&buffer, data, 1000);
    buffer_consume(&buffer, 999);
    memset(data, 'x', sizeof(data));
    buffer_append(&buffer, data, BUFFER_BLOCK - 1);
    assert_int_equal(buffer_length(&buffer), BUFFER_BLOCK);
    assert_int_equal(buffer_room(&buffer), 0);
    assert_memory_equal(buffer_front(&buffer) + 1, data, BUFFER_BLOCK - 1);
    buffer_give_back(&buffer, &pool);
    buffer_pool_close(&pool);
}

static void blocks_are_distinct_and_reused(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    struct failure why;
    struct buffer_pool pool;
    struct buffer buffers[COUNT] = {0};
    assert_int_equal(buffer_pool_open(&pool, COUNT, &why), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            buffer_take(&buffers[i], &pool);
            memset(buffers[i].bytes, i, BUFFER_BLOCK);
        }
        assert_int_equal(pool.unused_count, 0);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal((unsigned char)buffers[i].bytes[0], i);
            assert_int_equal((unsigned char)buffers[i].bytes[BUFFER_BLOCK - 1], i);
        }
        for (int i = 0; i < COUNT; i++)
            buffer_give_back(&buffers[i], &pool);
        assert_int_equal(pool.unused_count, COUNT);
        assert_null(buffers[0].bytes);
        assert_int_equal(buffer_room(&buffers[0]), 0);
    }
    buffer_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_read_in_order),
        cmocka_unit_test(a_block_can_be_filled_whatever_its_start),
        cmocka_unit_test(blocks_are_distinct_and_reused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
