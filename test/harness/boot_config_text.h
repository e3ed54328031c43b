/* What the tests of the boot configuration share: a text with this or that member in it, accepted or
 * refused. Texts end at a guard page. */
#ifndef TEST_HARNESS_BOOT_CONFIG_TEXT_H
#define TEST_HARNESS_BOOT_CONFIG_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "init/config/boot_config.h"
#include "test/harness/guard.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BASIS "\"protocol\":1,\"id\":\"b3f1\",\"server\":{\"argv\":[\"sh\"]}"

static struct boot_config config;
static enum boot_place place = PLACE_MACHINE;
static struct failure why;

static inline int parse(const char *text)
{
    size_t length = strlen(text);
    char *copy = guard_copy(text, length);
    int result = boot_config_parse(&config, place, copy, length, &why);

    guard_free(copy, length);
    return result;
}

static inline void accepts(const char *text)
{
    int result = parse(text);

    if (result != 0)
        fail_msg("refused: %s\n  %s", text, why.text);
}

/* Refused, with this in the reason. */
static inline void refuses(const char *text, const char *reason)
{
    if (parse(text) == 0)
        fail_msg("accepted: %s", text);
    if (strstr(why.text, reason) == NULL)
        fail_msg("%s\n  says: %s\n  not: %s", text, why.text, reason);
}

/* The basis with further members. */
static inline const char *with(const char *members)
{
    static char text[16384];

    snprintf(text, sizeof(text), "{" BASIS ",%s}", members);
    return text;
}

static inline const char *with_server(const char *members)
{
    static char text[16384];

    snprintf(text, sizeof(text), "{\"protocol\":1,\"id\":\"a\",\"server\":{%s}}", members);
    return text;
}

#endif
