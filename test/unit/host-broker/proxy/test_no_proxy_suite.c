/* The decisions of Go's suite, with the differences listed. The suite is no part of this tree: it
 * is looked for in $CODEV_SUITES, and without it the tests are skipped and say
 * so.
 */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "host-broker/proxy/no_proxy_internal.h"
#include "host-broker/proxy/proxy_settings.h"

/* golang.org/x/net/http/httpproxy, UseProxyTests: this list, and loopback, are asked directly. */
#define GO_LIST                                                                                    \
    "foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, "        \
    "10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, "               \
    "2002:db8:a::45/64"

/* Where we decide otherwise than Go, as curl does: .barbaz.net means the apex too. */
static const char *const differing_hosts[] = {"barbaz.net"};

/* In ProxyForURL: the leading dot again; and names are compared as written, as rules hold punycode
 * only. */
static const struct {
    const char *list, *url;
} differing_urls[] = {
    {".example.com", "http://example.com/"},
    {"\xe7\xa4\xba\xe4\xbe\x8b.com", "http://www.xn--fsq092h.com"},
};

static struct json_token tokens[4096];
static char bytes[64 * 1024];
static struct json suite;

static bool open_suite(void)
{
    const char *root = getenv("CODEV_SUITES");
    char path[4096];
    struct json_position where;
    snprintf(path, sizeof(path), "%s/noproxy/go-httpproxy.json", root ? root : "CODEV_SUITES");
    ssize_t length = io_read_file(AT_FDCWD, path, 0, bytes, sizeof(bytes));
    if (length == -ENOENT) {
        print_message("skipped: no %s (CODEV_SUITES names its folder)\n", path);
        return false;
    }
    assert_true(length > 0);
    assert_int_equal(
        json_parse(&suite, bytes, (size_t)length, tokens, ARRAY_LENGTH(tokens), &where), 0);
    return true;
}

static bool is_listed(const char *const *list, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], text) == 0)
            return true;
    return false;
}

static void hosts_are_decided_as_in_go(void **state)
{
    (void)state;
    if (!open_suite())
        skip();
    uint32_t list = json_member(&suite, 0, "use_proxy");
    unsigned count = 0;
    for (uint32_t at = json_first(&suite, list); at != 0; at = json_next(&suite, list, at)) {
        char host[256], text[300];
        struct upstream_url url;
        assert_true(json_string(&suite, json_member(&suite, at, "host"), host, sizeof(host)) > 0);
        bool wanted = suite.tokens[json_member(&suite, at, "use_proxy")].type == JSON_TRUE;
        snprintf(text, sizeof(text), "http://%s", host);
        assert_int_equal(upstream_url_parse(&url, text, strlen(text), NULL), 0);
        bool proxied = !upstream_url_is_loopback(&url) && !no_proxy_matches(GO_LIST, &url);
        bool differs = is_listed(differing_hosts, ARRAY_LENGTH(differing_hosts), host);
        if ((proxied == wanted) == differs)
            fail_msg("%s: through a proxy %d, in Go %d", host, proxied, wanted);
        count++;
    }
    assert_int_equal(count, 27);
}

/* The environment of the case in hand. */
static char variables[3][256];

static const char *get_variable(const char *name)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "no_proxy"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0)
            return variables[i];
    return NULL;
}

static void take_variable(uint32_t config, const char *member, char out[256])
{
    uint32_t value = json_member(&suite, config, member);
    out[0] = '\0';
    if (value != 0)
        assert_true(json_string(&suite, value, out, 256) > 0);
}

/* The way for a URL as Go writes it: the proxy's URL, without a port that nobody wrote, or
 * <nil>. */
static void find_way(const struct upstream_url *url, char out[PROXY_URL_MAX])
{
    static struct proxy_options options;
    static struct proxy_settings settings;
    proxy_settings_read(&settings, &options, get_variable);
    const struct proxy_choice *choice = proxy_settings_find(&settings, url);
    snprintf(out, PROXY_URL_MAX, "<nil>");
    if (choice->answer != PROXY_ANSWER_LIST)
        return;
    proxy_format_url(&choice->list.proxies[0], true, out);
    static const char *const unwritten[] = {":80", ":443", ":1080"};
    for (size_t i = 0; i < ARRAY_LENGTH(unwritten); i++) {
        size_t length = strlen(out), cut = strlen(unwritten[i]);
        if (length > cut && strcmp(out + length - cut, unwritten[i]) == 0)
            out[length - cut] = '\0';
    }
}

static bool url_differs(const char *url)
{
    for (size_t i = 0; i < ARRAY_LENGTH(differing_urls); i++)
        if (strcmp(differing_urls[i].url, url) == 0 &&
            strcmp(differing_urls[i].list, variables[2]) == 0)
            return true;
    return false;
}

static void urls_are_decided_as_in_go(void **state)
{
    (void)state;
    if (!open_suite())
        skip();
    uint32_t list = json_member(&suite, 0, "proxy_for_url");
    unsigned judged = 0, skipped = 0;
    for (uint32_t at = json_first(&suite, list); at != 0; at = json_next(&suite, list, at)) {
        char request[256], wanted[256], way[PROXY_URL_MAX];
        struct upstream_url url;
        uint32_t config = json_member(&suite, at, "cfg");
        assert_true(json_string(&suite, json_member(&suite, at, "req"), request, 256) > 0);
        assert_true(json_string(&suite, json_member(&suite, at, "want"), wanted, 256) > 0);
        /* no CGI program; no upstream by ftp or with a name that is not in punycode */
        if (json_member(&suite, config, "CGI") != 0 ||
            upstream_url_parse(&url, request, strlen(request), NULL) < 0) {
            skipped++;
            continue;
        }
        take_variable(config, "HTTPProxy", variables[0]);
        take_variable(config, "HTTPSProxy", variables[1]);
        take_variable(config, "NoProxy", variables[2]);
        find_way(&url, way);
        if ((strcmp(way, wanted) == 0) == url_differs(request))
            fail_msg("%s: by %s, in Go %s", request, way, wanted);
        judged++;
    }
    assert_int_equal(judged, 18);
    assert_int_equal(skipped, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_are_decided_as_in_go),
        cmocka_unit_test(urls_are_decided_as_in_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
