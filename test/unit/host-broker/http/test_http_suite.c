/* The head parser, body decoder and target check against raw requests that others wrote: llhttp's
 * and lighttpd's, whole and byte by byte. The suite is not part of this tree; it is searched in
 * $CODEV_SUITES, and without it the test is skipped and says so.
 *
 * accept: the first request is read to its end without a fault; a target that gets an answer of its
 * own (absolute-form, CONNECT) counts as read. reject: a fault that is answered with 4xx or 5xx.
 * incomplete: more bytes are needed, or a fault. either: anything, but the same in both ways.
 */
#include "test/harness/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/text/encoding.h"
#include "host-broker/http/body_decoder.h"
#include "host-broker/http/request_head.h"
#include "host-broker/http/target.h"
#include "test/harness/guard.h"

#define LINE_MAX_BYTES (1024 * 1024)
#define CASES 430

enum verdict { VERDICT_ACCEPT, VERDICT_REJECT, VERDICT_INCOMPLETE, VERDICT_EITHER, VERDICT_COUNT };

static const char *const verdict_names[] = {"accept", "reject", "incomplete", "either"};

static enum verdict judge_target(const struct request_head *head)
{
    struct target target;
    enum target_fault fault;
    if (target_parse(&target, head->method, head->target, &fault) == 0)
        return VERDICT_ACCEPT;
    return target_fault_kinds[fault].error == BROKER_ERROR_BAD_REQUEST ? VERDICT_REJECT
                                                                       : VERDICT_ACCEPT;
}

/* The head, from ever longer beginnings; *length is then the head's. */
static enum verdict judge_head(const char *bytes, size_t size, size_t step,
                               struct request_head *head, size_t *length)
{
    struct request_scan scan = {0};
    enum request_fault fault;
    for (size_t given = 0; given < size;) {
        given = given + step < size ? given + step : size;
        ssize_t result = request_head_parse(head, bytes, given, &scan, &fault);
        if (result < 0)
            return VERDICT_REJECT;
        *length = (size_t)result;
        if (result > 0)
            return judge_target(head);
    }
    return VERDICT_INCOMPLETE;
}

static enum verdict judge_body(const struct request_head *head, const char *bytes, size_t size,
                               size_t step)
{
    struct body_decoder decoder;
    size_t taken = 0;
    body_decoder_start(&decoder, head->framing, head->content_length);
    while (!body_decoder_done(&decoder) && taken < size) {
        struct slice content;
        size_t piece = size - taken < step ? size - taken : step;
        ssize_t result = body_decoder_take(&decoder, bytes + taken, piece, &content);
        if (result < 0)
            return VERDICT_REJECT;
        taken += (size_t)result;
    }
    return body_decoder_done(&decoder) ? VERDICT_ACCEPT : VERDICT_INCOMPLETE;
}

static enum verdict judge(const char *bytes, size_t size, size_t step)
{
    struct request_head head;
    size_t length;
    char *guarded = guard_copy(bytes, size);
    enum verdict verdict = judge_head(guarded, size, step, &head, &length);
    if (verdict == VERDICT_ACCEPT)
        verdict = judge_body(&head, guarded + length, size - length, step);
    guard_free(guarded, size);
    return verdict;
}

static bool agrees(const char *expected, enum verdict got)
{
    if (strcmp(expected, "either") == 0)
        return true;
    if (strcmp(expected, "incomplete") == 0)
        return got == VERDICT_INCOMPLETE || got == VERDICT_REJECT;
    return strcmp(expected, verdict_names[got]) == 0;
}

static void text_of(const struct json *document, const char *name, char *out, size_t size)
{
    assert_true(json_string(document, json_member(document, 0, name), out, size) >= 0);
}

/* Judges one line of the suite; true when both ways agree with it. */
static bool judge_case(const char *line, size_t length, size_t *counts)
{
    static struct json_token tokens[256];
    static char raw[LINE_MAX_BYTES];
    char id[256], expected[32];
    struct json document;
    struct json_position where;

    assert_int_equal(json_parse(&document, line, length, tokens, 256, &where), 0);
    text_of(&document, "id", id, sizeof(id));
    text_of(&document, "verdict", expected, sizeof(expected));
    text_of(&document, "raw_b64", raw, sizeof(raw));
    int size = base64_decode(raw, sizeof(raw), raw, strlen(raw));
    assert_true(size > 0);
    enum verdict whole = judge(raw, (size_t)size, (size_t)size);
    enum verdict bytewise = judge(raw, (size_t)size, 1);
    for (int i = 0; i < VERDICT_COUNT; i++)
        counts[i] += strcmp(expected, verdict_names[i]) == 0;
    if (whole == bytewise && agrees(expected, whole))
        return true;
    print_error("%s: expected %s, whole %s, byte by byte %s\n", id, expected, verdict_names[whole],
                verdict_names[bytewise]);
    return false;
}

static void every_case_is_judged_right(void **state)
{
    (void)state;
    static char line[LINE_MAX_BYTES];
    char path[4096];
    const char *root = getenv("CODEV_SUITES");
    snprintf(path, sizeof(path), "%s/http1/cases.jsonl", root ? root : "CODEV_SUITES");
    FILE *file = fopen(path, "r");
    if (!file) {
        print_message("skipped: no %s (CODEV_SUITES names its folder)\n", path);
        skip();
    }
    size_t counts[VERDICT_COUNT] = {0}, cases = 0, wrong = 0;
    while (fgets(line, sizeof(line), file)) {
        cases++;
        wrong += !judge_case(line, strlen(line), counts);
    }
    fclose(file);
    print_message("%zu cases, whole and byte by byte: %zu accept, %zu reject, %zu incomplete, "
                  "%zu either; %zu wrong\n",
                  cases, counts[VERDICT_ACCEPT], counts[VERDICT_REJECT], counts[VERDICT_INCOMPLETE],
                  counts[VERDICT_EITHER], wrong);
    assert_int_equal(wrong, 0);
    assert_int_equal(cases, CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_is_judged_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
