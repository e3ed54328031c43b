/* Targets and the join: the first line is an upstream's URL, the rest a target. The result of the
 * join begins with the prefix, contains the target byte for byte, and has no dot segment in any
 * reading.
 */
#include <stdlib.h>
#include <string.h>

#include "host-broker/http/url_reference.h"
#include "test/fuzz/fuzz.h"

/* A second reading, written apart from the first: decode everything once, then split. */
static void check_no_dot_segment(const char *path)
{
    char plain[16384];
    size_t length = 0;
    for (; *path && *path != '?'; path++) {
        char byte = *path;
        if (byte == '%') {
            char digits[3] = {path[1], path[2], '\0'};
            byte = (char)strtol(digits, NULL, 16);
            path += 2;
        }
        FUZZ_CHECK((unsigned char)byte >= ' ' && byte != 0x7f && length < sizeof(plain) - 1);
        plain[length++] = byte == '\\' ? '/' : byte;
    }
    plain[length] = '\0';
    for (char *rest = plain, *segment; (segment = strsep(&rest, "/"));) {
        segment[strcspn(segment, ";")] = '\0';
        FUZZ_CHECK(strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0);
    }
}

static void check_join(const struct upstream_url *url, const struct target *target)
{
    char joined[16384], host[UPSTREAM_ORIGIN_MAX];
    int length = upstream_url_join(url, target, joined, sizeof(joined));
    FUZZ_CHECK(length > 0 && strlen(joined) == (size_t)length && joined[0] == '/');
    FUZZ_CHECK(memcmp(joined, url->path, url->prefix_length) == 0);
    char behind = joined[url->prefix_length];
    FUZZ_CHECK(behind == '\0' || behind == '/' || behind == '?');
    if (target->rest.length > 0)
        FUZZ_CHECK(memcmp(joined + url->prefix_length, target->rest.bytes, target->rest.length) ==
                   0);
    if (target->has_query && target->query.length > 0)
        FUZZ_CHECK(memcmp(joined + length - target->query.length, target->query.bytes,
                          target->query.length) == 0);
    check_no_dot_segment(joined);
    if (url_reference_undeclared_host(target, host, sizeof(host)) == 0)
        FUZZ_CHECK(!strpbrk(host, "/@\\\r\n<\" "));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *newline = size > 0 && size < 8192 ? memchr(data, '\n', size) : NULL;
    struct upstream_url url;
    struct target target;
    enum target_fault fault = TARGET_FAULT_NONE;
    if (!newline)
        return 0;
    size_t url_length = (size_t)(newline - (const char *)data);
    struct slice text = {newline + 1, size - url_length - 1};
    bool has_url = upstream_url_parse(&url, (const char *)data, url_length, NULL) == 0;
    if (target_parse(&target, SLICE_LITERAL("GET"), text, &fault) != 0) {
        FUZZ_CHECK(fault > TARGET_FAULT_NONE && fault < TARGET_FAULT_COUNT);
        return 0;
    }
    FUZZ_CHECK(text.bytes[0] == '/');
    FUZZ_CHECK(1 + target.name.length + target.rest.length + target.has_query +
                   target.query.length ==
               text.length);
    if (has_url)
        check_join(&url, &target);
    return 0;
}
