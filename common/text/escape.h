/* Makes hostile text safe to show on a terminal or in a log line. */
#ifndef COMMON_TEXT_ESCAPE_H
#define COMMON_TEXT_ESCAPE_H

#include <stddef.h>

/* Copies printable ASCII and well-formed UTF-8 except control characters (C0, DEL, C1),
 * bidirectional controls, line and paragraph separators; these and invalid bytes become \xNN. With
 * `keep_newlines`, \n and \t stay. Returns the length written (cut to fit), always
 * NUL-terminated. */
size_t escape_text(char *out, size_t size, const char *text, size_t length, int keep_newlines);

#endif
