/* NO_PROXY: curl's rules, and the additions to them. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/proxy/no_proxy_internal.h"

static bool matches(const char *list, const char *text)
{
    struct upstream_url url;
    struct failure why;
    if (upstream_url_parse(&url, text, strlen(text), &why) < 0)
        fail_msg("%s: %s", text, why.text);
    return no_proxy_matches(list, &url);
}

static const struct {
    const char *list, *url;
    bool direct;
} cases[] = {
    {"", "https://example.com", false},
    {" , ,", "https://example.com", false},
    {"*", "https://example.com", true},
    {"*", "https://10.0.0.1", true},
    {"a.example,*", "https://example.com", true},
    /* names: itself and below, whole labels only */
    {"example.com", "https://example.com", true},
    {"example.com", "https://www.example.com", true},
    {"example.com", "https://notexample.com", false},
    {"example.com", "https://example.com.evil.example", false},
    {"EXAMPLE.com", "https://Www.Example.COM", true},
    {".example.com", "https://example.com", true},
    {".example.com", "https://www.example.com", true},
    {"example.com.", "https://www.example.com", true},
    {".", "https://example.com", false},
    {"com", "https://example.com", true},
    {"other.example example.com", "https://example.com", true},
    {"other.example\texample.com", "https://example.com", true},
    {"*.example.com", "https://www.example.com", true},
    {"*.example.com", "https://example.com", false},
    {"*.example.com", "https://notexample.com", false},
    {"*example.com", "https://www.example.com", false},
    /* ports */
    {"example.com:8443", "https://example.com:8443", true},
    {"example.com:8443", "https://www.example.com:8443", true},
    {"example.com:8443", "https://example.com", false},
    {"example.com:443", "https://example.com", true},
    {"example.com:80", "https://example.com", false},
    {"example.com:", "https://example.com", false},
    {"example.com:x", "https://example.com", false},
    {"example.com:99999", "https://example.com", false},
    {":443", "https://example.com", false},
    {"10.0.0.1:81", "http://10.0.0.1:81", true},
    {"10.0.0.1:81", "http://10.0.0.1:82", false},
    {"[2001:db8::1]:81", "http://[2001:db8::1]:81", true},
    {"[2001:db8::1]:81", "http://[2001:db8::1]", false},
    /* addresses */
    {"10.0.0.1", "https://10.0.0.1", true},
    {"10.0.0.1", "https://10.0.0.11", false},
    {"0.0.1", "https://10.0.0.1", false},
    {"2001:db8::1", "https://[2001:db8::1]", true},
    {"[2001:db8::1]", "https://[2001:db8::1]", true},
    {"2001:0db8:0::1", "https://[2001:db8::1]", true},
    {"2001:db8::2", "https://[2001:db8::1]", false},
    /* networks */
    {"10.0.0.0/8", "https://10.200.3.4", true},
    {"10.0.0.0/8", "https://11.0.0.1", false},
    {"192.168.0.0/30", "https://192.168.0.3", true},
    {"192.168.0.0/30", "https://192.168.0.4", false},
    {"192.168.0.5/32", "https://192.168.0.5", true},
    {"0.0.0.0/0", "https://192.168.0.5", true},
    {"10.0.0.0/33", "https://10.0.0.0", false},
    {"10.0.0.0/", "https://10.0.0.0", false},
    {"10.0.0.0/x", "https://10.0.0.0", false},
    {"10.0.0.0/-1", "https://10.0.0.0", false},
    {"/8", "https://10.0.0.0", false},
    {"10.0.0.0/8", "https://ten.example", false},
    {"2001:db8::/32", "https://[2001:db8:1::7]", true},
    {"2001:db8::/33", "https://[2001:db8:8000::1]", false},
    {"[2001:db8::]/32", "https://[2001:db8::1]", true},
    {"10.0.0.0/8", "https://[2001:db8::1]", false},
    {"::/0", "https://10.0.0.1", false},
};

static void every_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        if (matches(cases[i].list, cases[i].url) != cases[i].direct)
            fail_msg("NO_PROXY=%s %s", cases[i].list, cases[i].url);
    struct upstream_url url;
    assert_int_equal(upstream_url_parse(&url, "https://a", 9, NULL), 0);
    assert_false(no_proxy_matches(NULL, &url));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
