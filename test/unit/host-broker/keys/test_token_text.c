/* The content of the token's file: white space that is removed, and what is refused without being
 * quoted. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-broker/keys/token_text.h"
#include "test/harness/guard.h"

static int clean(const char *text, size_t length, char *out, struct failure *why)
{
    char *guarded = guard_alloc(length + 1);
    memcpy(guarded, text, length);
    int result = token_text_clean(guarded, length, why);
    if (result >= 0)
        memcpy(out, guarded, (size_t)result + 1);
    guard_free(guarded, length + 1);
    return result;
}

#define TEXT(text) text, sizeof(text) - 1

static void white_space_is_removed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        const char *token;
    } cases[] = {
        {TEXT("sk-1"), "sk-1"},       {TEXT("sk-1\n"), "sk-1"}, {TEXT("sk-1\r\n\r\n"), "sk-1"},
        {TEXT(" \tsk-1 \n"), "sk-1"}, {TEXT("x"), "x"},         {TEXT("two words"), "two words"},
        {TEXT("!\"#~"), "!\"#~"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[64];
        struct failure why;
        assert_int_equal(clean(cases[i].text, cases[i].length, out, &why), strlen(cases[i].token));
        assert_string_equal(out, cases[i].token);
    }
}

static void invalid_tokens_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t length;
        int error;
    } cases[] = {
        {TEXT(""), -ENODATA},
        {TEXT("\n"), -ENODATA},
        {TEXT(" \t\r\n"), -ENODATA},
        {TEXT("se\ncret"), -EINVAL},
        {TEXT("se\rcret"), -EINVAL},
        {TEXT("se\0cret"), -EINVAL},
        {TEXT("secret\0"), -EINVAL},
        {TEXT("\0secret"), -EINVAL},
        {TEXT("se\tcret"), -EINVAL},
        {TEXT("se  cret"), -EINVAL},
        {TEXT("secret\x7f"), -EINVAL},
        {TEXT("secr\xc3\xa9t"), -EINVAL},
        {TEXT("\xef\xbb\xbfsecret"), -EINVAL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[64];
        struct failure why = {""};
        assert_int_equal(clean(cases[i].text, cases[i].length, out, &why), cases[i].error);
        assert_true(why.text[0] != '\0' && !strstr(why.text, "cret"));
    }
}

static void length_is_limited(void **state)
{
    (void)state;
    static char text[TOKEN_TEXT_MAX + 2], out[TOKEN_TEXT_MAX + 2];
    memset(text, 'x', sizeof(text));
    struct failure why;
    assert_int_equal(clean(text, TOKEN_TEXT_MAX, out, &why), TOKEN_TEXT_MAX);
    assert_int_equal(clean(text, TOKEN_TEXT_MAX + 1, out, &why), -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_is_removed),
        cmocka_unit_test(invalid_tokens_are_refused),
        cmocka_unit_test(length_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
