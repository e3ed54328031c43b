/* Failure texts: results passed through, texts cut, never beyond the struct. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "common/os/failure.h"
#include "test/harness/guard.h"

static void returns_the_negative_error(void **state)
{
    (void)state;
    struct failure why;
    assert_int_equal(failure_set(&why, EINVAL, "mount %s", "/a"), -EINVAL);
    assert_string_equal(why.text, "mount /a");
    assert_int_equal(failure_errno(&why, ENOENT, "open %s", "/b"), -ENOENT);
    assert_string_equal(why.text, "open /b: No such file or directory");
    assert_int_equal(failure_prefix(&why, -EPERM, "stage %d", 3), -EPERM);
    assert_string_equal(why.text, "stage 3: open /b: No such file or directory");
}

static void works_without_a_reader(void **state)
{
    (void)state;
    assert_int_equal(failure_set(NULL, EINVAL, "x"), -EINVAL);
    assert_int_equal(failure_errno(NULL, EINVAL, "x"), -EINVAL);
    assert_int_equal(failure_prefix(NULL, -EIO, "x"), -EIO);
}

static void cuts_what_does_not_fit(void **state)
{
    (void)state;
    char longer[2 * FAILURE_TEXT_MAX];
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    struct failure *why = guard_alloc(sizeof(*why));
    failure_set(why, EINVAL, "%s", longer);
    assert_int_equal(strlen(why->text), FAILURE_TEXT_MAX - 1);
    failure_errno(why, EINVAL, "%s", longer);
    assert_int_equal(strlen(why->text), FAILURE_TEXT_MAX - 1);
    failure_prefix(why, -EINVAL, "b");
    assert_int_equal(strlen(why->text), FAILURE_TEXT_MAX - 1);
    assert_memory_equal(why->text, "b: aaa", 6);
    guard_free(why, sizeof(*why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_the_negative_error),
        cmocka_unit_test(works_without_a_reader),
        cmocka_unit_test(cuts_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
