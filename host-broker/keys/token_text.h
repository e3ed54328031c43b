/* The gateway's token as a file holds it.
 *
 * Editors and `echo` put a newline behind it, which is no part of it; anything else that could end a
 * field line or be cut off by a C string is refused rather than repaired.
 */
#ifndef HOST_BROKER_KEYS_TOKEN_TEXT_H
#define HOST_BROKER_KEYS_TOKEN_TEXT_H

#include <stddef.h>

#include "common/os/failure.h"

#define TOKEN_TEXT_MAX 16384 /* characters: OAuth access tokens reach several KiB */

/* Looks at a file's content in place: cuts trailing LFs and CRs and blanks at both ends, refuses what is
 * then empty (-ENODATA: the login was removed), too long (-EFBIG) or holds a byte other than visible
 * ASCII and single inner spaces (-EINVAL). On success the text is moved to the buffer's start, has a NUL
 * behind it (text[length] must be writable) and its length is returned. A reason never quotes a byte. */
int token_text_clean(char *text, size_t length, struct failure *why);

#endif
