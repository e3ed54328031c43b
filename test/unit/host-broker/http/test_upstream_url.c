/* Upstream URLs: which are accepted, the reason for each refusal, and the join with a target. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/http/upstream_url.h"
#include "test/harness/guard.h"

static int parse(struct upstream_url *out, const char *text, size_t length, struct failure *why)
{
    char *guarded = guard_copy(text, length);
    int result = upstream_url_parse(out, guarded, length, why);
    guard_free(guarded, length);
    return result;
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text, *origin, *path;
        size_t prefix;
        uint16_t port;
    } cases[] = {
        {"https://npm.example", "https://npm.example", "", 0, 443},
        {"HTTPS://PyPI.org/simple/", "https://pypi.org", "/simple/", 7, 443},
        {"http://registry:80/", "http://registry", "/", 0, 80},
        {"http://registry:443", "http://registry:443", "", 0, 443},
        {"https://h:8443/a/b", "https://h:8443", "/a/b", 4, 8443},
        {"https://h:00443", "https://h", "", 0, 443},
        {"https://127.0.0.1:1/", "https://127.0.0.1:1", "/", 0, 1},
        {"https://[::1]:65535", "https://[::1]:65535", "", 0, 65535},
        {"https://[2001:DB8:0::1]/x", "https://[2001:db8::1]", "/x", 2, 443},
        {"https://a_b.xn--4ca.example/%2f//", "https://a_b.xn--4ca.example", "/%2f//", 4, 443},
        {"https://1and1.example", "https://1and1.example", "", 0, 443},
        {"https://0x.example", "https://0x.example", "", 0, 443},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upstream_url url;
        struct failure why;
        char origin[UPSTREAM_ORIGIN_MAX];
        if (parse(&url, cases[i].text, strlen(cases[i].text), &why) != 0)
            fail_msg("%s: %s", cases[i].text, why.text);
        assert_int_equal(upstream_url_origin(&url, origin, sizeof(origin)),
                         strlen(cases[i].origin));
        assert_string_equal(origin, cases[i].origin);
        assert_string_equal(url.path, cases[i].path);
        assert_int_equal(url.prefix_length, cases[i].prefix);
        assert_int_equal(url.port, cases[i].port);
        assert_int_equal(upstream_url_origin(&url, origin, strlen(cases[i].origin)), -ENOSPC);
    }
}

#define URL(text) text, sizeof(text) - 1

static const struct {
    const char *text;
    size_t length;
    const char *reason; /* part of it */
} bad_urls[] = {
    {URL(""), "does not begin with https://"},
    {URL("npm.example"), "does not begin with https://"},
    {URL("ftp://h/"), "does not begin with https://"},
    {URL("https:/h"), "does not begin with https://"},
    {URL("https://"), "the host is missing"},
    {URL("https:///x"), "the host is missing"},
    {URL("https://:443"), "the host is missing"},
    {URL("https://user@h"), "user information"},
    {URL("https://u:secret@h/"), "user information"},
    {URL("https://good.example\\@evil.example"), "backslash"},
    {URL("https://h?x"), "query"},
    {URL("https://h/a?x"), "query"},
    {URL("https://h/#f"), "fragment"},
    {URL("https://h#f"), "fragment"},
    {URL("https://h/a b"), "white space"},
    {URL(" https://h"), "white space"},
    {URL("https://h\n"), "white space"},
    {URL("https://h\x7f"), "control"},
    {URL("https://h\0.evil.example"), "NUL"},
    {URL("https://h/\0"), "NUL"},
    {URL("https://b\xc3\xbc"
         "cher.example"),
     "punycode"},
    {URL("https://h./"), "ends with a dot"},
    {URL("https://h.example.:443/"), "ends with a dot"},
    {URL("https://.h"), "empty label"},
    {URL("https://a..b"), "empty label"},
    {URL("https://-a"), "hyphen"},
    {URL("https://a-.b"), "hyphen"},
    {URL("https://a%2eb"), "not allowed in host names"},
    {URL("https://a*b"), "not allowed in host names"},
    {URL("https://127.1"), "number"},
    {URL("https://2130706433"), "number"},
    {URL("https://0x7f000001"), "number"},
    {URL("https://0X7F.1"), "number"},
    {URL("https://017700000001"), "number"},
    {URL("https://127.0.0.01"), "number"},
    {URL("https://1.2.3.4.5"), "number"},
    {URL("https://256.1.1.1"), "number"},
    {URL("https://h.0x"), "number"},
    {URL("https://h:"), "the port after the colon is missing"},
    {URL("https://h:0"), "1 and 65535"},
    {URL("https://h:65536"), "1 and 65535"},
    {URL("https://h:100000"), "malformed port"},
    {URL("https://h:+1"), "malformed port"},
    {URL("https://h:443x"), "malformed port"},
    {URL("https://h:1:2"), "malformed port"},
    {URL("https://[::1"), "IPv6"},
    {URL("https://[::1]x"), "IPv6"},
    {URL("https://[]"), "IPv6"},
    {URL("https://[1.2.3.4]"), "IPv6"},
    {URL("https://[fe80::1%25eth0]"), "IPv6"},
    {URL("https://::1"), "the host is missing"},
    {URL("https://h/../x"), "dot segment"},
    {URL("https://h/%2e%2e"), "dot segment"},
    {URL("https://h/%zz"), "hexadecimal"},
    {URL("https://h/%00"), "control"},
};

static void bad_urls_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_urls) / sizeof(bad_urls[0]); i++) {
        struct upstream_url url = {.port = 7};
        struct failure why = {""};
        assert_int_equal(parse(&url, bad_urls[i].text, bad_urls[i].length, &why), -EINVAL);
        if (!strstr(why.text, bad_urls[i].reason) || strstr(why.text, "secret"))
            fail_msg("%s: %s", bad_urls[i].text, why.text);
        assert_int_equal(url.port, 7);
    }
}

static void lengths_are_limited(void **state)
{
    (void)state;
    char text[2048];
    struct upstream_url url;
    struct failure why;
    for (int over = 0; over < 2; over++) {
        int length = snprintf(text, sizeof(text), "https://%0*d.example", 63 + over, 0);
        assert_int_equal(parse(&url, text, (size_t)length, &why), over ? -EINVAL : 0);
        length = snprintf(text, sizeof(text), "https://h/%0*d", UPSTREAM_PATH_MAX - 1 + over, 0);
        assert_int_equal(parse(&url, text, (size_t)length, &why), over ? -EINVAL : 0);
        char host[300] = "";
        for (int i = 0; i < 126; i++)
            strcat(host, "a.");
        strcat(host, over ? "aa" : "a");
        length = snprintf(text, sizeof(text), "https://%s", host);
        assert_int_equal(strlen(host), UPSTREAM_HOST_MAX + over);
        assert_int_equal(parse(&url, text, (size_t)length, &why), over ? -EINVAL : 0);
    }
}

static void the_gateway_has_conditions_of_its_own(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path; /* NULL: refused */
        bool removed;
    } cases[] = {
        {"https://llm.example", "", false},
        {"https://llm.example/", "/", false},
        {"https://llm.example/v1", "", true},
        {"https://llm.example/v1/", "", true},
        {"https://llm.example/v1//", "", true},
        {"https://llm.example/api/v1", "/api", true},
        {"https://llm.example/api/xv1", "/api/xv1", false},
        {"https://llm.example/v1/x", "/v1/x", false},
        {"https://llm.example/v11", "/v11", false},
        {"http://127.0.0.1:8080/v1", "", true},
        {"http://127.9.9.9", "", false},
        {"http://[::1]:1", "", false},
        {"http://LOCALHOST:11434", "", false},
        {"http://llm.example", NULL, false},
        {"http://10.0.0.1", NULL, false},
        {"http://127.0.0.1.example", NULL, false},
        {"http://[::ffff:127.0.0.1]", NULL, false},
        {"http://x.localhost", NULL, false},
        {"https://u@llm.example", NULL, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upstream_url url;
        struct failure why = {""};
        bool removed;
        int result = upstream_url_parse_gateway(&url, cases[i].text, &removed, &why);
        if (result != (cases[i].path ? 0 : -EINVAL))
            fail_msg("%s: %d %s", cases[i].text, result, why.text);
        if (result != 0)
            continue;
        assert_string_equal(url.path, cases[i].path);
        assert_int_equal(removed, cases[i].removed);
    }
}

static void origins_are_compared_by_parts(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"https://h", "https://H:443/x", true},      {"https://h", "http://h", false},
        {"https://h:80", "http://h", false},         {"https://h", "https://h:8443", false},
        {"https://h", "https://h.h", false},         {"http://h:80", "http://h", true},
        {"https://[::1]", "https://[0:0::1]", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upstream_url a, b;
        assert_int_equal(parse(&a, cases[i].a, strlen(cases[i].a), NULL), 0);
        assert_int_equal(parse(&b, cases[i].b, strlen(cases[i].b), NULL), 0);
        assert_int_equal(upstream_url_same_origin(&a, &b), cases[i].same);
    }
}

static void targets_are_joined(void **state)
{
    (void)state;
    static const struct {
        const char *url, *target, *joined;
    } cases[] = {
        {"https://h", "/n", "/"},
        {"https://h", "/n/", "/"},
        {"https://h", "/n?q", "/?q"},
        {"https://h", "/n/a//b/?x=%2f", "/a//b/?x=%2f"},
        {"https://h/", "/n/a", "/a"},
        {"https://h//", "/n/a", "/a"},
        {"https://h/simple", "/n", "/simple"},
        {"https://h/simple/", "/n", "/simple/"},
        {"https://h/simple/", "/n/", "/simple/"},
        {"https://h/simple/", "/n?", "/simple/?"},
        {"https://h/simple/", "/n/foo/", "/simple/foo/"},
        {"https://h/a/b", "/n/@s%2fp?write=true", "/a/b/@s%2fp?write=true"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upstream_url url;
        struct target target;
        enum target_fault fault;
        size_t size = strlen(cases[i].joined) + 1;
        char *out = guard_alloc(size);
        assert_int_equal(upstream_url_parse(&url, cases[i].url, strlen(cases[i].url), NULL), 0);
        assert_int_equal(
            target_parse(&target, SLICE_LITERAL("GET"), slice_of(cases[i].target), &fault), 0);
        assert_int_equal(upstream_url_join(&url, &target, out, size), size - 1);
        assert_string_equal(out, cases[i].joined);
        assert_int_equal(upstream_url_join(&url, &target, out, size - 1), -ENOSPC);
        guard_free(out, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(the_gateway_has_conditions_of_its_own),
        cmocka_unit_test(origins_are_compared_by_parts),
        cmocka_unit_test(targets_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
