/* Failure texts are formatted where the failure happens and prefixed by callers. Nothing here
 * allocates or fails: a text that does not fit is cut.
 */
#include "common/os/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int failure_set(struct failure *why, int error, const char *format, ...)
{
    if (why) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why->text, sizeof(why->text), format, arguments);
        va_end(arguments);
    }
    return -error;
}

int failure_errno(struct failure *why, int error, const char *format, ...)
{
    if (why) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why->text, sizeof(why->text), format, arguments);
        va_end(arguments);
        size_t length = strlen(why->text);
        snprintf(why->text + length, sizeof(why->text) - length, ": %s", strerror(error));
    }
    return -error;
}

int failure_prefix(struct failure *why, int result, const char *format, ...)
{
    if (why) {
        char reason[FAILURE_TEXT_MAX];
        memcpy(reason, why->text, sizeof(reason));
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(why->text, sizeof(why->text), format, arguments);
        va_end(arguments);
        size_t length = strlen(why->text);
        snprintf(why->text + length, sizeof(why->text) - length, ": %s", reason);
    }
    return result;
}
