/* Output of libproxy (first byte odd: debug output, else a proxy's URL), and wrapping of
 * scripts. */
#include "host-broker/proxy/pac_script_internal.h"

#include <string.h>

#include "test/fuzz/fuzz.h"

static char wrapped[PAC_SCRIPT_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[8192], url[PROXY_SCRIPT_URL_MAX + 1], result[PROXY_RESULT_MAX + 1];
    if (size == 0 || size > sizeof(text))
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 2 != 0) {
        pac_settings_read(text, url);
        FUZZ_CHECK(strlen(url) <= PROXY_SCRIPT_URL_MAX && !strpbrk(url, "\r\n"));
    } else {
        enum pac_script_end end = pac_script_read(text, result);
        FUZZ_CHECK(end != PAC_SCRIPT_ABSENT || result[0] == '\0');
        for (const char *at = result; *at != '\0'; at++)
            FUZZ_CHECK(*at >= ' ' && *at <= '~');
    }
    ssize_t length = pac_script_wrap(wrapped, (const char *)data + 1, size - 1, NULL);
    FUZZ_CHECK(length <= PAC_SCRIPT_MAX && (length < 0 || (size_t)length > size - 1));
    return 0;
}
