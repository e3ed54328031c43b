/* Unit tests of init/machine/hostname.c. */
#include "test/harness/unit.h"

#include <string.h>

#include "init/machine/machine.h"

static const struct {
    const char *wanted, *valid;
} names[] = {
    {"codev-b3f1", "codev-b3f1"},
    {"host.example.org", "host.example.org"},
    {"UPPER-09", "UPPER-09"},
    {"", "codev"},
    {"---", "codev"},
    {"...", "codev"},
    {"\xc3\xa4\xc3\xb6", "codev"},
    {"-a-", "a"},
    {"a..b", "a.b"},
    {".a.", "a"},
    {"a-.-b", "a.b"},
    {"my project", "my-project"},
    {"my_project", "my-project"},
    {"a  \n b", "a-b"},
    {"b\xc3\xbc"
     "cher",
     "b-cher"},
    {"x;reboot", "x-reboot"},
    {"a - b", "a--b"},
};

static void table(void **state)
{
    char valid[HOSTNAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool same = hostname_make_valid(valid, names[i].wanted);
        assert_string_equal(valid, names[i].valid);
        assert_int_equal(same, strcmp(names[i].wanted, names[i].valid) == 0);
    }
}

/* 64 bytes in all, 63 in a label, and nothing left dangling at the cut. */
static void lengths(void **state)
{
    char wanted[301], valid[HOSTNAME_MAX + 1];

    (void)state;
    for (size_t length = 1; length <= 300; length++) {
        memset(wanted, 'a', length);
        wanted[length] = '\0';
        hostname_make_valid(valid, wanted);
        assert_int_equal(strlen(valid), length > 63 ? 63 : length);
        for (size_t i = 3; i < length; i += 4)
            wanted[i] = i % 8 == 3 ? '.' : '-';
        hostname_make_valid(valid, wanted);
        size_t made = strlen(valid);
        assert_true(made > 0 && made <= HOSTNAME_MAX);
        assert_true(valid[made - 1] == 'a' && valid[0] == 'a');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
