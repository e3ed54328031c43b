/* --mount texts: what is accepted has a host folder and, if a guest path, one that is absolute
 * and normal; spelled with every special character escaped it means the same again. */
#include <stdio.h>
#include <string.h>

#include "qemu-harness/launcher/folders/mount_spec.h"
#include "test/fuzz/fuzz.h"

static void append_escaped(char *out, const char *text)
{
    size_t length = strlen(out);
    for (; *text; text++) {
        if (*text == ':' || *text == '\\')
            out[length++] = '\\';
        out[length++] = *text;
    }
    out[length] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[2 * PATH_MAX], spelled[4 * PATH_MAX + 8];
    static struct mount_spec spec, again;
    struct failure why;
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (mount_spec_parse(&spec, text, &why))
        return 0;
    FUZZ_CHECK(spec.host[0] != '\0');
    FUZZ_CHECK(!spec.guest[0] || (spec.guest[0] == '/' && spec.guest[1] &&
                                  !strstr(spec.guest, "//") && !strstr(spec.guest, "/../")));
    spelled[0] = '\0';
    append_escaped(spelled, spec.host);
    if (spec.guest[0]) {
        strcat(spelled, ":");
        append_escaped(spelled, spec.guest);
    }
    strcat(spelled, spec.readonly ? ":ro" : ":rw");
    FUZZ_CHECK(mount_spec_parse(&again, spelled, &why) == 0);
    FUZZ_CHECK(strcmp(spec.host, again.host) == 0 && strcmp(spec.guest, again.guest) == 0);
    FUZZ_CHECK(spec.readonly == again.readonly);
    return 0;
}
