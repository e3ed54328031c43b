/* The rules file: an error has a position; accepted names and URLs pass the checks alone, and a URL
 * that is written and parsed again is the same upstream.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-broker/rules/rules.h"
#include "test/fuzz/fuzz.h"

static struct rules rules;

static void check_rule(const struct rule *rule)
{
    char text[UPSTREAM_ORIGIN_MAX + UPSTREAM_PATH_MAX + 1];
    struct upstream_url again;
    struct failure why;
    FUZZ_CHECK(!rules_check_name(slice_of(rule->name)));
    FUZZ_CHECK(rules_find(&rules, slice_of(rule->name)) == rule);
    int length = upstream_url_origin(&rule->url, text, UPSTREAM_ORIGIN_MAX);
    FUZZ_CHECK(length > 0);
    strcpy(text + length, rule->url.path);
    FUZZ_CHECK(upstream_url_parse(&again, text, strlen(text), &why) == 0);
    FUZZ_CHECK(upstream_url_same_origin(&again, &rule->url));
    FUZZ_CHECK(strcmp(again.path, rule->url.path) == 0);
    FUZZ_CHECK(again.prefix_length == rule->url.prefix_length);
    FUZZ_CHECK(!strpbrk(rule->url.host, "@/?#\\% "));
    struct slice path = {rule->url.path, rule->url.prefix_length}, rest;
    FUZZ_CHECK(rules_find_address(&rules, rule, &again, path, &rest) == rule && rest.length == 0);
    const struct rule *first =
        rules_find_address(&rules, NULL, &again, slice_of(again.path), &rest);
    FUZZ_CHECK(first && first <= rule && upstream_url_same_origin(&first->url, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct failure why = {""};
    int result = rules_parse(&rules, "F", (const char *)data, size, &why);
    if (result != 0) {
        unsigned line = 0, column = 0;
        int behind = 0;
        FUZZ_CHECK(result == -EINVAL && rules.count == 0);
        FUZZ_CHECK(sscanf(why.text, "F:%u:%u: %n", &line, &column, &behind) == 2);
        FUZZ_CHECK(line > 0 && column > 0 && why.text[behind] != '\0');
        return 0;
    }
    for (size_t i = 0; i < rules.count; i++)
        check_rule(&rules.rules[i]);
    size_t cursor = 0, warnings = 0;
    char warning[256];
    while (rules_warning(&rules, &cursor, warning, sizeof(warning)))
        warnings++;
    FUZZ_CHECK(warnings <= 2 * rules.count);
    return 0;
}
