/* Prefaces: a fixed text, 64 hex digits, a fixed end. One check is for both kinds. It refuses the
 * first malformed byte, and compares the secret only when the whole preface is there.
 */
#include "common/wire/preface.h"

#include <string.h>

static const char broker_start[] = "CODEV/1 ";
static const char broker_end[] = "\r\n";
static const char way_in_start[] = "CODEV-IN 1 ";
static const char way_in_end[] = "\n";

static void preface_write(char *out, const char *start, const char *secret, const char *end)
{
    size_t length = strlen(start);
    memcpy(out, start, length);
    memcpy(out + length, secret, SECRET_HEX_LENGTH);
    memcpy(out + length + SECRET_HEX_LENGTH, end, strlen(end));
}

void preface_write_broker(char out[PREFACE_BROKER_LENGTH], const char *token)
{
    preface_write(out, broker_start, token, broker_end);
}

void preface_write_way_in(char out[PREFACE_WAY_IN_LENGTH], const char *secret)
{
    preface_write(out, way_in_start, secret, way_in_end);
}

static int is_hex_digit(char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

static enum preface_result preface_check(const char *bytes, size_t length, const char *start,
                                         const char *secret, const char *end)
{
    size_t secret_at = strlen(start), end_at = secret_at + SECRET_HEX_LENGTH;
    size_t total = end_at + strlen(end);
    for (size_t i = 0; i < length && i < total; i++) {
        int right = i < secret_at ? bytes[i] == start[i]
                    : i < end_at  ? is_hex_digit(bytes[i])
                                  : bytes[i] == end[i - end_at];
        if (!right)
            return PREFACE_MALFORMED;
    }
    if (length < total)
        return PREFACE_MORE;
    /* an empty secret never matches */
    if (!secret_is_hex(secret) || !secret_equal(bytes + secret_at, secret, SECRET_HEX_LENGTH))
        return PREFACE_WRONG;
    return PREFACE_RIGHT;
}

enum preface_result preface_check_broker(const char *bytes, size_t length, const char *token)
{
    return preface_check(bytes, length, broker_start, token, broker_end);
}

enum preface_result preface_check_way_in(const char *bytes, size_t length, const char *secret)
{
    return preface_check(bytes, length, way_in_start, secret, way_in_end);
}
