/* The body decoder: the first byte chooses the framing, the second the length or the size of
 * pieces. Pieces of any size give the content, the end and the fault that one piece gives, and the
 * content with new framing decodes to itself.
 */
#include <string.h>

#include "host-broker/http/body_decoder.h"
#include "host-broker/http/chunk_encoder.h"
#include "test/fuzz/fuzz.h"

#define CONTENT_MAX 8192

struct outcome {
    char content[CONTENT_MAX];
    size_t length, taken;
    bool done;
    enum body_fault fault;
};

static void decode(struct outcome *outcome, enum body_framing framing, uint64_t length,
                   const char *bytes, size_t size, size_t step)
{
    struct body_decoder decoder;
    body_decoder_start(&decoder, framing, length);
    memset(outcome, 0, sizeof(*outcome));
    while (!body_decoder_done(&decoder) && outcome->taken < size) {
        size_t piece = size - outcome->taken < step ? size - outcome->taken : step;
        struct slice content;
        ssize_t taken = body_decoder_take(&decoder, bytes + outcome->taken, piece, &content);
        if (content.length > 0)
            memcpy(outcome->content + outcome->length, content.bytes, content.length);
        outcome->length += content.length;
        if (taken < 0)
            break;
        FUZZ_CHECK(taken > 0 && (size_t)taken <= piece && content.length <= (size_t)taken);
        outcome->taken += (size_t)taken;
    }
    outcome->done = body_decoder_done(&decoder);
    outcome->fault = decoder.fault;
}

static void check_round_trip(const struct outcome *outcome)
{
    static char text[CONTENT_MAX + 64];
    static struct outcome again;
    size_t length = 0;
    if (outcome->length > 0) {
        length = chunk_head_write(text, outcome->length);
        memcpy(text + length, outcome->content, outcome->length);
        length += outcome->length;
        memcpy(text + length, CHUNK_TAIL CHUNK_LAST, 7);
        length += 7;
    } else {
        memcpy(text, CHUNK_LAST, 5);
        length = 5;
    }
    decode(&again, BODY_CHUNKED, 0, text, length, length);
    FUZZ_CHECK(again.done && again.taken == length && again.length == outcome->length);
    FUZZ_CHECK(memcmp(again.content, outcome->content, again.length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct outcome whole, pieces;
    if (size < 2 || size > CONTENT_MAX)
        return 0;
    enum body_framing framing = (enum body_framing)(data[0] % BODY_FRAMING_COUNT);
    uint64_t length = data[1];
    size_t step = data[1] % 64u + 1;
    const char *bytes = (const char *)data + 2;
    size -= 2;
    decode(&whole, framing, length, bytes, size, size + 1);
    decode(&pieces, framing, length, bytes, size, step);
    FUZZ_CHECK(whole.done == pieces.done && whole.fault == pieces.fault);
    FUZZ_CHECK(whole.length == pieces.length);
    FUZZ_CHECK(memcmp(whole.content, pieces.content, whole.length) == 0);
    if (whole.fault == BODY_FAULT_NONE)
        FUZZ_CHECK(whole.taken == pieces.taken);
    if (whole.done && framing != BODY_CHUNKED)
        FUZZ_CHECK(whole.length == (framing == BODY_NONE ? 0 : length));
    check_round_trip(&whole);
    return 0;
}
