/* The gateway's token as its file holds it.
 *
 * White space around it is dropped, since editors and `echo` end a file with a newline. Any other
 * byte that could end a field line or a C string is refused, not repaired.
 */
#ifndef HOST_BROKER_KEYS_TOKEN_TEXT_H
#define HOST_BROKER_KEYS_TOKEN_TEXT_H

#include <stddef.h>

#include "common/os/failure.h"

#define TOKEN_TEXT_MAX 16384 /* characters; OAuth access tokens have several KiB */

/* Removes white space at both ends. Then an empty text is refused with -ENODATA (the login was
 * removed), one that is too long with -EFBIG, and one with other bytes than visible ASCII and
 * single inner spaces with -EINVAL. Otherwise the text is moved to the start of the buffer, gets a
 * NUL (text[length] must be writable) and its length is returned. The reason never quotes the
 * text. */
int token_text_clean(char *text, size_t length, struct failure *why);

#endif
