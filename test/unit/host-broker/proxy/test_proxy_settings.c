/* Which of command line, environment and desktop decides. */
#include "test/harness/unit.h"

#include <string.h>

#include "common/os/cleanup.h"
#include "host-broker/proxy/proxy_settings.h"

static const char *const *environment; /* name, value, ..., NULL */
static struct proxy_options options;
static struct proxy_settings settings;

static const char *get_variable(const char *name)
{
    for (const char *const *at = environment; *at; at += 2)
        if (strcmp(at[0], name) == 0)
            return at[1];
    return NULL;
}

static const struct proxy_choice *find(const char *text)
{
    struct upstream_url url;
    assert_int_equal(upstream_url_parse(&url, text, strlen(text), NULL), 0);
    proxy_settings_read(&settings, &options, get_variable);
    return proxy_settings_find(&settings, &url);
}

#define SET(...)                                                                                   \
    static const char *const set[] = {__VA_ARGS__, NULL};                                          \
    environment = set;                                                                             \
    options = (struct proxy_options)                                                               \
    {                                                                                              \
        .mode = PROXY_MODE_SYSTEM                                                                  \
    }

static void check_proxy(const char *url, const char *host)
{
    const struct proxy_choice *choice = find(url);
    assert_int_equal(choice->answer, PROXY_ANSWER_LIST);
    assert_string_equal(choice->list.proxies[0].host, host);
}

static void nothing_set_asks_the_desktop(void **state)
{
    (void)state;
    SET("http_proxy", "", "NO_PROXY", "");
    assert_int_equal(find("https://a.example")->answer, PROXY_ANSWER_SYSTEM);
    assert_int_equal(find("http://a.example")->answer, PROXY_ANSWER_SYSTEM);
    assert_true(proxy_settings_need_resolver(&settings));
}

static void variables_by_scheme(void **state)
{
    (void)state;
    SET("http_proxy", "http://one:1", "HTTPS_PROXY", "http://two:2", "all_proxy", "http://three:3");
    check_proxy("http://a.example", "one");
    check_proxy("https://a.example", "two");
    assert_false(proxy_settings_need_resolver(&settings));
}

static void small_letters_first(void **state)
{
    (void)state;
    SET("HTTP_PROXY", "http://no:1", "http_proxy", "http://yes:1", "https_proxy", "", "HTTPS_PROXY",
        "http://capital:1");
    check_proxy("http://a.example", "yes");
    check_proxy("https://a.example", "capital"); /* an empty one is none */
}

static void all_proxy_for_the_rest(void **state)
{
    (void)state;
    SET("ALL_PROXY", "socks5h://three:3", "https_proxy", "http://two:2");
    check_proxy("http://a.example", "three");
    check_proxy("https://a.example", "two");
}

static void one_scheme_alone(void **state)
{
    (void)state;
    SET("https_proxy", "http://two:2");
    assert_int_equal(find("http://a.example")->answer, PROXY_ANSWER_SYSTEM);
}

static void a_script_in_the_environment(void **state)
{
    (void)state;
    SET("https_proxy", "pac+http://wpad/p.pac");
    assert_int_equal(find("https://a.example")->answer, PROXY_ANSWER_SCRIPT);
    assert_string_equal(find("https://a.example")->script, "http://wpad/p.pac");
}

static void a_broken_variable_is_named_without_its_value(void **state)
{
    (void)state;
    SET("https_proxy", "gopher://u:secret@h");
    const struct proxy_choice *choice = find("https://a.example");
    assert_int_equal(choice->answer, PROXY_ANSWER_BROKEN);
    assert_non_null(strstr(choice->broken.text, "https_proxy"));
    assert_null(strstr(choice->broken.text, "secret"));
}

static void loopback_and_no_proxy_are_direct_in_every_mode(void **state)
{
    (void)state;
    static const char *const direct[] = {"http://127.0.0.1:1", "https://127.9.9.9",
                                         "http://[::1]:1", "https://localhost",
                                         "https://x.intra.example"};
    SET("https_proxy", "http://two:2", "no_proxy", "intra.example");
    for (int mode = 0; mode < PROXY_MODE_COUNT; mode++) {
        options.mode = (enum proxy_mode)mode;
        options.script = "http://h/p.pac";
        for (size_t i = 0; i < ARRAY_LENGTH(direct); i++)
            assert_int_equal(find(direct[i])->answer, PROXY_ANSWER_DIRECT);
        assert_true(mode == PROXY_MODE_NONE ||
                    find("https://a.example")->answer != PROXY_ANSWER_DIRECT);
    }
}

static void the_command_line_wins(void **state)
{
    (void)state;
    SET("https_proxy", "http://two:2");
    options.mode = PROXY_MODE_URL;
    assert_int_equal(proxy_list_add_url(&options.list, "http://mine:1", NULL), 0);
    check_proxy("https://a.example", "mine");
    options.mode = PROXY_MODE_NONE;
    assert_int_equal(find("https://a.example")->answer, PROXY_ANSWER_DIRECT);
    options.mode = PROXY_MODE_SCRIPT;
    options.script = "file:///p.pac";
    assert_int_equal(find("https://a.example")->answer, PROXY_ANSWER_SCRIPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_set_asks_the_desktop),
        cmocka_unit_test(variables_by_scheme),
        cmocka_unit_test(small_letters_first),
        cmocka_unit_test(all_proxy_for_the_rest),
        cmocka_unit_test(one_scheme_alone),
        cmocka_unit_test(a_script_in_the_environment),
        cmocka_unit_test(a_broken_variable_is_named_without_its_value),
        cmocka_unit_test(loopback_and_no_proxy_are_direct_in_every_mode),
        cmocka_unit_test(the_command_line_wins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
