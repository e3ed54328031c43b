/* One link: the rule under which it lies, and which part of it is kept. Rules are found as for
 * redirects (test_location.c); these are the cases that differ. */
#include "test/harness/rewrite_run.h"

static const struct {
    const char *link, *expected; /* behind GUEST; NULL: stays */
} links[] = {
    {"https://registry.example/a", "/npm/a"},
    {"HTTPS://REGISTRY.EXAMPLE:443/a?b#c", "/npm/a?b#c"},
    {"https://registry.example", "/npm"},
    {"https://registry.example/", "/npm/"},
    {"https://registry.example?x", "/npm?x"},
    {"https://registry.example#x", "/npm#x"},
    {"//registry.example/a", "/npm/a"},
    {"/a/b", "/npm/a/b"},
    {"/", "/npm/"},
    {"https://files.example/packages", "/files"},
    {"https://files.example/packages/deep", "/deep"},
    {"https://files.example/packages/deep?x", "/deep?x"},
    {"https://files.example/packages/deeper", "/files/deeper"},
    {"https://files.example/%70ackages/x", "/files/x"},
    {"https://[2001:DB8:0::1]:8443/x/y", "/six/y"},
    {"http://registry:8081/%7Eme/z", "/lan/z"},
    {"https://registry.example/\xc3\xa4 b", "/npm/\xc3\xa4 b"},
    {"https://registry.example/a?x=../..", "/npm/a?x=../.."},
    {"https://registry.example/a%2f..%5cb", "/_undeclared/registry.example"},
    /* elsewhere */
    {"http://registry.example/a", "/_undeclared/registry.example/a"},
    {"https://registry.example:8443/a", "/_undeclared/registry.example:8443/a"},
    {"https://registry.example.evil.example/a", "/_undeclared/registry.example.evil.example/a"},
    {"https://files.example/packagesx", "/_undeclared/files.example/packagesx"},
    {"https://files.example", "/_undeclared/files.example"},
    {"https://[2001:db8::2]/x", "/_undeclared/%5B2001:db8::2%5D/x"},
    {"https://files.example/packages%2fx", "/_undeclared/files.example/packages%2fx"},
    /* paths that no request has */
    {"https://files.example/packages/../x", "/_undeclared/files.example"},
    {"https://files.example/packages/%2e%2e/x", "/_undeclared/files.example"},
    {"https://files.example/packages/a%zz", "/_undeclared/files.example"},
    /* passwords, and hosts that cannot be declared */
    {"https://user:secret@registry.example/a", "/_undeclared/registry.example/a"},
    {"https://registry.example@evil.example/a", "/_undeclared/evil.example/a"},
    {"https://evil.example\\@registry.example/", "/_undeclared/evil.example\\@registry.example/"},
    {"https://registry.example./a", "/_undeclared/registry.example./a"},
    {"https://127.1/a", "/_undeclared/127.1/a"},
    {"https:///a", "/_undeclared//a"},
    {"https://../a", "/_undeclared//a"},
    /* what stays */
    {"", NULL},
    {"a/b", NULL},
    {"../a", NULL},
    {"?x", NULL},
    {"#x", NULL},
    {"ftp://registry.example/a", NULL},
    {"git+https://registry.example/a", NULL},
    {"https:a", NULL},
    {"https:/registry.example/a", NULL},
    {"mailto:a@registry.example", NULL},
    {"file:///a", NULL},
};

static size_t rewrite(const char *link, char *out, const struct rewrite_notation *notation)
{
    struct location_context context = test_context();
    size_t length = strlen(link), size = length + REWRITE_LINK_GROWTH;
    char *raw = guard_copy(link, length), *guarded = guard_alloc(size);
    size_t result =
        rewrite_link(guarded, size, (struct slice){raw, length}, notation, &context, NULL);
    memcpy(out, guarded, result);
    out[result] = '\0';
    guard_free(raw, length);
    guard_free(guarded, size);
    return result;
}

static void test_links(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        char out[4096], expected[4096];
        /* notations agree on what has no escapes; JSON has one for a backslash */
        if (!strchr(links[i].link, '\\'))
            rewrite(links[i].link, out, &rewrite_json_notation);
        else
            rewrite(links[i].link, out, &rewrite_html_notation);
        snprintf(expected, sizeof(expected), GUEST "%s",
                 links[i].expected ? links[i].expected : "");
        assert_string_equal(out, links[i].expected ? expected : "");
    }
}

static void test_a_long_authority_stays(void **state)
{
    (void)state;
    static char link[REWRITE_LINK_MAX + 16], out[2 * REWRITE_LINK_MAX];
    snprintf(link, sizeof(link), "https://%s", "");
    memset(link + 8, '!', 4000);
    link[4008] = '\0';
    assert_int_equal(rewrite(link, out, &rewrite_json_notation), 0);
    memset(link + 8, ' ', 7000); /* its clean form has no room */
    link[7008] = 'x';
    assert_int_equal(rewrite(link, out, &rewrite_json_notation), 0);
}

static void test_the_origin_is_told(void **state)
{
    (void)state;
    char out[4096];
    struct location_context context = test_context();
    struct upstream_url origin = {.port = 7};
    rewrite_link(out, sizeof(out), SLICE_LITERAL("/x"), &rewrite_html_notation, &context, &origin);
    assert_int_equal(origin.port, 7);
    rewrite_link(out, sizeof(out), SLICE_LITERAL("https://user@h/"), &rewrite_html_notation,
                 &context, &origin);
    assert_int_equal(origin.port, 7);
    rewrite_link(out, sizeof(out), SLICE_LITERAL("https://h:9/"), &rewrite_html_notation, &context,
                 &origin);
    assert_int_equal(origin.port, 9);
    assert_string_equal(origin.host, "h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_a_long_authority_stays),
        cmocka_unit_test(test_the_origin_is_told),
    };
    return cmocka_run_group_tests_name("rewrite_link", tests, load_rules, NULL);
}
