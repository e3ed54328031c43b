/* The head of an answer: status line, fields, framing. */
#include "host-broker/http/response_head.h"

#include <errno.h>
#include <stdio.h>

/* From the registry of status codes (RFC 9110 section 16.2.1). */
static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {208, "Already Reported"},
    {226, "IM Used"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {305, "Use Proxy"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {506, "Variant Also Negotiates"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
};

const char *response_reason(int status)
{
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "";
}

enum response_framing response_framing_choose(const struct response_facts *facts)
{
    if (facts->status < 200 || facts->status == 204)
        return RESPONSE_EMPTY;
    if (facts->head_request || facts->status == 304)
        return RESPONSE_HEADERS;
    if (facts->length_known)
        return RESPONSE_LENGTH;
    return facts->request_minor_version == 0 ? RESPONSE_CLOSE : RESPONSE_CHUNKED;
}

bool response_keeps_alive(const struct response_facts *facts)
{
    return facts->keep_alive && response_framing_choose(facts) != RESPONSE_CLOSE;
}

static void append(struct response_head *head, struct slice text)
{
    if (head->overflow || head->size - head->length < text.length) {
        head->overflow = true;
        return;
    }
    if (text.length > 0)
        memcpy(head->buffer + head->length, text.bytes, text.length);
    head->length += text.length;
}

static void append_number(struct response_head *head, uint64_t number)
{
    char digits[24]; /* 64 bits have 20 */
    int length = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
    append(head, (struct slice){digits, (size_t)length});
}

void response_head_begin(struct response_head *head, char *buffer, size_t size, int status)
{
    *head = (struct response_head){.buffer = buffer, .size = size};
    append(head, SLICE_LITERAL("HTTP/1.1 "));
    append_number(head, (uint64_t)status);
    append(head, SLICE_LITERAL(" "));
    append(head, slice_of(response_reason(status)));
    append(head, SLICE_LITERAL("\r\n"));
}

static bool splits_a_line(struct slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.bytes[i] == '\r' || text.bytes[i] == '\n' || text.bytes[i] == '\0')
            return true;
    return false;
}

void response_head_field(struct response_head *head, struct slice name, struct slice value)
{
    if (splits_a_line(name) || splits_a_line(value))
        head->overflow = true;
    append(head, name);
    append(head, SLICE_LITERAL(": "));
    append(head, value);
    append(head, SLICE_LITERAL("\r\n"));
}

void response_head_lines(struct response_head *head, const char *lines)
{
    append(head, slice_of(lines));
}

static void append_framing(struct response_head *head, const struct response_facts *facts)
{
    switch (response_framing_choose(facts)) {
    case RESPONSE_HEADERS:
        if (!facts->length_known)
            break;
        /* fallthrough */
    case RESPONSE_LENGTH:
        append(head, SLICE_LITERAL("Content-Length: "));
        append_number(head, facts->length);
        append(head, SLICE_LITERAL("\r\n"));
        break;
    case RESPONSE_CHUNKED:
        append(head, SLICE_LITERAL("Transfer-Encoding: chunked\r\n"));
        break;
    case RESPONSE_EMPTY:
    case RESPONSE_CLOSE:
    case RESPONSE_FRAMING_COUNT:
        break;
    }
}

int response_head_finish(struct response_head *head, const struct response_facts *facts)
{
    append_framing(head, facts);
    if (facts->status >= 200 && !response_keeps_alive(facts))
        append(head, SLICE_LITERAL("Connection: close\r\n"));
    append(head, SLICE_LITERAL("\r\n"));
    return head->overflow ? -ENOSPC : (int)head->length;
}
