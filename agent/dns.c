/* Answers each DNS question with NXDOMAIN. Offsets and flags: RFC 1035 section 4.1.1. */
#include "agent/dns.h"

#include <string.h>

enum rcode { RCODE_FORMERR = 1, RCODE_NXDOMAIN = 3, RCODE_NOTIMP = 4 };

#define FLAGS_HIGH 2 /* QR, opcode (4 bits), AA, TC, RD */
#define FLAGS_LOW 3  /* RA, Z, AD, CD, rcode (4 bits) */
#define QUESTION_COUNT 4
#define QR 0x80
#define OPCODE 0x78
#define RD 0x01
#define RA 0x80
#define LABEL_MAX 63

/* Length of the question after the header (name, type, class), or 0 when there is not exactly one
 * valid question. A compression pointer is invalid here, because no name comes before the
 * question's. */
static size_t question_length(const uint8_t *query, size_t length)
{
    size_t at = DNS_HEADER_LENGTH;
    if (query[QUESTION_COUNT] != 0 || query[QUESTION_COUNT + 1] != 1)
        return 0;
    for (;;) {
        if (at >= length || query[at] > LABEL_MAX)
            return 0;
        size_t label = query[at];
        at += 1 + label;
        if (at - DNS_HEADER_LENGTH > DNS_NAME_MAX)
            return 0;
        if (label == 0)
            break;
    }
    return length - at >= 4 ? at + 4 - DNS_HEADER_LENGTH : 0;
}

size_t dns_answer(const uint8_t *query, size_t length, uint8_t *out, size_t size)
{
    if (length < DNS_HEADER_LENGTH || (query[FLAGS_HIGH] & QR))
        return 0;
    size_t question = 0;
    enum rcode rcode = RCODE_NOTIMP;
    if ((query[FLAGS_HIGH] & OPCODE) == 0) {
        question = question_length(query, length);
        rcode = question > 0 ? RCODE_NXDOMAIN : RCODE_FORMERR;
    }
    if (size < DNS_HEADER_LENGTH + question)
        return 0;
    memset(out, 0, DNS_HEADER_LENGTH);
    out[0] = query[0];
    out[1] = query[1];
    out[FLAGS_HIGH] = QR | (query[FLAGS_HIGH] & (OPCODE | RD));
    out[FLAGS_LOW] = RA | rcode;
    out[QUESTION_COUNT + 1] = question > 0;
    memcpy(out + DNS_HEADER_LENGTH, query + DNS_HEADER_LENGTH, question);
    return DNS_HEADER_LENGTH + question;
}
