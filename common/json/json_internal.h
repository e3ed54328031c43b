/* Inside the JSON reader: what json.c, json_grammar.c and json_string.c share. Not for others. */
#ifndef COMMON_JSON_JSON_INTERNAL_H
#define COMMON_JSON_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checks that the whole text is one JSON value, nested at most JSON_DEPTH_MAX deep. 0, -EINVAL or
 * -E2BIG with the offset of what is wrong and why. */
int json_grammar_check(const char *text, size_t length, size_t *offset, const char **reason);

/* Reads one character of a string that passed the check: a plain one, an escape, or a pair of
 * surrogate escapes. Moves *at behind it and returns its code; a lone surrogate is returned as such. */
uint32_t json_read_character(const char *text, size_t end, size_t *at);

#endif
