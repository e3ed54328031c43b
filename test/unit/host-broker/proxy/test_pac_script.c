/* The tail that is appended to scripts, and libproxy's answers and debug output. */
#include "test/harness/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/proxy/pac_script_internal.h"
#include "test/harness/guard.h"

static char wrapped[PAC_SCRIPT_MAX], script[PAC_SCRIPT_MAX + 1];

static void a_script_keeps_its_bytes(void **state)
{
    (void)state;
    static const char text[] = "function FindProxyForURL(u,h){return \"DIRECT\"} // \xc3\xa4";
    char *guarded = guard_copy(text, sizeof(text) - 1);
    ssize_t length = pac_script_wrap(wrapped, guarded, sizeof(text) - 1, NULL);
    guard_free(guarded, sizeof(text) - 1);
    assert_true(length > (ssize_t)sizeof(text));
    assert_memory_equal(wrapped, text, sizeof(text) - 1);
    assert_int_equal(wrapped[sizeof(text) - 1], '\n'); /* ends a comment */
}

static void latin_1_becomes_utf_8(void **state)
{
    (void)state;
    assert_true(pac_script_wrap(wrapped, "// \xe4\n", 5, NULL) > 0);
    assert_memory_equal(wrapped, "// \xc3\xa4\n", 6);
}

static void what_cannot_be_run_is_refused(void **state)
{
    (void)state;
    struct failure why;
    assert_int_equal(pac_script_wrap(wrapped, "a\0b", 3, &why), -EINVAL);
    memset(script, 'x', sizeof(script));
    assert_int_equal(pac_script_wrap(wrapped, script, sizeof(script), &why), -EFBIG);
    ssize_t overhead = pac_script_wrap(wrapped, "", 0, NULL);
    assert_int_equal(pac_script_wrap(wrapped, script, sizeof(wrapped) - (size_t)overhead, NULL),
                     sizeof(wrapped));
    assert_int_equal(pac_script_wrap(wrapped, script, sizeof(wrapped) - (size_t)overhead + 1, NULL),
                     -EFBIG);
}

static const struct {
    const char *proxy;
    enum pac_script_end end;
    const char *text;
} answers[] = {
    {"direct://", PAC_SCRIPT_ABSENT, ""},
    {"http://proxy:3128", PAC_SCRIPT_ABSENT, ""},
    {"socks://r44", PAC_SCRIPT_ABSENT, ""},
    {"http://r", PAC_SCRIPT_RESULT, ""},
    {"http://r444952454354", PAC_SCRIPT_RESULT, "DIRECT"},
    {"http://r50524f585920613a313b20444952454354", PAC_SCRIPT_RESULT, "PROXY a:1; DIRECT"},
    {"http://r41:1", PAC_SCRIPT_RESULT, "A"},
    {"http://r410", PAC_SCRIPT_RESULT, "A"},
    {"http://r1b5b6d7f", PAC_SCRIPT_RESULT, " [m "}, /* nothing that a terminal obeys */
    {"http://e4572726f72", PAC_SCRIPT_THREW, "Error"},
    {"http://n6f626a656374", PAC_SCRIPT_NO_TEXT, "object"},
};

static void answers_are_told_apart(void **state)
{
    (void)state;
    char text[PROXY_RESULT_MAX + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
        if (pac_script_read(answers[i].proxy, text) != answers[i].end)
            fail_msg("%s", answers[i].proxy);
        assert_string_equal(text, answers[i].text);
    }
}

static void an_answer_has_a_maximum(void **state)
{
    (void)state;
    static char proxy[2 * PROXY_RESULT_MAX + 16];
    char text[PROXY_RESULT_MAX + 1];
    strcpy(proxy, "http://r");
    memset(proxy + 8, '4', 2 * PROXY_RESULT_MAX);
    assert_int_equal(pac_script_read(proxy, text), PAC_SCRIPT_RESULT);
    assert_int_equal(strlen(text), PROXY_RESULT_MAX);
    memset(proxy + 8, '4', 2 * PROXY_RESULT_MAX + 2);
    assert_int_equal(pac_script_read(proxy, text), PAC_SCRIPT_NO_TEXT);
}

static const struct {
    const char *output, *script;
} outputs[] = {
    {"", ""},
    {"Config is: \n", ""},
    {"Config is: \ncodev-proxy direct://\n", ""},
    {"Configuration extension is: x\nConfig is: \n\tpac+http://h/p.pac\nPAC received!\n",
     "http://h/p.pac"},
    {"Config is: \n\tpac+file:///etc/p.pac", "file:///etc/p.pac"},
    {"Config is: \n\twpad://\nTrying to find the PAC\n", "http://wpad/wpad.dat"},
    {"Config is: \n\thttp://proxy:3128\n", ""},
    {"\tpac+http://h/p.pac\n", ""},
};

static void settings_name_a_script(void **state)
{
    (void)state;
    char url[PROXY_SCRIPT_URL_MAX + 1];
    for (size_t i = 0; i < ARRAY_LENGTH(outputs); i++) {
        pac_settings_read(outputs[i].output, url);
        assert_string_equal(url, outputs[i].script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_keeps_its_bytes),      cmocka_unit_test(latin_1_becomes_utf_8),
        cmocka_unit_test(what_cannot_be_run_is_refused), cmocka_unit_test(answers_are_told_apart),
        cmocka_unit_test(an_answer_has_a_maximum),       cmocka_unit_test(settings_name_a_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
