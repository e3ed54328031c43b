/* Parses a project's own codev.json: the pure part of permissions.c. */
#ifndef INIT_SERVER_PERMISSIONS_TEXT_H
#define INIT_SERVER_PERMISSIONS_TEXT_H

#include <stddef.h>

#include "init/server/environment.h"

#define PERMISSIONS_FILE_MAX 65536 /* bytes of codev.json */

/* The boot configuration's setting for the working directory: that of the longest directory which
 * contains it, else the default. */
bool permissions_toggle(const struct boot_config *config);

/* The target of the longest mount that contains the working directory, or NULL. */
const char *permissions_mount(const struct boot_config *config);

/* Parses a text: sets out->auto_accept to false when the text asks for prompts, stores its
 * `permission` object when that is the reason, and a warning when the text is not valid. Never sets
 * auto_accept to true. */
void permissions_from_text(const char *text, size_t length, struct permissions *out);

/* Sets auto_accept to false, with a warning. */
void permissions_refuse(struct permissions *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
