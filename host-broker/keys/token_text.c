/* Takes the gateway's token from the content of its file. */
#include "host-broker/keys/token_text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* Visible ASCII with single spaces inside. */
static bool is_token_text(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < ' ' || byte >= 0x7f || (byte == ' ' && text[i - 1] == ' '))
            return false;
    }
    return true;
}

int token_text_clean(char *text, size_t length, struct failure *why)
{
    size_t start = 0;
    while (length > start && is_blank(text[length - 1]))
        length--;
    while (start < length && is_blank(text[start]))
        start++;
    length -= start;
    if (length == 0)
        return failure_set(why, ENODATA, "the file holds no token");
    if (length > TOKEN_TEXT_MAX)
        return failure_set(why, EFBIG, "the token is longer than %d characters", TOKEN_TEXT_MAX);
    if (!is_token_text(text + start, length))
        return failure_set(why, EINVAL,
                           "the token holds a line end, a NUL or another character that is not "
                           "allowed in a header field");
    memmove(text, text + start, length);
    text[length] = '\0';
    return (int)length;
}
