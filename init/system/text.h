/* A search in short texts. */
#ifndef INIT_SYSTEM_TEXT_H
#define INIT_SYSTEM_TEXT_H

#include <stdbool.h>
#include <string.h>

/* strstr(3) for texts that are too short to need its 2 KiB of tables. */
static inline bool text_contains(const char *text, const char *part)
{
    size_t length = strlen(part);

    for (; *text != '\0'; text++) {
        if (strncmp(text, part, length) == 0)
            return true;
    }
    return false;
}

#endif
