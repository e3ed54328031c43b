/* vmx and svm count only as words of a flags line. */
#include "test/harness/unit.h"

#include <string.h>

#include "qemu-harness/launcher/machine/accelerator_internal.h"
#include "test/harness/guard.h"

static bool has(const char *text)
{
    size_t length = strlen(text);
    char *guarded = guard_copy(text, length);
    bool result = accelerator_cpu_has_virtualization(guarded, length);
    guard_free(guarded, length);
    return result;
}

static void words_of_the_flags_line(void **state)
{
    (void)state;
    assert_true(has("processor\t: 0\nflags\t\t: fpu vmx sse\n"));
    assert_true(has("flags\t\t: fpu svm"));
    assert_true(has("flags: vmx\n"));
    assert_false(has(""));
    assert_false(has("flags"));
    assert_false(has("flags\t\t: fpu sse\n"));
    assert_false(has("flags\t\t: avmx vmxx svm_lock\n"));
    assert_false(has("model name\t: the svm machine\nflags\t\t: fpu\n"));
    assert_false(has("vmx flags\t\t: ept vmx\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_of_the_flags_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
