/* The Link header: only targets under a rule change. */
#include "test/harness/rewrite_run.h"

#include <errno.h>

#include "host-broker/rules/link_field.h"

#define TO "http://127.0.0.1:8788"

static const struct {
    const char *value, *expected; /* NULL: as it is */
} values[] = {
    {"<https://registry.example/x?page=2>; rel=\"next\"", "<" TO "/npm/x?page=2>; rel=\"next\""},
    {"<https://registry.example/x>;rel=next,<https://files.example/packages/y>;rel=last",
     "<" TO "/npm/x>;rel=next,<" TO "/files/y>;rel=last"},
    {"</x?page=2>; rel=next, <?page=3>; rel=last, <y>; rel=up",
     "<" TO "/npm/x?page=2>; rel=next, <" TO "/npm/a/b?page=3>; rel=last, <" TO
     "/npm/a/y>; rel=up"},
    {"<https://elsewhere.example/x>; rel=next", NULL},
    {"<https://files.example/other>; rel=next", NULL},
    {"<mailto:x>; rel=author", NULL},
    {"<>; rel=self", NULL},
    {"<#x>", NULL},
    {"<https://elsewhere.example/>; title=\"<https://registry.example/x>, "
     "\\\"<https://registry.example/>\"",
     NULL},
    {"<https://registry.example/x", NULL},
    {"https://registry.example/x", NULL},
    {"; <<https://registry.example/x>>, \"", NULL},
    {"x=\"", NULL},
    {"x=\"\\", NULL},
    {"<", NULL},
    {"", NULL},
};

static int rewrite(const char *value, char *out, size_t size)
{
    struct location_context context = test_context();
    context.path = SLICE_LITERAL("/a/b?q");
    size_t length = strlen(value);
    char *guarded = guard_copy(value, length);
    int result = link_field_rewrite(out, size, (struct slice){guarded, length}, &context);
    guard_free(guarded, length);
    return result;
}

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const char *expected = values[i].expected ? values[i].expected : values[i].value;
        char out[1024];
        int length = rewrite(values[i].value, out, sizeof(out));
        assert_int_equal(length, strlen(expected));
        assert_memory_equal(out, expected, strlen(expected));
        if (length > 0)
            assert_int_equal(rewrite(values[i].value, out, (size_t)length), -ENOSPC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values)};
    return cmocka_run_group_tests_name("link_field", tests, load_rules, NULL);
}
