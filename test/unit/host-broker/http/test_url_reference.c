/* The host in a target "/_undeclared/HOST". The other functions are tested through location_rewrite
 * and rewrite_link (test_location.c, test_rewrite_link.c). */
#include "test/harness/unit.h"

#include <errno.h>

#include "host-broker/http/url_reference.h"

static void undeclared_hosts_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *target, *host; /* NULL: none can be named */
    } cases[] = {
        {"/_undeclared/files.example", "files.example"},
        {"/_undeclared/FILES.example:8443/a/b?c", "files.example:8443"},
        {"/_undeclared/h:443", "h"},
        {"/_undeclared/%5B::1%5d", "[::1]"},
        {"/_undeclared/", NULL},
        {"/_undeclared", NULL},
        {"/_undeclared/a%2fb", NULL},
        {"/_undeclared/%3Cscript%3E", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct target target;
        enum target_fault fault;
        char host[UPSTREAM_ORIGIN_MAX];
        assert_int_equal(
            target_parse(&target, SLICE_LITERAL("GET"), slice_of(cases[i].target), &fault), 0);
        assert_true(slice_equal(target.name, SLICE_LITERAL(TARGET_UNDECLARED)));
        int result = url_reference_undeclared_host(&target, host, sizeof(host));
        assert_int_equal(result, cases[i].host ? 0 : -EINVAL);
        if (cases[i].host)
            assert_string_equal(host, cases[i].host);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undeclared_hosts_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
