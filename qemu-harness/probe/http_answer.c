/* Parses the head and the framing of an HTTP answer as the bytes arrive. */
#include "qemu-harness/probe/http_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The value of a header field in a NUL-terminated head, or NULL. */
static const char *head_field(const char *head, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':')
            return line + 3 + length + strspn(line + 3 + length, " \t");
    }
    return NULL;
}

static void body_or_complete(struct answer *answer, enum answer_state state)
{
    answer->state = answer->left > 0 ? state : ANSWER_COMPLETE;
}

static void head_complete(struct answer *answer)
{
    answer->head[answer->head_length] = '\0';
    answer->status = strncmp(answer->head, "HTTP/1.", 7) == 0 ? atoi(answer->head + 9) : 0;
    answer->on_head(answer->context, answer->head, answer->head_length);
    const char *length = head_field(answer->head, "Content-Length");
    const char *coding = head_field(answer->head, "Transfer-Encoding");
    answer->head_length = answer->line_length = 0;
    answer->left = length ? strtoull(length, NULL, 10) : 0;
    if (answer->status < 100)
        answer->state = ANSWER_BAD;
    else if (answer->status < 200)
        answer->state = ANSWER_HEAD; /* 100 Continue or another 1xx: the final answer follows */
    else if (answer->no_body || answer->status == 204 || answer->status == 304)
        answer->state = ANSWER_COMPLETE;
    else if (coding && strncasecmp(coding, "chunked", 7) == 0)
        answer->state = ANSWER_CHUNK_SIZE;
    else if (length)
        body_or_complete(answer, ANSWER_LENGTH);
    else
        answer->state = ANSWER_TO_END;
}

static size_t take_head(struct answer *answer, const char *bytes, size_t length)
{
    size_t taken = 0;
    while (taken < length) {
        if (answer->head_length == ANSWER_HEAD_MAX) {
            answer->state = ANSWER_BAD;
            return taken;
        }
        answer->head[answer->head_length++] = bytes[taken++];
        if (answer->head_length >= 4 &&
            memcmp(answer->head + answer->head_length - 4, "\r\n\r\n", 4) == 0) {
            head_complete(answer);
            return taken;
        }
    }
    return taken;
}

static size_t take_body(struct answer *answer, const char *bytes, size_t length,
                        enum answer_state next)
{
    if (answer->state != ANSWER_TO_END && length > answer->left)
        length = (size_t)answer->left;
    answer->on_body(answer->context, bytes, length);
    answer->body_bytes += length;
    answer->left -= answer->state == ANSWER_TO_END ? 0 : length;
    if (answer->state != ANSWER_TO_END && answer->left == 0)
        answer->state = next;
    return length;
}

/* A whole line of the chunked frame is in answer->head, without its line end. */
static void line_complete(struct answer *answer)
{
    char *end;
    answer->head[answer->line_length] = '\0';
    switch (answer->state) {
    case ANSWER_CHUNK_SIZE:
        answer->left = strtoull(answer->head, &end, 16);
        if (end == answer->head)
            answer->state = ANSWER_BAD;
        else
            answer->state = answer->left > 0 ? ANSWER_CHUNK_DATA : ANSWER_TRAILER;
        break;
    case ANSWER_CHUNK_END:
        answer->state = answer->line_length == 0 ? ANSWER_CHUNK_SIZE : ANSWER_BAD;
        break;
    case ANSWER_TRAILER:
        if (answer->line_length == 0)
            answer->state = ANSWER_COMPLETE;
        break;
    case ANSWER_HEAD:
    case ANSWER_LENGTH:
    case ANSWER_CHUNK_DATA:
    case ANSWER_TO_END:
    case ANSWER_COMPLETE:
    case ANSWER_BAD:
        break;
    }
    answer->line_length = 0;
}

static size_t take_line(struct answer *answer, const char *bytes, size_t length)
{
    const char *newline = memchr(bytes, '\n', length);
    size_t part = newline ? (size_t)(newline - bytes) : length;
    if (answer->line_length + part > ANSWER_HEAD_MAX) {
        answer->state = ANSWER_BAD;
        return part;
    }
    memcpy(answer->head + answer->line_length, bytes, part);
    answer->line_length += part;
    if (!newline)
        return part;
    if (answer->line_length > 0 && answer->head[answer->line_length - 1] == '\r')
        answer->line_length--;
    line_complete(answer);
    return part + 1;
}

void answer_feed(struct answer *answer, const char *bytes, size_t length)
{
    while (length > 0) {
        size_t taken = 0;
        switch (answer->state) {
        case ANSWER_HEAD:
            taken = take_head(answer, bytes, length);
            break;
        case ANSWER_LENGTH:
            taken = take_body(answer, bytes, length, ANSWER_COMPLETE);
            break;
        case ANSWER_TO_END:
            taken = take_body(answer, bytes, length, ANSWER_TO_END);
            break;
        case ANSWER_CHUNK_DATA:
            taken = take_body(answer, bytes, length, ANSWER_CHUNK_END);
            break;
        case ANSWER_CHUNK_SIZE:
        case ANSWER_CHUNK_END:
        case ANSWER_TRAILER:
            taken = take_line(answer, bytes, length);
            break;
        case ANSWER_COMPLETE:
        case ANSWER_BAD:
            return;
        }
        bytes += taken;
        length -= taken;
    }
}

void answer_end(struct answer *answer)
{
    if (answer->state == ANSWER_TO_END)
        answer->state = ANSWER_COMPLETE;
    else if (answer->state != ANSWER_COMPLETE)
        answer->state = ANSWER_BAD;
}
