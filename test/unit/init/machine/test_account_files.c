/* Unit tests of init/machine/account_files.c. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "init/machine/account_files.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
                             "codev:x:1000:1000:Agent:/home/codev:/bin/bash\n"
                             "codev-relay:x:990:991::/nonexistent:/bin/false\n"
                             "broken:x:7\n"
                             "alpha:x:1a:3::/:/\n"
                             "huge:x:4294967295:3::/:/\n"
                             "last:x:5:6::/:/bin/true";
static const char group[] = "root:x:0:\ncodev:x:1000:\nrelay:x:991:\nusers:x:100:codev\n";

static void find(void **state)
{
    struct account account = {.uid = 77};

    (void)state;
    assert_int_equal(passwd_find(passwd, "codev", &account), 0);
    assert_int_equal(account.uid, 1000);
    assert_string_equal(account.home, "/home/codev");
    assert_string_equal(account.shell, "/bin/bash");
    assert_int_equal(passwd_find(passwd, "last", &account), 0);
    assert_string_equal(account.shell, "/bin/true");
    account.uid = 77;
    assert_int_equal(passwd_find(passwd, "code", &account), -ENOENT);
    assert_int_equal(passwd_find(passwd, "", &account), -ENOENT);
    assert_int_equal(passwd_find(passwd, "broken", &account), -EINVAL);
    assert_int_equal(passwd_find(passwd, "alpha", &account), -EINVAL);
    assert_int_equal(passwd_find(passwd, "huge", &account), -EINVAL);
    assert_int_equal(account.uid, 77);
}

static void long_fields(void **state)
{
    char text[512] = "long:x:1:2::";
    struct account account;

    (void)state;
    memset(text + strlen(text), 'h', ACCOUNT_TEXT_MAX - 1);
    strcat(text, ":/bin/sh\n");
    assert_int_equal(passwd_find(text, "long", &account), 0);
    assert_int_equal(strlen(account.home), ACCOUNT_TEXT_MAX - 1);
    strcpy(text, "long:x:1:2::");
    memset(text + strlen(text), 0, 400);
    memset(text + strlen(text), 'h', ACCOUNT_TEXT_MAX);
    strcat(text, ":/bin/sh\n");
    assert_int_equal(passwd_find(text, "long", &account), -EINVAL);
}

static void owners(void **state)
{
    char owner[ACCOUNT_TEXT_MAX];

    (void)state;
    assert_int_equal(passwd_uid_owner(passwd, "codev", 990, owner), 1);
    assert_string_equal(owner, "codev-relay");
    assert_int_equal(passwd_uid_owner(passwd, "codev", 1000, owner), 0);
    assert_int_equal(passwd_gid_owner(passwd, "codev", 991, owner), 1);
    assert_int_equal(passwd_gid_owner(passwd, "codev", 20, owner), 0);
}

static void rewrite(void **state)
{
    char out[1024];

    (void)state;
    int length = passwd_rewrite(out, sizeof(out), passwd, "codev", 501, 20);
    assert_int_equal(length, strlen(out));
    assert_non_null(strstr(out, "\ncodev:x:501:20:Agent:/home/codev:/bin/bash\n"));
    assert_non_null(strstr(out, "\ncodev-relay:x:990:991::/nonexistent:/bin/false\n"));
    assert_non_null(strstr(out, "\nbroken:x:7\n"));
    assert_non_null(strstr(out, "\nlast:x:5:6::/:/bin/true\n"));
    assert_null(strstr(out, "1000"));

    length = group_rewrite(out, sizeof(out), group, 1000, 20);
    assert_int_equal(length, strlen(out));
    assert_string_equal(out, "root:x:0:\ncodev:x:20:\nrelay:x:991:\nusers:x:100:codev\n");
}

static void no_room(void **state)
{
    char out[64];

    (void)state;
    assert_int_equal(passwd_rewrite(out, sizeof(out), passwd, "codev", 1, 1), -ENOSPC);
    assert_int_equal(group_rewrite(out, 10, group, 1, 2), -ENOSPC);
    assert_int_equal(group_rewrite(out, strlen(group) + 1, group, 5, 2), strlen(group));
    assert_int_equal(group_rewrite(out, strlen(group), group, 5, 2), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find),    cmocka_unit_test(long_fields), cmocka_unit_test(owners),
        cmocka_unit_test(rewrite), cmocka_unit_test(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
