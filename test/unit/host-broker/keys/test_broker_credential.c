/* The gateway's token: read, renewed, removed, wiped. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/io.h"
#include "host-broker/keys/credential.h"

static char folder[] = "/tmp/test-credential-XXXXXX";
static char path[sizeof(folder) + 8];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/token", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_token(const char *text)
{
    assert_int_equal(io_write_file(AT_FDCWD, path, O_CREAT | O_TRUNC, 0600, text), 0);
}

static void changes_are_seen_even_within_one_tick(void **state)
{
    (void)state;
    struct credential credential;
    struct failure why;
    char text[16];
    write_token("first\n");
    assert_int_equal(credential_open(&credential, path, &why), 0);
    assert_string_equal(credential.token, "first");
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof(text), "%05d\n", i);
        write_token(text);
        assert_true(credential_refresh(&credential, false, &why));
        assert_int_equal(credential.length, 5);
        assert_memory_equal(credential.token, text, 5);
    }
    credential_close(&credential);
}

static void a_removed_login_is_wiped_and_comes_back(void **state)
{
    (void)state;
    struct credential credential;
    struct failure why;
    write_token("secret");
    assert_int_equal(credential_open(&credential, path, &why), 0);
    assert_int_equal(unlink(path), 0);
    assert_false(credential_refresh(&credential, false, &why));
    assert_non_null(strstr(why.text, path));
    assert_int_equal(credential.length, 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(credential.token[i], 0);
    assert_false(credential_refresh(&credential, true, &why));
    write_token("again");
    assert_true(credential_refresh(&credential, false, &why));
    assert_string_equal(credential.token, "again");
    write_token("");
    assert_false(credential_refresh(&credential, false, &why));
    credential_close(&credential);
    assert_null(credential.token);
}

static void an_invalid_token_is_refused_and_not_quoted(void **state)
{
    (void)state;
    static const char *const texts[] = {"", " \n", "two\nlines", "tab\tinside", "\x80high"};
    struct credential credential;
    struct failure why;
    for (size_t i = 0; i < 5; i++) {
        write_token(texts[i]);
        assert_true(credential_open(&credential, path, &why) < 0);
        assert_non_null(strstr(why.text, path));
        assert_null(strstr(why.text, "lines"));
        credential_close(&credential);
    }
}

static void only_a_regular_file_is_read(void **state)
{
    (void)state;
    struct credential credential;
    struct failure why;
    assert_int_equal(credential_open(&credential, folder, &why), -EINVAL);
    credential_close(&credential);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it must not block */
    assert_int_equal(credential_open(&credential, path, &why), -EINVAL);
    credential_close(&credential);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(credential_open(&credential, path, &why), -ENOENT);
    credential_close(&credential);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_seen_even_within_one_tick),
        cmocka_unit_test(a_removed_login_is_wiped_and_comes_back),
        cmocka_unit_test(an_invalid_token_is_refused_and_not_quoted),
        cmocka_unit_test(only_a_regular_file_is_read),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
