/* Unit tests of init/server/tool_files.c: the texts; git and apt-config themselves read theirs
 * back. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/server/tool_files.h"

static struct boot_config config;
static char text[4096];

static void allow(const char *first, const char *second)
{
    memset(&config, 0, sizeof(config));
    config.relay.present = true;
    config.relay.listen = 8788;
    config.egress[0] = first;
    config.egress[1] = second;
    config.egress_count = 2;
}

/* What a program of the machine says, given the text as a file: `format` takes the file's name. */
static const char *ask(const char *format)
{
    static char said[4096];
    char file[] = "/tmp/codev-test-tool-files-XXXXXX", command[256];
    int fd = mkstemp(file);

    assert_true(fd >= 0);
    assert_int_equal(io_write_full(fd, text, strlen(text)), 0);
    close(fd);
    snprintf(command, sizeof(command), format, file);
    FILE *pipe = popen(command, "r");
    size_t length = fread(said, 1, sizeof(said) - 1, pipe);
    said[length] = '\0';
    assert_int_equal(pclose(pipe), 0);
    unlink(file);
    return said;
}

static void cargo(void **state)
{
    (void)state;
    allow("crates", "npm");
    int length = tool_files_cargo(text, sizeof(text), &config);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "[source.crates-io]\nreplace-with = \"codev\"\n"));
    assert_non_null(strstr(text, "registry = \"sparse+http://127.0.0.1:8788/crates/\"\n"));
    assert_int_equal(tool_files_cargo(text, (size_t)length, &config), -ENOSPC);
}

static void git(void **state)
{
    (void)state;
    allow("npm", "github");
    assert_true(tool_files_git(text, sizeof(text), &config) > 0);
    assert_null(strstr(text, "gitlab"));
    assert_string_equal(ask("git config --file %s --get-all "
                            "url.http://127.0.0.1:8788/github/.insteadOf"),
                        "https://github.com/\ngit@github.com:\nssh://git@github.com/\n"
                        "git://github.com/\n");
    assert_string_equal(ask("git config --file %s --get-all lfs.transfer.maxretries"), "3\n");
    allow("gitlab", "github");
    assert_true(tool_files_git(text, sizeof(text), &config) > 0);
    assert_non_null(strstr(ask("git config --file %s --list"), "gitlab/.insteadof=https://gitlab"));
    allow("npm", "pypi");
    assert_int_equal(tool_files_git(text, sizeof(text), &config), 0);
    assert_string_equal(text, "");
    allow("github", "gitlab");
    config.relay.present = false;
    assert_int_equal(tool_files_git(text, sizeof(text), &config), 0);
}

static void apt(void **state)
{
    (void)state;
    assert_true(tool_files_apt(text, sizeof(text), "/home/codev") > 0);
    const char *said = ask("APT_CONFIG=%s apt-config shell LISTS Dir::State::Lists/d ARCHIVES "
                           "Dir::Cache::Archives/d STATUS Dir::State::status/f SOURCES "
                           "Dir::Etc::SourceList/f");
    assert_string_equal(said, "LISTS='/home/codev/.cache/apt/lists/'\n"
                              "ARCHIVES='/home/codev/.cache/apt/archives/'\n"
                              "STATUS='/var/lib/dpkg/status'\n"
                              "SOURCES='/run/codev/apt/sources.list'\n");
}

static void apt_sources(void **state)
{
    (void)state;
    allow("debian", "debian-security");
    assert_true(tool_files_apt_sources(text, sizeof(text), &config, "bookworm") > 0);
    assert_string_equal(text, "deb http://127.0.0.1:8788/debian bookworm main\n"
                              "deb http://127.0.0.1:8788/debian bookworm-updates main\n"
                              "deb http://127.0.0.1:8788/debian-security bookworm-security main\n");
    allow("debian", "npm");
    assert_true(tool_files_apt_sources(text, sizeof(text), &config, "bookworm") > 0);
    assert_null(strstr(text, "security"));
}

static void codename(void **state)
{
    static const struct {
        const char *os_release, *wanted;
    } cases[] = {
        {"ID=debian\nVERSION_CODENAME=bookworm\nX=1\n", "bookworm"},
        {"VERSION_CODENAME=\"trixie\"\n", "trixie"},
        {"VERSION_CODENAME='sid'", "sid"},
        {"VERSION_CODENAME=", ""},
        {"VERSION_CODENAME=\"a b\"\n", ""},
        {"X_VERSION_CODENAME=bookworm\n", ""},
        {"VERSION_CODENAME=\"x\n", ""},
        {"VERSION_CODENAME=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", ""},
        {"", ""},
    };
    char name[CODENAME_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tool_files_codename(name, cases[i].os_release);
        assert_string_equal(name, cases[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cargo),       cmocka_unit_test(git),      cmocka_unit_test(apt),
        cmocka_unit_test(apt_sources), cmocka_unit_test(codename),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
