/* Rules found by name and by address: fixed cases, then random ones compared with a search over all
 * rules. */
#include "test/harness/unit.h"

#include <stdio.h>

#include "host-broker/rules/rules.h"
#include "test/harness/guard.h"

static struct rules rules;

static void read_rules(const char *text)
{
    struct failure why;
    if (rules_parse(&rules, "F", text, strlen(text), &why) != 0)
        fail_msg("%s", why.text);
}

static void many_names(void **state)
{
    static char text[RULES_MAX * 64];
    size_t length = (size_t)sprintf(text, "{");
    char name[RULE_NAME_MAX + 1];
    (void)state;
    for (int i = 0; i < RULES_MAX; i++)
        length += (size_t)sprintf(text + length, "%s\"r%d\":\"https://h%d\"", i ? "," : "",
                                  i * 37 % RULES_MAX, i);
    sprintf(text + length, "}");
    read_rules(text);
    for (int i = 0; i < RULES_MAX; i++) {
        sprintf(name, "r%d", i * 37 % RULES_MAX);
        char *guarded = guard_copy(name, strlen(name));
        assert_ptr_equal(rules_find(&rules, (struct slice){guarded, strlen(name)}),
                         &rules.rules[i]);
        guard_free(guarded, strlen(name));
    }
    static const char *const absent[] = {"", "r", "r1024", "q", "s", "r10240", "R1", "r1 ", "r01"};
    for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
        assert_null(rules_find(&rules, slice_of(absent[i])));
    assert_null(rules_find(&rules, (struct slice){"r1\0", 3}));
    assert_null(rules_find(&rules, (struct slice){NULL, 0}));
}

static struct upstream_url origin_of(const char *url)
{
    struct upstream_url out;
    assert_int_equal(upstream_url_parse(&out, url, strlen(url), NULL), 0);
    return out;
}

static void addresses(void **state)
{
    static const struct {
        const char *origin, *path, *preferred, *expected, *rest; /* NULL: under none */
    } cases[] = {
        {"https://h", "/x", NULL, "top", "/x"},
        {"https://h", "", NULL, "top", ""},
        {"https://h", "/", NULL, "top", "/"},
        {"https://h", "/a", NULL, "a", ""},
        {"https://h", "/a/", NULL, "a", "/"},
        {"https://h", "/ab", NULL, "top", "/ab"},
        {"https://h", "/a/b/c", NULL, "deep", "/c"},
        {"https://h", "/a/b/c", "twin", "twin", "/c"},
        {"https://h", "/a/b/c", "a", "deep", "/c"},
        {"https://h", "/a/bc", NULL, "a", "/bc"},
        {"https://h", "/%61/x", NULL, "a", "/x"},
        {"https://h", "/long%2Fname/x", NULL, "encoded", "/x"},
        {"https://h", "/long%2fname", NULL, "encoded", ""},
        {"https://h", "/long/name", NULL, "top", "/long/name"},
        {"https://h", "/a%2Fb/c", NULL, "top", "/a%2Fb/c"},
        {"https://h", "//a", NULL, "top", "//a"},
        {"https://h", "/a//", NULL, "a", "//"},
        {"https://h", "/a%", NULL, "top", "/a%"},
        {"https://h", "/a/%4", NULL, "a", "/%4"},
        {"https://h:444", "/a", NULL, NULL, NULL},
        {"http://h:443", "/a", NULL, NULL, NULL},
        {"https://g", "/a", NULL, NULL, NULL},
        {"https://i", "/a", NULL, NULL, NULL},
        {"https://only", "/deeper/x", NULL, "only", "/x"},
        {"https://only", "/", NULL, NULL, NULL},
        {"https://[::1]:81", "/~m/x", NULL, "six", "/x"},
    };
    (void)state;
    read_rules("{\"deep\":\"https://h/a/b/\",\"top\":\"https://H/\",\"twin\":\"https://h/%61/b\","
               "\"a\":\"https://h/a\",\"encoded\":\"https://h/long%2fname\","
               "\"only\":\"https://only/deeper\",\"six\":\"https://[::1]:81/%7em\"}");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct upstream_url origin = origin_of(cases[i].origin);
        size_t length = strlen(cases[i].path);
        char *guarded = guard_copy(cases[i].path, length);
        struct slice rest = {NULL, 0};
        const struct rule *preferred =
            cases[i].preferred ? rules_find(&rules, slice_of(cases[i].preferred)) : NULL;
        const struct rule *rule =
            rules_find_address(&rules, preferred, &origin, (struct slice){guarded, length}, &rest);
        if (!cases[i].expected)
            assert_null(rule);
        else if (!rule)
            fail_msg("case %zu: under none", i);
        else
            assert_string_equal(rule->name, cases[i].expected);
        if (rule)
            assert_true(slice_equal(rest, slice_of(cases[i].rest)));
        guard_free(guarded, length);
    }
}

/* --- at random --- */

static uint32_t next_random(void)
{
    static uint32_t seed = 1;
    seed = seed * 1664525u + 1013904223u;
    return seed >> 16;
}

/* Up to four folders of one letter each. */
static size_t random_path(char *out)
{
    size_t length = 0;
    for (uint32_t left = next_random() % 5; left > 0; left--)
        length += (size_t)sprintf(out + length, "/%c", "abc"[next_random() % 3]);
    out[length] = '\0';
    return length;
}

/* What the header says, by looking at every rule: these paths have one spelling. */
static const struct rule *look_at_all(const struct rule *preferred,
                                      const struct upstream_url *origin, const char *path)
{
    const struct rule *best = NULL;
    for (size_t i = 0; i < rules.count; i++) {
        const struct rule *rule = &rules.rules[i];
        size_t length = rule->url.prefix_length;
        if (!upstream_url_same_origin(&rule->url, origin) ||
            strncmp(rule->url.path, path, length) != 0 || (path[length] && path[length] != '/'))
            continue;
        if (!best || length > best->url.prefix_length ||
            (length == best->url.prefix_length && rule == preferred))
            best = rule;
    }
    return best;
}

static void as_by_looking_at_all(void **state)
{
    static const char *const hosts[] = {"https://h", "https://h:1", "http://h:443", "https://hh"};
    static char text[200 * 80];
    char path[16];
    (void)state;
    for (int round = 0; round < 200; round++) {
        size_t length = (size_t)sprintf(text, "{");
        uint32_t count = next_random() % 200;
        for (uint32_t i = 0; i < count; i++) {
            random_path(path);
            length += (size_t)sprintf(text + length, "%s\"r%u\":\"%s%s\"", i ? "," : "", i,
                                      hosts[next_random() % 4], path);
        }
        sprintf(text + length, "}");
        read_rules(text);
        for (int i = 0; i < 50; i++) {
            struct upstream_url origin = origin_of(hosts[next_random() % 4]);
            struct slice rest = {NULL, 0}, whole = {path, random_path(path)};
            const struct rule *preferred = count ? &rules.rules[next_random() % count] : NULL;
            const struct rule *expected = look_at_all(preferred, &origin, path);
            assert_ptr_equal(rules_find_address(&rules, preferred, &origin, whole, &rest),
                             expected);
            if (expected)
                assert_ptr_equal(rest.bytes, path + expected->url.prefix_length);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_names),
        cmocka_unit_test(addresses),
        cmocka_unit_test(as_by_looking_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
