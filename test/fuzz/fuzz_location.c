/* Redirects: the first byte chooses the upstream, the rest is the Location. The result is a target
 * that the broker accepts, never the gateway's, and a rule's only with that rule's name.
 */
#include <errno.h>
#include <string.h>

#include "host-broker/http/target.h"
#include "host-broker/rules/location.h"
#include "test/fuzz/fuzz.h"

#define GUEST "http://127.0.0.1:8788"

static const char rules_text[] =
    "{\"npm\":\"https://a.example\",\"files\":\"https://b.example/p/\","
    "\"deep\":\"https://b.example/p/q\",\"lan\":\"http://[::1]:81/~m\"}";

static struct rules rules;

static void check_rewritten(const char *out, int length)
{
    struct target target;
    enum target_fault fault;
    FUZZ_CHECK(length > (int)strlen(GUEST) && strlen(out) == (size_t)length);
    FUZZ_CHECK(memcmp(out, GUEST, strlen(GUEST)) == 0);
    const char *text = out + strlen(GUEST);
    struct slice without_fragment = {text, strcspn(text, "#")};
    FUZZ_CHECK(target_parse(&target, SLICE_LITERAL("GET"), without_fragment, &fault) == 0);
    FUZZ_CHECK(!slice_equal(target.name, SLICE_LITERAL(TARGET_GATEWAY)));
    FUZZ_CHECK(slice_equal(target.name, SLICE_LITERAL(TARGET_UNDECLARED)) ||
               rules_find(&rules, target.name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char out[3 * LOCATION_MAX];
    struct upstream_url gateway;
    bool removed;
    if (rules.count == 0)
        FUZZ_CHECK(rules_parse(&rules, "F", rules_text, sizeof(rules_text) - 1, NULL) == 0);
    if (size == 0 || size > LOCATION_MAX)
        return 0;
    FUZZ_CHECK(upstream_url_parse_gateway(&gateway, "https://g.example/base", &removed, NULL) == 0);
    const struct rule *rule = data[0] % 5 == 4 ? NULL : &rules.rules[data[0] % 5];
    struct location_context context = {
        .guest_url = GUEST,
        .rules = &rules,
        .rule = rule,
        .origin = rule ? &rule->url : &gateway,
        .path = SLICE_LITERAL("/p/q/r?s"),
    };
    struct slice value = {(const char *)data + 1, size - 1};
    int length = location_rewrite(out, sizeof(out), value, &context);
    FUZZ_CHECK(length >= 0 || length == -EMSGSIZE);
    if (length > 0)
        check_rewritten(out, length);
    return 0;
}
