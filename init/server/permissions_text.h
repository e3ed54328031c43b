/* What a project's own codev.json says about prompts: the pure part. */
#ifndef INIT_SERVER_PERMISSIONS_TEXT_H
#define INIT_SERVER_PERMISSIONS_TEXT_H

#include <stddef.h>

#include "init/server/environment.h"

#define PERMISSIONS_FILE_MAX 65536 /* bytes of codev.json */

/* The toggle of the boot configuration for its working directory: that of the longest directory
 * which contains it, else the default. */
bool permissions_toggle(const struct boot_config *config);

/* The target of the longest mount that contains the working directory, or NULL. */
const char *permissions_mount(const struct boot_config *config);

/* Reads a text: sets out->auto_accept to false when it is stricter than "on", stores its
 * `permission` object when that is why, and a warning when it was not understood. Never sets
 * auto_accept to true. */
void permissions_from_text(const char *text, size_t length, struct permissions *out);

/* Off, with a warning. */
void permissions_refuse(struct permissions *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
