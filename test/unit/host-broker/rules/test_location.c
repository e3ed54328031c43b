/* Location: the rule under which it lies, and the result for each kind of reference. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host-broker/rules/location.h"
#include "test/harness/guard.h"

#define GUEST "http://127.0.0.1:8788"

static const char rules_text[] = "{\"npm\":\"https://registry.example\","
                                 "\"files\":\"https://files.example/packages/\","
                                 "\"deep\":\"https://files.example/packages/deep\","
                                 "\"twin\":\"https://files.example/packages\","
                                 "\"six\":\"https://[2001:db8::1]:8443/x\","
                                 "\"lan\":\"http://registry:8081/~me\","
                                 "\"same\":\"https://llm.example/files\"}";

static struct rules rules;

struct origin_case {
    const char *rule; /* NULL: the gateway */
    const char *path; /* asked there */
};

static int rewrite(const struct origin_case *from, const char *value, char *out, size_t size)
{
    struct upstream_url gateway;
    bool removed;
    assert_int_equal(upstream_url_parse_gateway(&gateway, "https://llm.example", &removed, NULL),
                     0);
    const struct rule *rule = from->rule ? rules_find(&rules, slice_of(from->rule)) : NULL;
    struct location_context context = {
        .guest_url = GUEST,
        .rules = &rules,
        .rule = rule,
        .origin = rule ? &rule->url : &gateway,
        .path = slice_of(from->path),
    };
    size_t length = strlen(value);
    char *guarded = guard_copy(value, length);
    int result = location_rewrite(out, size, (struct slice){guarded, length}, &context);
    guard_free(guarded, length);
    return result;
}

static const struct origin_case npm = {"npm", "/a/b?q"};
static const struct origin_case files = {"files", "/packages/a/b"};
static const struct origin_case twin = {"twin", "/packages/a/b"};
static const struct origin_case gateway = {NULL, "/v1/x"};
static const struct origin_case lan = {"lan", "/~me/a"};

static const struct {
    const struct origin_case *from;
    const char *value, *expected; /* behind GUEST; NULL: stays as it is */
} redirects[] = {
    {&npm, "https://registry.example/c", "/npm/c"},
    {&npm, "https://REGISTRY.example:443/c?x=1#f", "/npm/c?x=1#f"},
    {&npm, "HTTPS://registry.example", "/npm/"},
    {&npm, "https://registry.example?x", "/npm/?x"},
    {&npm, "//registry.example/c", "/npm/c"},
    {&npm, "/c/d/", "/npm/c/d/"},
    {&npm, "c", "/npm/a/c"},
    {&npm, "../c/./d/..", "/npm/c/"},
    {&npm, "../../../../c", "/npm/c"},
    {&npm, "?x", "/npm/a/b?x"},
    {&npm, "#f", NULL},
    {&npm, "", NULL},
    {&npm, "  /c\t", "/npm/c"},
    {&npm, "/@s%2fp//x/", "/npm/@s%2fp//x/"},
    {&npm, "/a b\xc3\xa4", "/npm/a%20b%C3%A4"},
    {&npm, "\\\\registry.example\\c", "/npm/c"},
    {&npm, "https://files.example/packages", "/files"},
    {&npm, "https://files.example/packages/", "/files/"},
    {&npm, "https://files.example/packages/x.whl", "/files/x.whl"},
    {&twin, "https://files.example/packages/x.whl", "/twin/x.whl"},
    {&npm, "https://files.example/packages/deep/x", "/deep/x"},
    {&twin, "https://files.example/packages/deep/x", "/deep/x"},
    {&npm, "https://files.example/packages/deeper", "/files/deeper"},
    {&files, "x", "/files/a/x"},
    {&npm, "https://[2001:DB8:0::1]:8443/x/y", "/six/y"},
    {&npm, "http://registry:8081/%7Eme/z", "/lan/z"},
    {&npm, "http://registry:8081/~me", "/lan"},
    {&lan, "/%7eme/q", "/lan/q"},
    {&npm, "mailto:x@example", NULL},
    {&npm, "ftp://files.example/packages/x", NULL},
    {&npm, "https:x", NULL},
    {&npm, "data:text/plain,x", NULL},
    /* the gateway is no target, unless a rule names it */
    {&npm, "https://llm.example/v1/keys", "/_undeclared/llm.example"},
    {&gateway, "/v1/y", "/_undeclared/llm.example"},
    {&gateway, "y", "/_undeclared/llm.example"},
    {&gateway, "https://llm.example/files/x", "/same/x"},
    {&gateway, "https://registry.example/x", "/npm/x"},
    /* not the same origin */
    {&npm, "http://registry.example/c", "/_undeclared/registry.example"},
    {&npm, "https://registry.example:8443/c", "/_undeclared/registry.example:8443"},
    {&npm, "https://registry.example.evil.example/c", "/_undeclared/registry.example.evil.example"},
    {&npm, "https://xregistry.example/c", "/_undeclared/xregistry.example"},
    {&npm, "https://[2001:db8::2]/x", "/_undeclared/%5B2001:db8::2%5D"},
    /* not under the prefix */
    {&npm, "https://files.example/packagesx", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages%2fx", "/_undeclared/files.example"},
    {&npm, "https://files.example/PACKAGES/x", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages%2fdeep/x", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages/../x", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages/%2e%2e/x", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages/..;/x", "/_undeclared/files.example"},
    {&npm, "https://files.example/packages\\..\\x", "/_undeclared/files.example"},
    {&npm, "https://files.example", "/_undeclared/files.example"},
    {&files, "/x", "/_undeclared/files.example"},
    /* hosts that cannot be declared, and passwords */
    {&npm, "https://user:secret@registry.example/c", "/_undeclared/registry.example"},
    {&npm, "https://registry.example@evil.example/", "/_undeclared/evil.example"},
    {&npm, "https://evil.example\\@registry.example/", "/_undeclared/evil.example"},
    {&npm, "https://registry.example./c", "/_undeclared/registry.example."},
    {&npm, "https://127.1/c", "/_undeclared/127.1"},
    {&npm, "https:///c", "/_undeclared/"},
    {&npm, "https://a<b/c", "/_undeclared/a%3Cb"},
    {&npm, "https://a%2/c", "/_undeclared/a%252"},
    {&npm, "https://../c", "/_undeclared/"},
    {&npm, "https://..;x/c", "/_undeclared/"},
};

static void redirects_become_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(redirects) / sizeof(redirects[0]); i++) {
        char out[512] = "", expected[512] = "";
        int result = rewrite(redirects[i].from, redirects[i].value, out, sizeof(out));
        if (redirects[i].expected)
            snprintf(expected, sizeof(expected), GUEST "%s", redirects[i].expected);
        if (result != (int)strlen(expected) || strcmp(out, expected) != 0)
            fail_msg("%s: %d %s", redirects[i].value, result, out);
    }
}

static void what_does_not_fit_is_an_error(void **state)
{
    (void)state;
    static char value[LOCATION_MAX + 2], out[2 * LOCATION_MAX];
    static const char expected[] = GUEST "/npm/c";
    assert_int_equal(rewrite(&npm, "/c", out, sizeof(expected)), sizeof(expected) - 1);
    assert_int_equal(rewrite(&npm, "/c", out, sizeof(expected) - 1), -ENOSPC);
    memset(value, 'x', sizeof(value) - 1);
    value[0] = '/';
    assert_int_equal(rewrite(&npm, value, out, sizeof(out)), -EMSGSIZE);
    value[LOCATION_MAX - 1] = '\0';
    assert_int_equal(rewrite(&npm, value, out, sizeof(out)),
                     sizeof(GUEST "/npm") - 1 + LOCATION_MAX - 1);
    assert_int_equal(rewrite(&npm, value + 1, out, sizeof(out)), -EMSGSIZE); /* with the base */
}

static int set_up(void **state)
{
    (void)state;
    return rules_parse(&rules, "F", rules_text, sizeof(rules_text) - 1, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redirects_become_routes),
        cmocka_unit_test(what_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
