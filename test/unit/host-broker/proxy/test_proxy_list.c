/* Proxies from URLs and from results of PAC scripts. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/proxy/proxy_list.h"
#include "test/harness/guard.h"

/* All proxies of a list as URLs, joined by spaces; "direct" for a direct connection. */
static void write_list(const struct proxy_list *list, char out[4096])
{
    out[0] = '\0';
    for (size_t i = 0; i < list->count; i++) {
        char url[PROXY_URL_MAX];
        proxy_format_url(&list->proxies[i], true, url);
        if (i > 0)
            strcat(out, " ");
        strcat(out, url[0] != '\0' ? url : "direct");
    }
}

static const struct {
    const char *url, *list;
} good_urls[] = {
    {"http://proxy.example:3128", "http://proxy.example:3128"},
    {"http://proxy.example:3128/", "http://proxy.example:3128"},
    {"HTTP://Proxy.Example", "http://proxy.example:80"},
    {"proxy.example:8080", "http://proxy.example:8080"},
    {"proxy", "http://proxy:80"},
    {"https://proxy.example", "https://proxy.example:443"},
    {"socks5://10.0.0.1", "socks5://10.0.0.1:1080"},
    {"socks5h://[2001:db8::1]:9", "socks5h://[2001:db8::1]:9"},
    {"socks4a://h", "socks4a://h:1080"},
    {"socks://h:5", "socks5h://h:5 socks4a://h:5"},
    {"direct://", "direct"},
    {"http://user:pass%20word@h:1", "http://user:pass%20word@h:1"},
    {"http://user@h:1", "http://user@h:1"},
    {"http://user:p@ss/w?rd@h:1", "http://user:p%40ss%2Fw%3Frd@h:1"},
    {"user:x@h:1", "http://user:x@h:1"},
};

static const char *const bad_urls[] = {
    "",
    "http://",
    "http://:80",
    "http://h:0",
    "http://h:99999",
    "ftp://h",
    "http://h/path",
    "http://h?q",
    "http://h h",
    "http://h\n",
    "pac+http://h/p",
    "http://[::1",
    "http://h..x",
};

static void urls_are_taken_apart(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i < ARRAY_LENGTH(good_urls); i++) {
        struct proxy_list list = {0};
        struct failure why = {""};
        if (proxy_list_add_url(&list, good_urls[i].url, &why) < 0)
            fail_msg("%s: %s", good_urls[i].url, why.text);
        write_list(&list, text);
        assert_string_equal(text, good_urls[i].list);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(bad_urls); i++) {
        struct proxy_list list = {0};
        struct failure why = {""};
        if (proxy_list_add_url(&list, bad_urls[i], &why) != -EINVAL || list.count != 0)
            fail_msg("accepted: %s", bad_urls[i]);
        assert_string_not_equal(why.text, "");
    }
}

static void a_reason_holds_no_password(void **state)
{
    (void)state;
    struct proxy_list list = {0};
    struct failure why;
    assert_int_equal(proxy_list_add_url(&list, "ftp://user:secret@h", &why), -EINVAL);
    assert_null(strstr(why.text, "secret"));
    assert_int_equal(proxy_list_add_url(&list, "http://user:secret@h/x", &why), -EINVAL);
    assert_null(strstr(why.text, "secret"));
}

static void a_label_holds_no_password(void **state)
{
    (void)state;
    struct proxy_list list = {0};
    char label[PROXY_LABEL_MAX], url[PROXY_URL_MAX];
    assert_int_equal(proxy_list_add_url(&list, "https://u:secret@[2001:db8::1]", NULL), 0);
    proxy_format_label(&list.proxies[0], label);
    assert_string_equal(label, "[2001:db8::1]:443");
    proxy_format_url(&list.proxies[0], false, url);
    assert_string_equal(url, "https://[2001:db8::1]:443");
}

static void a_user_has_a_maximum(void **state)
{
    (void)state;
    char url[2000] = "http://";
    struct proxy_list list = {0};
    struct failure why;
    memset(url + 7, 'u', PROXY_USER_MAX);
    strcpy(url + 7 + PROXY_USER_MAX, "@h");
    assert_int_equal(proxy_list_add_url(&list, url, &why), 0);
    memset(url + 7, 'u', PROXY_USER_MAX + 1);
    strcpy(url + 8 + PROXY_USER_MAX, "@h");
    assert_int_equal(proxy_list_add_url(&list, url, &why), -EINVAL);
}

static const struct {
    const char *result, *list; /* NULL: refused */
} results[] = {
    {"DIRECT", "direct"},
    {"", "direct"},
    {"  \n", "direct"},
    {"PROXY a:1", "http://a:1"},
    {"PROXY a", "http://a:80"},
    {"HTTPS a", "https://a:443"},
    {"HTTP a:2", "http://a:2"},
    {"SOCKS a:3", "socks5h://a:3 socks4a://a:3"},
    {"SOCKS4 a", "socks4://a:1080"},
    {"SOCKS5 a", "socks5h://a:1080"},
    {"proxy a:1;direct", "http://a:1 direct"},
    {" PROXY  a:1 ;; SOCKS5\tb:2 ; DIRECT;", "http://a:1 socks5h://b:2 direct"},
    {"PROXY [2001:db8::1]:8", "http://[2001:db8::1]:8"},
    {"QUIC a:1; PROXY b:2", "http://b:2"},
    {"PROXY user:secret@a:1; PROXY b:2", "http://b:2"},
    {"PROXY; DIRECT", "direct"},
    {"PROXY a b; DIRECT", "direct"},
    {"PROXY http://a:1", NULL},
    {"QUIC a:1", NULL},
    {"DIRECT a", NULL},
    {"nonsense", NULL},
    {";;", NULL},
    {"PROXY a:0", NULL},
};

static void results_are_taken_apart(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i < ARRAY_LENGTH(results); i++) {
        struct proxy_list list = {.count = 3};
        size_t length = strlen(results[i].result);
        char *guarded = guard_copy(results[i].result, length);
        int result = proxy_list_parse_result(&list, (struct slice){guarded, length});
        guard_free(guarded, length);
        if ((result == 0) != !!results[i].list)
            fail_msg("'%s': %d", results[i].result, result);
        write_list(&list, text);
        assert_string_equal(text, results[i].list ? results[i].list : "");
    }
}

static void a_result_has_a_maximum(void **state)
{
    (void)state;
    struct proxy_list list;
    char text[1024] = "";
    for (int i = 0; i < 40; i++)
        strcat(text, "PROXY a:1; ");
    assert_int_equal(proxy_list_parse_result(&list, slice_of(text)), 0);
    assert_int_equal(list.count, PROXY_LIST_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),      cmocka_unit_test(a_reason_holds_no_password),
        cmocka_unit_test(a_label_holds_no_password), cmocka_unit_test(a_user_has_a_maximum),
        cmocka_unit_test(results_are_taken_apart),   cmocka_unit_test(a_result_has_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
