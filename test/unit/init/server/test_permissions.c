/* Unit tests of init/server/permissions.c: what stands in the place of codev.json, read by a child
 * that has dropped. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/io.h"
#include "init/server/environment.h"
#include "init/server/permissions_text.h"

static const struct account account = {
    .name = "t", .home = "/", .shell = "/bin/sh", .uid = 4321, .gid = 4322};
static char folder[] = "/tmp/codev-test-permissions-XXXXXX";
static char file[64];
static struct boot_config config;

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    chmod(folder, 0755);
    snprintf(file, sizeof(file), "%s/codev.json", folder);
    memset(&config, 0, sizeof(config));
    config.auto_accept = true;
    config.limit_nofile = 256;
    config.server.cwd = folder;
    config.mount_count = 1;
    config.mounts[0].target = folder;
    memset(config.relay.token, 'a', SECRET_HEX_LENGTH);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static struct permissions decide(void)
{
    struct permissions out;
    struct failure why;

    assert_int_equal(permissions_decide(&config, &account, &out, &why), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(config.relay.token[0], 'a');     /* the child forgot its own copy */
    return out;
}

static void write_json(const char *text)
{
    assert_int_equal(io_write_file(AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0644, text), 0);
}

static void assert_refused(const char *part)
{
    struct permissions out = decide();

    assert_false(out.auto_accept);
    if (!strstr(out.warning, part))
        fail_msg("%s", out.warning);
}

static void files(void **state)
{
    struct permissions out;

    (void)state;
    if (geteuid() != 0)
        skip();
    out = decide(); /* absent */
    assert_true(out.auto_accept);
    assert_string_equal(out.warning, "");
    write_json("{\"auto_accept\":true}");
    assert_true(decide().auto_accept);
    config.auto_accept = false; /* the file cannot turn on what the toggle turned off */
    assert_false(decide().auto_accept);
    config.auto_accept = true;
    write_json("{\"permission\":{\"bash\":\"ask\"}}");
    out = decide();
    assert_false(out.auto_accept);
    assert_string_equal(out.permission, "{\"bash\":\"ask\"}");
    assert_string_equal(out.warning, "");
    write_json("{");
    assert_refused("codev.json:1:");
    config.mount_count = 0; /* no mount, no project */
    assert_true(decide().auto_accept);
}

static void no_regular_file(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip();
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_refused("symbolic link");
    unlink(file);
    assert_int_equal(mkdir(file, 0755), 0);
    assert_refused("no regular file");
    rmdir(file);
    assert_int_equal(mkfifo(file, 0666), 0);
    assert_refused("no regular file");
    unlink(file);
    write_json("{}");
    chmod(file, 0600); /* root's: codev may not read it, so nobody knows what it says */
    assert_refused("Permission denied");
}

static void sizes(void **state)
{
    static char text[PERMISSIONS_FILE_MAX + 2];

    (void)state;
    if (geteuid() != 0)
        skip();
    memset(text, ' ', sizeof(text) - 1);
    memcpy(text, "{}", 2);
    text[PERMISSIONS_FILE_MAX] = '\0';
    write_json(text);
    assert_true(decide().auto_accept);
    text[PERMISSIONS_FILE_MAX] = ' ';
    write_json(text);
    assert_refused("larger than 64 KiB");
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(files),
        IN_FOLDER(no_regular_file),
        IN_FOLDER(sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
