/* passwd and group as the image brings them: a rewritten text says what was asked, and nothing else
 * has changed. */
#include <stdio.h>
#include <string.h>

#include "init/machine/account_files.h"
#include "test/fuzz/fuzz.h"

#define TEXT_MAX 4096

static unsigned lines(const char *text)
{
    unsigned count = 0;

    for (; *text != '\0'; text++)
        count += *text == '\n' || text[1] == '\0';
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX], out[2 * TEXT_MAX], owner[ACCOUNT_TEXT_MAX];
    struct account account, after;

    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    (void)passwd_uid_owner(text, "codev", 990, owner);
    (void)passwd_gid_owner(text, "codev", 990, owner);
    FUZZ_CHECK(group_rewrite(out, sizeof(out), text, 1000, 20) >= 0 || strlen(text) > TEXT_MAX / 4);
    int found = passwd_find(text, "codev", &account);
    int length = passwd_rewrite(out, sizeof(out), text, "codev", 501, 20);
    if (length < 0)
        return 0;
    FUZZ_CHECK(strlen(out) == (size_t)length && lines(out) >= lines(text));
    if (found == 0) {
        FUZZ_CHECK(passwd_find(out, "codev", &after) == 0);
        FUZZ_CHECK(after.uid == 501 && after.gid == 20 && strcmp(after.home, account.home) == 0);
    }
    return 0;
}
