/* Escaping: the result is UTF-8 without a control character, whatever goes in and wherever it is
 * cut. */
#include <string.h>

#include "common/text/escape.h"
#include "common/text/utf8.h"
#include "test/fuzz/fuzz.h"

static void check(const uint8_t *data, size_t size, size_t room, int keep_newlines)
{
    char out[1024];
    size_t length = escape_text(out, room, (const char *)data, size, keep_newlines);
    FUZZ_CHECK(length < room && out[length] == '\0');
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t taken = utf8_decode(out + at, length - at, &code);
        FUZZ_CHECK(taken > 0);
        FUZZ_CHECK(code >= 0x20 || (keep_newlines && (code == '\n' || code == '\t')));
        FUZZ_CHECK(code < 0x7f || code > 0x9f);
        FUZZ_CHECK((code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069));
        at += taken;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, 1024, 0);
    check(data, size, 1 + size % 64, 1);
    return 0;
}
