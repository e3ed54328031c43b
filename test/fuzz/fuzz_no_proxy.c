/* NO_PROXY: a list from the environment. A list matches what one of its entries alone matches. */
#include "host-broker/proxy/no_proxy_internal.h"

#include <string.h>

#include "test/fuzz/fuzz.h"

static const char *const urls[] = {"https://a.b.example", "http://10.1.2.3:81",
                                   "https://[2001:db8::1]", "https://x"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char list[512], longer[600];
    struct upstream_url url;
    if (size >= sizeof(list))
        return 0;
    memcpy(list, data, size);
    list[size] = '\0';
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        FUZZ_CHECK(upstream_url_parse(&url, urls[i], strlen(urls[i]), NULL) == 0);
        bool alone = no_proxy_matches(list, &url);
        strcpy(longer, "other.example, ");
        strcat(longer, list);
        FUZZ_CHECK(no_proxy_matches(longer, &url) == alone);
        strcat(longer, " *");
        FUZZ_CHECK(no_proxy_matches(longer, &url));
    }
    return 0;
}
