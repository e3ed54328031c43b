/* The body decoder at every split: the content equals that of an independent decoder, no byte after
 * the body is taken, and each fault is found.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/http/body_decoder.h"
#include "host-broker/http/chunk_encoder.h"
#include "test/harness/guard.h"

struct outcome {
    char content[65536];
    size_t content_length, taken;
    bool done;
    enum body_fault fault;
};

/* Gives at most `step` bytes at a time, each piece at a guard page. */
static struct outcome *decode(enum body_framing framing, uint64_t length, const char *bytes,
                              size_t size, size_t step)
{
    static struct outcome outcome;
    struct body_decoder decoder;
    memset(&outcome, 0, sizeof(outcome));
    body_decoder_start(&decoder, framing, length);
    while (!body_decoder_done(&decoder) && outcome.taken < size) {
        size_t piece = size - outcome.taken < step ? size - outcome.taken : step;
        char *guarded = guard_copy(bytes + outcome.taken, piece);
        struct slice content;
        ssize_t taken = body_decoder_take(&decoder, guarded, piece, &content);
        if (content.length > 0)
            memcpy(outcome.content + outcome.content_length, content.bytes, content.length);
        outcome.content_length += content.length;
        guard_free(guarded, piece);
        if (taken < 0) {
            assert_int_equal(taken, -EBADMSG);
            assert_int_equal(body_decoder_take(&decoder, "", 0, &content), -EBADMSG);
            break;
        }
        assert_true(taken > 0 && (size_t)taken <= piece);
        outcome.taken += (size_t)taken;
    }
    outcome.done = body_decoder_done(&decoder);
    outcome.fault = decoder.fault;
    return &outcome;
}

static void length_counts_bytes(void **state)
{
    (void)state;
    static const char text[] = "hello, next request";
    for (size_t length = 0; length < sizeof(text); length++) {
        for (size_t step = 1; step < sizeof(text); step++) {
            struct outcome *outcome = decode(BODY_LENGTH, length, text, sizeof(text) - 1, step);
            assert_true(outcome->done);
            assert_int_equal(outcome->taken, length);
            assert_memory_equal(outcome->content, text, length);
        }
    }
    struct outcome *none = decode(BODY_NONE, 5, text, sizeof(text) - 1, 3);
    assert_true(none->done && none->taken == 0);
    assert_false(decode(BODY_LENGTH, 100, text, sizeof(text) - 1, 7)->done);
}

static void chunks_are_joined(void **state)
{
    (void)state;
    static const struct {
        const char *text, *content;
    } cases[] = {
        {"0\r\n\r\n", ""},
        {"000\r\n\r\n", ""},
        {"5\r\nhello\r\n0\r\n\r\n", "hello"},
        {"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"},
        {"a\r\n0123456789\r\n00000000000000B\r\n0123456789a\r\n0\r\n\r\n", "01234567890123456789a"},
        {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n"},
        {"1;a\r\nx\r\n0;b=c;d=\"e \\\" f\"; \t g\r\n\r\n", "x"},
        {"1\r\nx\r\n0\r\nA: b\r\nC:\r\n\r\n", "x"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[256];
        int length = snprintf(text, sizeof(text), "%sGET /next", cases[i].text);
        for (size_t step = 1; step <= (size_t)length; step++) {
            struct outcome *outcome = decode(BODY_CHUNKED, 0, text, (size_t)length, step);
            assert_true(outcome->done);
            assert_int_equal(outcome->taken, strlen(cases[i].text));
            assert_int_equal(outcome->content_length, strlen(cases[i].content));
            assert_memory_equal(outcome->content, cases[i].content, outcome->content_length);
        }
        for (size_t cut = 0; cut < strlen(cases[i].text); cut++) {
            struct outcome *outcome = decode(BODY_CHUNKED, 0, text, cut, cut + 1);
            assert_true(!outcome->done && outcome->fault == BODY_FAULT_NONE);
        }
    }
}

static void malformed_chunks_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum body_fault fault;
    } cases[] = {
        {"\r\n", BODY_FAULT_CHUNK_SIZE},
        {"g\r\n", BODY_FAULT_CHUNK_SIZE},
        {" 1\r\n", BODY_FAULT_CHUNK_SIZE},
        {"1 \r\n", BODY_FAULT_CHUNK_SIZE},
        {"1 ;a\r\n", BODY_FAULT_CHUNK_SIZE},
        {"+1\r\n", BODY_FAULT_CHUNK_SIZE},
        {"-1\r\n", BODY_FAULT_CHUNK_SIZE},
        {"0x1\r\n", BODY_FAULT_CHUNK_SIZE},
        {"1\n", BODY_FAULT_CHUNK_SIZE},
        {"1\rx", BODY_FAULT_CHUNK_SIZE},
        {"1_0\r\n", BODY_FAULT_CHUNK_SIZE},
        {";a\r\n", BODY_FAULT_CHUNK_SIZE},
        {"8000000000000000\r\n", BODY_FAULT_CHUNK_SIZE},
        {"ffffffffffffffff\r\n", BODY_FAULT_CHUNK_SIZE},
        {"10000000000000001\r\n", BODY_FAULT_CHUNK_SIZE},
        {"00000000000000001\r\n", BODY_FAULT_CHUNK_SIZE},
        {"1;\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;=\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a=\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a b\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a=\"b\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a=\"b\\\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1;a=\"b\"c\r\n", BODY_FAULT_CHUNK_EXTENSION},
        {"1\r\nxx", BODY_FAULT_CHUNK_END},
        {"1\r\nx\n", BODY_FAULT_CHUNK_END},
        {"1\r\nx\rx", BODY_FAULT_CHUNK_END},
        {"1\r\nx\r\n\r\n", BODY_FAULT_CHUNK_SIZE},
        {"0\r\n\n", BODY_FAULT_TRAILER},
        {"0\r\n\rx", BODY_FAULT_TRAILER},
        {"0\r\n A: b\r\n", BODY_FAULT_TRAILER},
        {"0\r\nA\r\n", BODY_FAULT_TRAILER},
        {"0\r\nA : b\r\n", BODY_FAULT_TRAILER},
        {"0\r\nA: \x01\r\n", BODY_FAULT_TRAILER},
        {"0\r\nA: b\n", BODY_FAULT_TRAILER},
        {"0\r\nA: b\rx", BODY_FAULT_TRAILER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t length = strlen(cases[i].text);
        for (size_t step = 1; step <= length; step++)
            if (decode(BODY_CHUNKED, 0, cases[i].text, length, step)->fault != cases[i].fault)
                fail_msg("%s at steps of %zu", cases[i].text, step);
    }
}

static void overhead_is_limited(void **state)
{
    (void)state;
    static char text[3 * BODY_EXTENSIONS_MAX];
    size_t length = 0;
    while (length < sizeof(text) - 100)
        length += (size_t)sprintf(text + length, "1;aaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n");
    struct outcome *outcome = decode(BODY_CHUNKED, 0, text, length, 4096);
    assert_int_equal(outcome->fault, BODY_FAULT_TOO_LARGE);

    length = (size_t)sprintf(text, "0\r\n");
    while (length < BODY_TRAILERS_MAX + 100)
        length += (size_t)sprintf(text + length, "A: bbbbbbbbbbbbbbbbbbbbbbbbb\r\n");
    assert_int_equal(decode(BODY_CHUNKED, 0, text, length, 4096)->fault, BODY_FAULT_TOO_LARGE);
}

static void the_encoder_is_understood(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {1, 15, 16, 255, 256, 4096, 65535};
    static char text[70000], content[65536];
    memset(content, 'c', sizeof(content));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct field trailer = {SLICE_LITERAL("X-Sum"), SLICE_LITERAL("1")};
        size_t length = chunk_head_write(text, lengths[i]);
        memcpy(text + length, content, lengths[i]);
        length += lengths[i];
        memcpy(text + length, CHUNK_TAIL, 2);
        length += 2;
        int last = chunk_last_write(text + length, sizeof(text) - length, &trailer, i % 2);
        assert_true(last > 0);
        struct outcome *outcome = decode(BODY_CHUNKED, 0, text, length + (size_t)last, 70000);
        assert_true(outcome->done);
        assert_int_equal(outcome->content_length, lengths[i]);
    }
    char head[CHUNK_HEAD_MAX];
    assert_int_equal(chunk_head_write(head, UINT64_MAX), CHUNK_HEAD_MAX);
    assert_memory_equal(head, "ffffffffffffffff\r\n", CHUNK_HEAD_MAX);
    assert_int_equal(chunk_last_write(head, 5, NULL, 0), 5);
    assert_memory_equal(head, CHUNK_LAST, 5);
    assert_int_equal(chunk_last_write(head, 4, NULL, 0), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(length_counts_bytes),          cmocka_unit_test(chunks_are_joined),
        cmocka_unit_test(malformed_chunks_are_refused), cmocka_unit_test(overhead_is_limited),
        cmocka_unit_test(the_encoder_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
