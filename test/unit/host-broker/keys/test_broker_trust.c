/* Certificate authorities from files and folders. The "certificates" only begin as DER sequences,
 * which is all that is checked; test/system uses real ones with libcurl. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/io.h"
#include "host-broker/keys/trust.h"

#define PEM(body) "-----BEGIN CERTIFICATE-----\n" body "\n-----END CERTIFICATE-----\n"
#define ONE PEM("MAMCAQE=")
#define TWO PEM("MAMCAQI=")
#define KEY "-----BEGIN PRIVATE KEY-----\nMAMCAQk=\n-----END PRIVATE KEY-----\n"

static char folder[] = "/tmp/test-trust-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[4][64];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    assert_int_equal(io_write_file(AT_FDCWD, in_folder(name), O_CREAT | O_TRUNC, 0600, text), 0);
}

static int make_folder(void **state)
{
    (void)state;
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    unsetenv("NODE_EXTRA_CA_CERTS");
    if (!mkdtemp(folder) || mkdir(in_folder("d"), 0700) < 0)
        return -1;
    put("one", "some text\n" ONE KEY);
    put("two", ONE TWO);
    put("broken", TWO PEM("!!!!"));
    put("cut", "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n");
    put("empty", KEY);
    put("d/one", ONE);
    put("d/broken", PEM("AAAA"));
    put("d/two", TWO);
    return 0;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"one",   "two",   "broken",   "cut",
                                        "empty", "d/one", "d/broken", "d/two"};
    (void)state;
    for (size_t i = 0; i < 8; i++)
        unlink(in_folder(names[i]));
    return rmdir(in_folder("d")) | rmdir(folder);
}

static size_t load(struct trust *trust, const char *file)
{
    struct failure warning, why;
    const char *const files[] = {file};
    assert_int_equal(trust_load(trust, files, file ? 1 : 0, &warning, &why), 0);
    assert_string_equal(warning.text, "");
    return trust->certificates;
}

static void duplicates_and_keys_are_left_out(void **state)
{
    (void)state;
    struct trust trust;
    trust_init(&trust);
    size_t system = load(&trust, NULL);
    assert_int_equal(load(&trust, in_folder("one")), system + 1);
    static char text[TRUST_FILE_MAX];
    ssize_t length = io_read_file(AT_FDCWD, trust.path, 0, text, sizeof(text));
    assert_true(length > 0);
    assert_non_null(strstr(text, "MAMCAQE="));
    assert_null(strstr(text, "PRIVATE"));
    assert_null(strstr(text, "MAMCAQk="));
    setenv("SSL_CERT_FILE", in_folder("two"), 1);
    setenv("SSL_CERT_DIR", in_folder("d"), 1);
    assert_int_equal(load(&trust, in_folder("one")), system + 2);
    unsetenv("SSL_CERT_FILE");
    unsetenv("SSL_CERT_DIR");
    trust_close(&trust);
}

static void a_new_store_has_a_new_name(void **state)
{
    (void)state;
    struct trust trust;
    char before[MEMORY_FILE_PATH_MAX];
    trust_init(&trust);
    for (int i = 0; i < 5; i++) {
        strcpy(before, trust.path);
        load(&trust, in_folder("one"));
        assert_string_not_equal(trust.path, before);
    }
    trust_close(&trust);
}

static void a_ca_file_must_hold_certificates(void **state)
{
    (void)state;
    static const char *const names[] = {"broken", "cut", "empty", "absent", "d"};
    struct trust trust;
    trust_init(&trust);
    load(&trust, in_folder("one"));
    for (size_t i = 0; i < 5; i++) {
        struct failure warning, why;
        const char *const files[] = {in_folder(names[i])};
        char before[MEMORY_FILE_PATH_MAX];
        strcpy(before, trust.path);
        assert_true(trust_load(&trust, files, 1, &warning, &why) < 0);
        assert_non_null(strstr(why.text, files[0]));
        assert_string_equal(trust.path, before);
    }
    trust_close(&trust);
}

static void a_broken_file_of_the_environment_adds_nothing_and_is_reported(void **state)
{
    (void)state;
    struct trust trust;
    struct failure warning, why;
    trust_init(&trust);
    size_t system = load(&trust, NULL);
    setenv("NODE_EXTRA_CA_CERTS", in_folder("broken"), 1);
    assert_int_equal(trust_load(&trust, NULL, 0, &warning, &why), 0);
    assert_non_null(strstr(warning.text, "NODE_EXTRA_CA_CERTS"));
    assert_int_equal(trust.certificates, system); /* also without its valid certificates */
    unsetenv("NODE_EXTRA_CA_CERTS");
    trust_close(&trust);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(duplicates_and_keys_are_left_out),
        cmocka_unit_test(a_new_store_has_a_new_name),
        cmocka_unit_test(a_ca_file_must_hold_certificates),
        cmocka_unit_test(a_broken_file_of_the_environment_adds_nothing_and_is_reported),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
