/* The check of the grammar, which json_parse() does first. */
#ifndef COMMON_JSON_JSON_INTERNAL_H
#define COMMON_JSON_JSON_INTERNAL_H

#include <stddef.h>

/* Checks that the whole text is one JSON value, nested at most JSON_DEPTH_MAX deep. 0, -EINVAL or
 * -E2BIG with the offset of what is wrong and why. */
int json_grammar_check(const char *text, size_t length, size_t *offset, const char **reason);

#endif
