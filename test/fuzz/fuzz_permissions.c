/* A project's codev.json: never turns prompts off, and what it passes on is JSON that says the same
 * again. */
#include <string.h>

#include "common/json/json.h"
#include "init/server/permissions_text.h"
#include "test/fuzz/fuzz.h"

#define TOKENS 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct permissions on, off, again;
    static struct json_token tokens[TOKENS];
    static char wrapped[sizeof(on.permission) + 32];
    struct json_position where;
    struct json document;

    memset(&on, 0, sizeof(on));
    memset(&off, 0, sizeof(off));
    memset(&again, 0, sizeof(again));
    on.auto_accept = again.auto_accept = true;
    permissions_from_text((const char *)data, size, &on);
    permissions_from_text((const char *)data, size, &off);
    FUZZ_CHECK(!off.auto_accept);
    FUZZ_CHECK(strcmp(on.permission, off.permission) == 0 && strcmp(on.warning, off.warning) == 0);
    FUZZ_CHECK(on.warning[0] == '\0' || !on.auto_accept);
    if (on.permission[0] == '\0')
        return 0;
    FUZZ_CHECK(!on.auto_accept);
    FUZZ_CHECK(
        json_parse(&document, on.permission, strlen(on.permission), tokens, TOKENS, &where) == 0);
    strcpy(wrapped, "{\"permission\":");
    strcat(wrapped, on.permission);
    strcat(wrapped, "}");
    permissions_from_text(wrapped, strlen(wrapped), &again);
    FUZZ_CHECK(!again.auto_accept && strcmp(again.permission, on.permission) == 0);
    return 0;
}
