/* Decodes a body: one step for each byte of framing; content is returned in place, in runs as long
 * as possible.
 *
 *     LENGTH -> DONE
 *     SIZE -> [EXTENSION_*] -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE ...
 *     SIZE_LF of chunk 0 -> TRAILER_START -> [TRAILER_NAME -> _VALUE -> _LF] -> LAST_LF -> DONE
 */
#include "host-broker/http/body_decoder.h"

#include <assert.h>
#include <errno.h>

#include "host-broker/http/field.h"

const char *const body_fault_reasons[] = {
    [BODY_FAULT_NONE] = "no fault",
    [BODY_FAULT_CHUNK_SIZE] = "malformed chunk size",
    [BODY_FAULT_CHUNK_EXTENSION] = "malformed chunk extension",
    [BODY_FAULT_CHUNK_END] = "a chunk's data does not end with CR LF",
    [BODY_FAULT_TRAILER] = "malformed trailer",
    [BODY_FAULT_TOO_LARGE] = "chunk extensions or trailers over 16 KiB",
};

static_assert(sizeof(body_fault_reasons) / sizeof(body_fault_reasons[0]) == BODY_FAULT_COUNT,
              "one reason for each fault");

#define CHUNK_SIZE_DIGITS_MAX 16

enum body_state {
    BODY_STATE_DONE,
    BODY_STATE_LENGTH, /* remaining bytes of content, then done */
    BODY_STATE_SIZE,
    BODY_STATE_EXTENSION_START, /* after a semicolon: blanks, then a name */
    BODY_STATE_EXTENSION_NAME,
    BODY_STATE_EXTENSION_VALUE, /* after the equals sign */
    BODY_STATE_EXTENSION_TOKEN,
    BODY_STATE_EXTENSION_QUOTED,
    BODY_STATE_EXTENSION_ESCAPE, /* after a backslash in quotes */
    BODY_STATE_EXTENSION_END,    /* after the closing quote */
    BODY_STATE_SIZE_LF,
    BODY_STATE_DATA, /* remaining bytes of content, then CR LF */
    BODY_STATE_DATA_CR,
    BODY_STATE_DATA_LF,
    BODY_STATE_TRAILER_START,
    BODY_STATE_TRAILER_NAME,
    BODY_STATE_TRAILER_VALUE,
    BODY_STATE_TRAILER_LF,
    BODY_STATE_LAST_LF,
};

void body_decoder_start(struct body_decoder *decoder, enum body_framing framing, uint64_t length)
{
    *decoder = (struct body_decoder){.state = BODY_STATE_DONE};
    if (framing == BODY_CHUNKED) {
        decoder->state = BODY_STATE_SIZE;
    } else if (framing == BODY_LENGTH && length > 0) {
        decoder->state = BODY_STATE_LENGTH;
        decoder->remaining = length;
    }
}

bool body_decoder_done(const struct body_decoder *decoder)
{
    return decoder->state == BODY_STATE_DONE && decoder->fault == BODY_FAULT_NONE;
}

static enum body_fault go(struct body_decoder *decoder, enum body_state state)
{
    decoder->state = (int)state;
    return BODY_FAULT_NONE;
}

static enum body_fault step_size(struct body_decoder *decoder, unsigned char byte)
{
    int digit = ascii_hex_value(byte);
    if (digit >= 0) {
        if (++decoder->digits > CHUNK_SIZE_DIGITS_MAX ||
            decoder->remaining > ((uint64_t)INT64_MAX - (unsigned)digit) / 16)
            return BODY_FAULT_CHUNK_SIZE;
        decoder->remaining = decoder->remaining * 16 + (unsigned)digit;
        return BODY_FAULT_NONE;
    }
    if (decoder->digits > 0 && byte == ';')
        return go(decoder, BODY_STATE_EXTENSION_START);
    if (decoder->digits > 0 && byte == '\r')
        return go(decoder, BODY_STATE_SIZE_LF);
    return BODY_FAULT_CHUNK_SIZE;
}

/* After an extension: another one, or the line's end. */
static enum body_fault end_extension(struct body_decoder *decoder, unsigned char byte)
{
    if (byte == ';')
        return go(decoder, BODY_STATE_EXTENSION_START);
    return byte == '\r' ? go(decoder, BODY_STATE_SIZE_LF) : BODY_FAULT_CHUNK_EXTENSION;
}

static enum body_fault step_extension(struct body_decoder *decoder, unsigned char byte)
{
    if (++decoder->extensions > BODY_EXTENSIONS_MAX)
        return BODY_FAULT_TOO_LARGE;
    switch (decoder->state) {
    case BODY_STATE_EXTENSION_START:
        if (byte == ' ' || byte == '\t')
            return BODY_FAULT_NONE;
        return field_is_token_byte(byte) ? go(decoder, BODY_STATE_EXTENSION_NAME)
                                         : BODY_FAULT_CHUNK_EXTENSION;
    case BODY_STATE_EXTENSION_NAME:
        if (byte == '=')
            return go(decoder, BODY_STATE_EXTENSION_VALUE);
        return field_is_token_byte(byte) ? BODY_FAULT_NONE : end_extension(decoder, byte);
    case BODY_STATE_EXTENSION_VALUE:
        if (byte == '"')
            return go(decoder, BODY_STATE_EXTENSION_QUOTED);
        return field_is_token_byte(byte) ? go(decoder, BODY_STATE_EXTENSION_TOKEN)
                                         : BODY_FAULT_CHUNK_EXTENSION;
    case BODY_STATE_EXTENSION_TOKEN:
        return field_is_token_byte(byte) ? BODY_FAULT_NONE : end_extension(decoder, byte);
    case BODY_STATE_EXTENSION_QUOTED:
        if (byte == '"')
            return go(decoder, BODY_STATE_EXTENSION_END);
        if (byte == '\\')
            return go(decoder, BODY_STATE_EXTENSION_ESCAPE);
        return field_is_value_byte(byte) ? BODY_FAULT_NONE : BODY_FAULT_CHUNK_EXTENSION;
    case BODY_STATE_EXTENSION_ESCAPE:
        return field_is_value_byte(byte) ? go(decoder, BODY_STATE_EXTENSION_QUOTED)
                                         : BODY_FAULT_CHUNK_EXTENSION;
    case BODY_STATE_EXTENSION_END:
        return end_extension(decoder, byte);
    }
    return BODY_FAULT_CHUNK_EXTENSION;
}

static enum body_fault step_trailer(struct body_decoder *decoder, unsigned char byte)
{
    if (++decoder->trailers > BODY_TRAILERS_MAX)
        return BODY_FAULT_TOO_LARGE;
    switch (decoder->state) {
    case BODY_STATE_TRAILER_START:
        if (byte == '\r')
            return go(decoder, BODY_STATE_LAST_LF);
        return field_is_token_byte(byte) ? go(decoder, BODY_STATE_TRAILER_NAME)
                                         : BODY_FAULT_TRAILER;
    case BODY_STATE_TRAILER_NAME:
        if (byte == ':')
            return go(decoder, BODY_STATE_TRAILER_VALUE);
        return field_is_token_byte(byte) ? BODY_FAULT_NONE : BODY_FAULT_TRAILER;
    case BODY_STATE_TRAILER_VALUE:
        if (byte == '\r')
            return go(decoder, BODY_STATE_TRAILER_LF);
        return field_is_value_byte(byte) ? BODY_FAULT_NONE : BODY_FAULT_TRAILER;
    case BODY_STATE_TRAILER_LF:
        return byte == '\n' ? go(decoder, BODY_STATE_TRAILER_START) : BODY_FAULT_TRAILER;
    case BODY_STATE_LAST_LF:
        return byte == '\n' ? go(decoder, BODY_STATE_DONE) : BODY_FAULT_TRAILER;
    }
    return BODY_FAULT_TRAILER;
}

static enum body_fault step_chunk_line(struct body_decoder *decoder, unsigned char byte)
{
    switch (decoder->state) {
    case BODY_STATE_SIZE_LF:
        if (byte != '\n')
            return BODY_FAULT_CHUNK_SIZE;
        return go(decoder, decoder->remaining > 0 ? BODY_STATE_DATA : BODY_STATE_TRAILER_START);
    case BODY_STATE_DATA_CR:
        return byte == '\r' ? go(decoder, BODY_STATE_DATA_LF) : BODY_FAULT_CHUNK_END;
    case BODY_STATE_DATA_LF:
        decoder->digits = 0;
        return byte == '\n' ? go(decoder, BODY_STATE_SIZE) : BODY_FAULT_CHUNK_END;
    case BODY_STATE_SIZE:
        return step_size(decoder, byte);
    }
    return BODY_FAULT_CHUNK_SIZE;
}

static enum body_fault step(struct body_decoder *decoder, unsigned char byte)
{
    if (decoder->state >= BODY_STATE_TRAILER_START)
        return step_trailer(decoder, byte);
    if (decoder->state >= BODY_STATE_EXTENSION_START && decoder->state <= BODY_STATE_EXTENSION_END)
        return step_extension(decoder, byte);
    return step_chunk_line(decoder, byte);
}

static struct slice take_content(struct body_decoder *decoder, const char *bytes, size_t length)
{
    size_t taken = length < decoder->remaining ? length : (size_t)decoder->remaining;
    decoder->remaining -= taken;
    if (decoder->remaining == 0)
        decoder->state = decoder->state == BODY_STATE_LENGTH ? BODY_STATE_DONE : BODY_STATE_DATA_CR;
    return (struct slice){bytes, taken};
}

ssize_t body_decoder_take(struct body_decoder *decoder, const char *bytes, size_t length,
                          struct slice *content)
{
    *content = (struct slice){0};
    for (size_t i = 0; decoder->fault == BODY_FAULT_NONE; i++) {
        if (i == length || decoder->state == BODY_STATE_DONE)
            return (ssize_t)i;
        if (decoder->state == BODY_STATE_LENGTH || decoder->state == BODY_STATE_DATA) {
            *content = take_content(decoder, bytes + i, length - i);
            return (ssize_t)(i + content->length);
        }
        decoder->fault = step(decoder, (unsigned char)bytes[i]);
    }
    return -EBADMSG;
}
