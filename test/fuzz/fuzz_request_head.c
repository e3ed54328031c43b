/* The head parser: byte by byte the result is the same as at once, and accepted heads have the
 * properties that request_head.h states.
 */
#include <string.h>

#include "host-broker/http/request_head.h"
#include "test/fuzz/fuzz.h"

static void check_slice(struct slice slice, const char *bytes, size_t length)
{
    FUZZ_CHECK(slice.length == 0 || (slice.bytes >= bytes && slice.length <= length &&
                                     slice.bytes + slice.length <= bytes + length));
}

static void check_head(const struct request_head *head, const char *bytes, size_t length)
{
    FUZZ_CHECK(length >= 16 && memcmp(bytes + length - 4, "\r\n\r\n", 4) == 0);
    check_slice(head->method, bytes, length);
    check_slice(head->target, bytes, length);
    FUZZ_CHECK(field_is_token(head->method) && head->target.length > 0);
    FUZZ_CHECK(head->minor_version == 1 || (head->minor_version == 0 && !head->keep_alive));
    FUZZ_CHECK(head->host.length > 0 || head->minor_version == 0);
    FUZZ_CHECK(head->framing == BODY_LENGTH || head->content_length == 0);
    FUZZ_CHECK(head->framing != BODY_CHUNKED || head->minor_version == 1);
    FUZZ_CHECK(head->field_count <= REQUEST_FIELDS_MAX);
    size_t hosts = 0, lengths = 0, codings = 0;
    for (size_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->fields[i];
        check_slice(field->name, bytes, length);
        check_slice(field->value, bytes, length);
        FUZZ_CHECK(field_is_token(field->name));
        for (size_t j = 0; j < field->value.length; j++)
            FUZZ_CHECK(field_is_value_byte((unsigned char)field->value.bytes[j]));
        hosts += slice_equal_nocase(field->name, SLICE_LITERAL("host"));
        lengths += slice_equal_nocase(field->name, SLICE_LITERAL("content-length"));
        codings += slice_equal_nocase(field->name, SLICE_LITERAL("transfer-encoding"));
    }
    FUZZ_CHECK(hosts <= 1 && lengths + codings <= 1);
    FUZZ_CHECK(head->framing == (codings ? BODY_CHUNKED : lengths ? BODY_LENGTH : BODY_NONE));
}

static void check_same(const struct request_head *a, const struct request_head *b)
{
    FUZZ_CHECK(a->method.bytes == b->method.bytes && a->method.length == b->method.length);
    FUZZ_CHECK(a->target.bytes == b->target.bytes && a->target.length == b->target.length);
    FUZZ_CHECK(a->host.bytes == b->host.bytes && a->host.length == b->host.length);
    FUZZ_CHECK(a->minor_version == b->minor_version && a->framing == b->framing);
    FUZZ_CHECK(a->content_length == b->content_length && a->keep_alive == b->keep_alive);
    FUZZ_CHECK(a->expect_continue == b->expect_continue && a->upgrade == b->upgrade);
    FUZZ_CHECK(a->field_count == b->field_count);
    FUZZ_CHECK(memcmp(a->fields, b->fields, a->field_count * sizeof(a->fields[0])) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    static struct request_head whole, pieces;
    struct request_scan scan = {0};
    enum request_fault fault = REQUEST_FAULT_NONE, piece_fault = REQUEST_FAULT_NONE;
    memset(&whole, 0, sizeof(whole));
    memset(&pieces, 0, sizeof(pieces));
    ssize_t result = request_head_parse(&whole, bytes, size, &scan, &fault);

    ssize_t piece_result = 0;
    scan = (struct request_scan){0};
    for (size_t given = 1; given <= size && piece_result == 0; given++) {
        piece_result = request_head_parse(&pieces, bytes, given, &scan, &piece_fault);
        FUZZ_CHECK(piece_result <= 0 || (size_t)piece_result == given);
    }
    FUZZ_CHECK(result == piece_result && fault == piece_fault);
    check_same(&whole, &pieces);
    FUZZ_CHECK((result < 0) == (fault != REQUEST_FAULT_NONE));
    if (result > 0)
        check_head(&whole, bytes, (size_t)result);
    else
        FUZZ_CHECK(!whole.method.bytes);
    return 0;
}
