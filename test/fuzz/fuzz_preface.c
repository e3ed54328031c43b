/* Prefaces: a verdict, once final, does not change with more bytes, and only the right text is
 * right. */
#include <string.h>

#include "common/wire/preface.h"
#include "test/fuzz/fuzz.h"

#define SECRET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

typedef enum preface_result (*check_function)(const char *, size_t, const char *);

static void check(check_function function, const char *bytes, size_t size, const char *right,
                  size_t right_length)
{
    enum preface_result last = PREFACE_MORE;
    for (size_t length = 0; length <= size && length <= 128; length++) {
        enum preface_result now = function(bytes, length, SECRET);
        FUZZ_CHECK(last == PREFACE_MORE || now == last);
        FUZZ_CHECK(length >= right_length || now == PREFACE_MORE || now == PREFACE_MALFORMED);
        FUZZ_CHECK(length < right_length || now != PREFACE_MORE);
        int equal = length >= right_length && memcmp(bytes, right, right_length) == 0;
        FUZZ_CHECK((now == PREFACE_RIGHT) == equal);
        last = now;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char broker[PREFACE_BROKER_LENGTH], way_in[PREFACE_WAY_IN_LENGTH];
    preface_write_broker(broker, SECRET);
    preface_write_way_in(way_in, SECRET);
    check(preface_check_broker, (const char *)data, size, broker, sizeof(broker));
    check(preface_check_way_in, (const char *)data, size, way_in, sizeof(way_in));
    return 0;
}
