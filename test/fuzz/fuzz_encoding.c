/* Base64 and hexadecimal: a text that decodes is the one text that its bytes encode to. */
#include <stdlib.h>
#include <string.h>

#include "common/text/encoding.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[4096];
    char text[BASE64_LENGTH(sizeof(bytes)) + 1];
    if (size > sizeof(bytes))
        return 0;
    int length = base64_decode(bytes, sizeof(bytes), (const char *)data, size);
    if (length >= 0) {
        FUZZ_CHECK(base64_encode(text, bytes, (size_t)length) == size);
        FUZZ_CHECK(memcmp(text, data, size) == 0);
    }
    if (hex_decode(bytes, size / 2, (const char *)data, size) == 0) {
        hex_encode(text, bytes, size / 2);
        FUZZ_CHECK(strlen(text) == size && memcmp(text, data, size) == 0);
    }
    size_t encoded = base64_encode(text, data, size);
    FUZZ_CHECK(base64_decode(text, encoded, text, encoded) == (int)size);
    FUZZ_CHECK(memcmp(text, data, size) == 0);
    return 0;
}
