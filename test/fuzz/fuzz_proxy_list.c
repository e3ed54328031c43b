/* Results of PAC scripts (first byte even) and URLs of proxies (odd). An accepted proxy has no user
 * in the first case, and is the same when it is written and parsed again.
 */
#include "host-broker/proxy/proxy_list.h"

#include <string.h>

#include "test/fuzz/fuzz.h"

static void check_proxy(const struct proxy *proxy)
{
    struct proxy_list again = {0};
    char url[PROXY_URL_MAX], label[PROXY_LABEL_MAX];
    proxy_format_label(proxy, label);
    proxy_format_url(proxy, true, url);
    FUZZ_CHECK(strlen(label) > 0 && !strpbrk(label, " \t\r\n@/"));
    if (proxy->kind == PROXY_DIRECT) {
        FUZZ_CHECK(url[0] == '\0');
        return;
    }
    FUZZ_CHECK(proxy->host[0] != '\0' && proxy->port != 0);
    FUZZ_CHECK(proxy_list_add_url(&again, url, NULL) == 0 && again.count == 1);
    FUZZ_CHECK(again.proxies[0].kind == proxy->kind && again.proxies[0].port == proxy->port);
    FUZZ_CHECK(strcmp(again.proxies[0].host, proxy->host) == 0);
    FUZZ_CHECK(strcmp(again.proxies[0].user, proxy->user) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char url[4096];
    struct proxy_list list = {0};
    if (size == 0 || size > sizeof(url))
        return 0;
    bool script = data[0] % 2 == 0;
    memcpy(url, data + 1, size - 1);
    url[size - 1] = '\0';
    int result = script ? proxy_list_parse_result(&list, (struct slice){url, size - 1})
                        : proxy_list_add_url(&list, url, NULL);
    FUZZ_CHECK(list.count <= PROXY_LIST_MAX && (result == 0) == (list.count > 0));
    for (size_t i = 0; i < list.count; i++) {
        FUZZ_CHECK(!script || list.proxies[i].user[0] == '\0');
        check_proxy(&list.proxies[i]);
    }
    return 0;
}
