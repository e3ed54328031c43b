/* Secrets: form, difference at every place, wiping. Whether the time is constant is not measured
 * here: the code has no branch to measure. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/os/secret.h"

static void made_secrets_differ_and_have_the_form(void **state)
{
    (void)state;
    char first[SECRET_HEX_LENGTH + 1], second[SECRET_HEX_LENGTH + 1];
    assert_int_equal(secret_make_hex(first), 0);
    assert_int_equal(secret_make_hex(second), 0);
    assert_true(secret_is_hex(first));
    assert_true(secret_is_hex(second));
    assert_string_not_equal(first, second);
}

static void only_64_lower_case_digits_are_a_secret(void **state)
{
    (void)state;
    char text[SECRET_HEX_LENGTH + 2];
    memset(text, 'a', sizeof(text));
    text[SECRET_HEX_LENGTH] = '\0';
    assert_true(secret_is_hex(text));
    text[63] = 'A';
    assert_false(secret_is_hex(text));
    text[63] = 'g';
    assert_false(secret_is_hex(text));
    text[63] = '\0';
    assert_false(secret_is_hex(text));
    text[63] = text[64] = 'a';
    text[65] = '\0';
    assert_false(secret_is_hex(text));
    assert_false(secret_is_hex(""));
}

static void a_difference_anywhere_counts(void **state)
{
    (void)state;
    char a[SECRET_HEX_LENGTH], b[SECRET_HEX_LENGTH];
    memset(a, 'x', sizeof(a));
    memset(b, 'x', sizeof(b));
    assert_true(secret_equal(a, b, sizeof(a)));
    assert_true(secret_equal(a, "y", 0));
    for (size_t i = 0; i < sizeof(a); i++)
        for (int bit = 0; bit < 8; bit++) {
            b[i] = (char)(b[i] ^ (1 << bit));
            assert_false(secret_equal(a, b, sizeof(a)));
            b[i] = a[i];
        }
}

static void wiping_leaves_zeros(void **state)
{
    (void)state;
    char memory[40], zeros[32] = {0};
    memset(memory, 'x', sizeof(memory));
    secret_wipe(memory, 32);
    assert_memory_equal(memory, zeros, 32);
    assert_int_equal(memory[32], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_secrets_differ_and_have_the_form),
        cmocka_unit_test(only_64_lower_case_digits_are_a_secret),
        cmocka_unit_test(a_difference_anywhere_counts),
        cmocka_unit_test(wiping_leaves_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
