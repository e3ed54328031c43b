/* The DNS stub: whatever comes, the answer is none, or a response with the query's id, its own
 * length and an error; and never a response to a response. */
#include <stdlib.h>
#include <string.h>

#include "agent/dns.h"
#include "test/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t room = 0; room <= DNS_ANSWER_MAX; room += room < 40 ? 1 : 77) {
        uint8_t *out = malloc(room + 1); /* the sanitizer watches its end; one more, so never 0 */
        size_t length = dns_answer(data, size, out, room);
        FUZZ_CHECK(length <= room);
        if (length > 0) {
            FUZZ_CHECK(size >= DNS_HEADER_LENGTH && length >= DNS_HEADER_LENGTH && length <= size);
            FUZZ_CHECK(memcmp(out, data, 2) == 0);
            FUZZ_CHECK((out[2] & 0x80) && !(data[2] & 0x80));
            FUZZ_CHECK((out[3] & 0x0f) != 0);
            FUZZ_CHECK(out[5] == (length > DNS_HEADER_LENGTH));
            FUZZ_CHECK(memcmp(out + DNS_HEADER_LENGTH, data + DNS_HEADER_LENGTH,
                              length - DNS_HEADER_LENGTH) == 0);
            uint8_t again[DNS_ANSWER_MAX];
            FUZZ_CHECK(dns_answer(out, length, again, sizeof(again)) == 0);
        }
        free(out);
    }
    return 0;
}
