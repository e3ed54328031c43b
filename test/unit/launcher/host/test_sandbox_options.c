/* The command line: both forms of every kind of option, options that exclude each other, and
 * where the command begins. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "qemu-harness/launcher/host/options.h"

static int parse(struct options *options, struct failure *why, const char *const *arguments)
{
    static const char *argv[256];
    int argc = 1;
    argv[0] = "codev-sandbox";
    for (; *arguments; arguments++)
        argv[argc++] = *arguments;
    argv[argc] = NULL;
    return options_parse(options, argc, (char *const *)argv, why);
}

#define PARSE(options, why, ...) parse(options, why, (const char *const[]){__VA_ARGS__, NULL})

static void defaults(void **state)
{
    struct options options;
    struct failure why;
    (void)state;
    assert_int_equal(PARSE(&options, &why, "run"), 0);
    assert_null(options.command);
    assert_int_equal(options.cpus, 0); /* the accelerator decides */
    assert_int_equal(options.memory_mib, 1024);
    assert_int_equal(options.port, -1);
    assert_int_equal(options.server_port, 0);
    assert_int_equal(options.file_server, FILE_SERVER_AUTO);
}

static void all_kinds(void **state)
{
    struct options options;
    struct failure why;
    (void)state;
    assert_int_equal(PARSE(&options, &why, "run", "--mount", "/a", "--mount=/b:/c", "--cpus", "3",
                           "--memory=512", "--timeline", "--gateway-url", "https://g.example",
                           "--gateway-token-file", "/t", "--file-server", "9p", "--server-port",
                           "80", "--port", "0", "--env", "A=b=c", "--", "sh", "-c", "--mount"),
                     0);
    assert_int_equal(options.mounts.count, 2);
    assert_string_equal(options.mounts.items[1], "/b:/c");
    assert_int_equal(options.cpus, 3);
    assert_int_equal(options.memory_mib, 512);
    assert_true(options.timeline);
    assert_int_equal(options.file_server, FILE_SERVER_9P);
    assert_int_equal(options.port, 0);
    assert_string_equal(options.command[0], "sh");
    assert_string_equal(options.command[2], "--mount");
    assert_null(options.command[3]);
}

static void an_empty_command_is_a_shell(void **state)
{
    struct options options;
    struct failure why;
    (void)state;
    assert_int_equal(PARSE(&options, &why, "run", "--"), 0);
    assert_null(options.command);
}

static const struct {
    const char *const arguments[6];
    const char *reason;
} wrong[] = {
    {{NULL}, "no command"},
    {{"start"}, "unknown command start"},
    {{"--mount", "/a"}, "run --mount"},
    {{"run", "--nonsense"}, "unknown option --nonsense"},
    {{"run", "ls"}, "put -- before"},
    {{"run", "-x"}, "put -- before"},
    {{"run", "--cpus"}, "--cpus needs N"},
    {{"run", "--cpus", "0"}, "not a number from 1"},
    {{"run", "--cpus", "two"}, "not a number"},
    {{"run", "--cpus", "2x"}, "not a number"},
    {{"run", "--memory", "99999999999999999999"}, "not a number"},
    {{"run", "--port", "65536", "--server-port", "1"}, "not a number"},
    {{"run", "--timeline=yes"}, "takes no value"},
    {{"run", "--rules", "a", "--rules", "b"}, "given twice"},
    {{"run", "--rules", "a", "--app-data", "b"}, "exclude each other"},
    {{"run", "--gateway-url", "https://g.example"}, "needs --gateway-token-file"},
    {{"run", "--gateway-token-file", "t"}, "needs --gateway-url"},
    {{"run", "--file-server", "nfs"}, "not auto, virtiofs or 9p"},
    {{"run", "--port", "0"}, "needs --server-port"},
    {{"run", "--env", "A"}, "not NAME=VALUE"},
    {{"run", "--env", "=b"}, "not NAME=VALUE"},
    {{"run", "--wsl"}, "unknown option --wsl"}, /* only the tests' codev-sandbox-wsl has it */
};

static void refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct options options;
        struct failure why = {""};
        assert_int_equal(parse(&options, &why, wrong[i].arguments), -EINVAL);
        if (!strstr(why.text, wrong[i].reason))
            fail_msg("%s: not in: %s", wrong[i].reason, why.text);
    }
}

static void repeats_are_bounded(void **state)
{
    const char *arguments[2 * (OPTION_REPEAT_MAX + 1) + 2] = {"run"};
    struct options options;
    struct failure why;
    unsigned count = 1;
    (void)state;
    for (unsigned i = 0; i < OPTION_REPEAT_MAX; i++) {
        arguments[count++] = "--mount";
        arguments[count++] = "/a";
    }
    assert_int_equal(parse(&options, &why, arguments), 0);
    assert_int_equal(options.mounts.count, OPTION_REPEAT_MAX);
    arguments[count++] = "--mount";
    arguments[count++] = "/a";
    assert_int_equal(parse(&options, &why, arguments), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(all_kinds),
        cmocka_unit_test(an_empty_command_is_a_shell),
        cmocka_unit_test(refuses),
        cmocka_unit_test(repeats_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
