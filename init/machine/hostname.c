/* Makes a valid host name from any text: the pure part of stage `hostname`. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "init/machine/machine.h"

#define LABEL_MAX 63 /* RFC 1123 section 2.1 with RFC 1035 section 2.3.4 */
#define FALLBACK_NAME "codev"

static_assert(HOSTNAME_MAX == 64, "__NEW_UTS_LEN of linux/utsname.h");

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Removes hyphens and dots at the end: no label ends with a hyphen or is empty. */
static size_t trim_end(const char *name, size_t length)
{
    while (length > 0 && (name[length - 1] == '-' || name[length - 1] == '.'))
        length--;
    return length;
}

/* Keeps letters and digits. A dot ends a label. Other bytes become one hyphen, except at the
 * beginning or end of a label, where a hyphen is not allowed. A text that is too long is cut. */
bool hostname_make_valid(char out[HOSTNAME_MAX + 1], const char *wanted)
{
    size_t length = 0, label = 0;

    for (const char *c = wanted; *c != '\0' && length < HOSTNAME_MAX; c++) {
        if (is_letter_or_digit(*c) || (*c == '-' && label > 0)) {
            if (label == LABEL_MAX)
                continue;
            out[length++] = *c;
            label++;
        } else if (*c == '.') {
            length = trim_end(out, length);
            if (length > 0 && length < HOSTNAME_MAX)
                out[length++] = '.';
            label = 0;
        } else if (label > 0 && label < LABEL_MAX && out[length - 1] != '-') {
            out[length++] = '-';
            label++;
        }
    }
    length = trim_end(out, length);
    out[length] = '\0';
    if (length == 0)
        strcpy(out, FALLBACK_NAME);
    return strcmp(out, wanted) == 0;
}
