/* Escapes hostile text. Characters that could move a cursor, change a terminal's state, reorder or
 * break a line are written as their bytes. A backslash of the text is not escaped: the result is
 * for reading, not for decoding.
 */
#include "common/text/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/text/utf8.h"

#define ESCAPED_BYTE 4 /* \xNN */

static bool is_harmless(uint32_t code, bool keep_newlines)
{
    if (code == '\n' || code == '\t')
        return keep_newlines;
    if (code < 0x20 || (code >= 0x7f && code <= 0x9f)) /* C0, DEL, C1 */
        return false;
    if (code == 0x061c || code == 0x200e || code == 0x200f || /* bidirectional marks, ... */
        (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) /* overrides */
        return false;
    return code != 0x2028 && code != 0x2029; /* line and paragraph separator */
}

static void escape_byte(char out[ESCAPED_BYTE], uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
}

size_t escape_text(char *out, size_t size, const char *text, size_t length, int keep_newlines)
{
    if (size == 0)
        return 0;
    size_t written = 0;
    for (size_t i = 0; i < length;) {
        uint32_t code;
        size_t taken = utf8_decode(text + i, length - i, &code);
        char piece[UTF8_LENGTH_MAX * ESCAPED_BYTE];
        size_t piece_length = taken;
        if (taken > 0 && is_harmless(code, keep_newlines != 0)) {
            memcpy(piece, text + i, taken);
        } else {
            taken = taken > 0 ? taken : 1; /* an invalid byte is escaped alone */
            piece_length = taken * ESCAPED_BYTE;
            for (size_t byte = 0; byte < taken; byte++)
                escape_byte(piece + byte * ESCAPED_BYTE, (uint8_t)text[i + byte]);
        }
        if (written + piece_length >= size)
            break; /* cut only between characters */
        memcpy(out + written, piece, piece_length);
        written += piece_length;
        i += taken;
    }
    out[written] = '\0';
    return written;
}
