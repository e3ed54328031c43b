/* The Link header and entity tags: what is written fits its limits, nothing splits a line, a tag
 * comes back as it was, and a value without a rule's address is unchanged.
 */
#include <errno.h>

#include "host-broker/http/field.h"
#include "host-broker/rewrite/rewrite_etag.h"
#include "host-broker/rules/link_field.h"
#include "test/fuzz/fuzz_rewrite.h"

#define MARK "0123456789abcdef"

static bool is_value(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!field_is_value_byte(data[i]))
            return false;
    return true;
}

static void check_link(struct slice value)
{
    static char out[FUZZ_OUTPUT_MAX];
    struct location_context context = fuzz_context();
    context.path = SLICE_LITERAL("/p/q/r?s");
    int length = link_field_rewrite(out, sizeof(out), value, &context);
    FUZZ_CHECK(length >= 0 && is_value((const uint8_t *)out, (size_t)length));
    if (!memmem(out, (size_t)length, GUEST, strlen(GUEST)))
        FUZZ_CHECK(slice_equal((struct slice){out, (size_t)length}, value));
}

static void check_tag(struct slice value)
{
    static char out[REWRITE_MATCH_MAX], tag[REWRITE_ETAG_MAX];
    struct rewrite_match match;
    int length = rewrite_etag_restore(out, value, MARK, &match);
    FUZZ_CHECK(length >= -EINVAL && length < REWRITE_MATCH_MAX);
    length = rewrite_etag_derive(tag, value, MARK);
    if (length <= 0)
        return;
    FUZZ_CHECK(is_value((const uint8_t *)tag, (size_t)length));
    length = rewrite_etag_restore(out, (struct slice){tag, (size_t)length}, MARK, &match);
    FUZZ_CHECK(length >= 0 && match.restored && !match.dropped);
    FUZZ_CHECK(slice_equal((struct slice){out, (size_t)length}, value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > REWRITE_MATCH_MAX || !is_value(data, size))
        return 0;
    struct slice value = {(const char *)data, size};
    check_link(value);
    check_tag(value);
    return 0;
}
