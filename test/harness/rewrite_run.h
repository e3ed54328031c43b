/* Runs a document through the rewriter in pieces that end at guard pages, into an output buffer
 * that also ends at one. */
#ifndef TEST_HARNESS_REWRITE_RUN_H
#define TEST_HARNESS_REWRITE_RUN_H

#include "test/harness/unit.h"

#include <stdio.h>

#include "host-broker/rewrite/rewrite.h"
#include "test/harness/guard.h"

#define GUEST "http://127.0.0.1:8788"

static const char rules_text[] = "{\"npm\":\"https://registry.example\","
                                 "\"files\":\"https://files.example/packages/\","
                                 "\"deep\":\"https://files.example/packages/deep\","
                                 "\"six\":\"https://[2001:db8::1]:8443/x\","
                                 "\"lan\":\"http://registry:8081/~me\"}";

static struct rules rules;

static int load_rules(void **state)
{
    (void)state;
    return rules_parse(&rules, "F", rules_text, sizeof(rules_text) - 1, NULL);
}

static inline struct location_context test_context(void)
{
    return (struct location_context){
        .guest_url = GUEST,
        .rules = &rules,
        .rule = &rules.rules[0],
        .origin = &rules.rules[0].url,
    };
}

struct run {
    struct rewrite rewrite;
    char *result;
    size_t size, length;
};

static inline void run_start(struct run *run, enum rewrite_format format, size_t size)
{
    struct location_context context = test_context();
    run->size = size;
    run->result = malloc(size);
    run->length = 0;
    rewrite_start(&run->rewrite, format, &context);
}

static inline void run_add(struct run *run, const char *bytes, size_t length)
{
    assert_true(length <= run->size - run->length);
    memcpy(run->result + run->length, bytes, length);
    run->length += length;
}

/* `room`: the size of the output buffer for each call. */
static inline void run_piece(struct run *run, const char *bytes, size_t length, size_t room)
{
    char *in = guard_copy(bytes, length), *output = guard_alloc(room);
    size_t at = 0;
    while (at < length) {
        struct rewrite_output out = {.bytes = output, .size = room};
        size_t taken = rewrite_take(&run->rewrite, (struct slice){in + at, length - at}, &out);
        assert_true(taken > 0 || out.length > 0);
        run_add(run, output, out.length);
        at += taken;
    }
    guard_free(in, length);
    guard_free(output, room);
}

static inline void run_finish(struct run *run)
{
    char *output = guard_alloc(REWRITE_FINISH_ROOM);
    struct rewrite_output out = {.bytes = output, .size = REWRITE_FINISH_ROOM};
    rewrite_finish(&run->rewrite, &out);
    run_add(run, output, out.length);
    guard_free(output, REWRITE_FINISH_ROOM);
}

static inline void run_free(struct run *run)
{
    free(run->result);
}

/* Cuts the document at `first` and `second` and asserts the result. */
static inline void assert_rewritten(enum rewrite_format format, struct slice in,
                                    struct slice expected, size_t links, const size_t cuts[2])
{
    struct run run;
    run_start(&run, format, in.length + expected.length + 1);
    run_piece(&run, in.bytes, cuts[0], REWRITE_STEP_ROOM);
    run_piece(&run, in.bytes + cuts[0], cuts[1] - cuts[0], 2 * REWRITE_STEP_ROOM);
    run_piece(&run, in.bytes + cuts[1], in.length - cuts[1], REWRITE_STEP_ROOM);
    run_finish(&run);
    if (run.length != expected.length || memcmp(run.result, expected.bytes, run.length) != 0)
        print_error("cut at %zu and %zu:\n%.*s\nbecame\n%.*s\nnot\n%.*s\n", cuts[0], cuts[1],
                    (int)in.length, in.bytes, (int)run.length, run.result, (int)expected.length,
                    expected.bytes);
    assert_int_equal(run.length, expected.length);
    assert_memory_equal(run.result, expected.bytes, run.length);
    assert_int_equal(run.rewrite.stream.links, links);
    run_free(&run);
}

/* Cuts the document at every place, at some pairs of places, and byte by byte. */
static inline void assert_at_every_split(enum rewrite_format format, struct slice in,
                                         struct slice expected, size_t links)
{
    for (size_t i = 0; i <= in.length; i++)
        for (size_t k = 0; k < 3; k++) {
            size_t second = i + k * k * k * k < in.length ? i + k * k * k * k : in.length;
            assert_rewritten(format, in, expected, links, (size_t[2]){i, second});
        }
    struct run run;
    run_start(&run, format, in.length + expected.length + 1);
    for (size_t i = 0; i < in.length; i++)
        run_piece(&run, in.bytes + i, 1, REWRITE_STEP_ROOM);
    run_finish(&run);
    assert_int_equal(run.length, expected.length);
    assert_memory_equal(run.result, expected.bytes, run.length);
    run_free(&run);
}

#endif
