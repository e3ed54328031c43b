/* The broker's log: the fields of a line, the limit on refusals, rotation. Time is an argument. */
#include "test/harness/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/os/io.h"
#include "host-broker/base/event_loop.h"
#include "host-broker/serve/access_log.h"

static char folder[] = "/tmp/test-log-XXXXXX";
static char path[sizeof(folder) + 8], older[sizeof(folder) + 8];
static struct access_log access_log;
static char text[256 * 1024];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/log", folder);
    snprintf(older, sizeof(older), "%s/log.1", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(older);
    return rmdir(folder);
}

static int open_log(void **state)
{
    struct failure why;
    (void)state;
    unlink(path);
    memset(&access_log, 0, sizeof(access_log));
    return access_log_open(&access_log, path, &why);
}

static int close_log(void **state)
{
    (void)state;
    access_log_close(&access_log);
    return 0;
}

static int read_lines(void)
{
    int lines = 0;
    assert_true(io_read_file(AT_FDCWD, path, 0, text, sizeof(text)) >= 0);
    for (char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

static struct log_record record_of(enum request_end end)
{
    struct log_record record = {.active = true, .proxy = "", .end = end, .status = 404};
    log_record_text(record.method, sizeof(record.method), SLICE_LITERAL("GET"));
    log_record_text(record.path, sizeof(record.path), SLICE_LITERAL("/x"));
    return record;
}

static void a_line_is_json_with_all_fields(void **state)
{
    (void)state;
    struct json document;
    struct json_token tokens[64];
    struct json_position where;
    int64_t number;
    struct log_record record = record_of(REQUEST_UPSTREAM_ERROR);
    record.started = 10 * SECONDS;
    record.bytes_in = 123;
    strcpy(record.proxy, "direct");
    record.error = "codev_upstream_tls";
    record.rewrite = "npm";
    record.links = 7;
    log_record_text(record.path, sizeof(record.path), SLICE_LITERAL("/a\"b\\c\x01\xff"));
    access_log_request(&access_log, &record, 10 * SECONDS + 1500000);
    assert_false(record.active);
    access_log_request(&access_log, &record, 11 * SECONDS); /* not logged a second time */
    access_log_flush(&access_log, 11 * SECONDS);
    assert_int_equal(read_lines(), 1);
    assert_int_equal(json_parse(&document, text, strlen(text), tokens, 64, &where), 0);
    assert_true(json_string_equals(&document, json_member(&document, 0, "end"), "upstream-error"));
    assert_true(json_string_equals(&document, json_member(&document, 0, "rewrite"), "npm"));
    assert_true(json_member(&document, 0, "links") > 0);
    assert_true(
        json_string_equals(&document, json_member(&document, 0, "error"), "codev_upstream_tls"));
    assert_int_equal(json_int64(&document, json_member(&document, 0, "bytes_in"), &number), 0);
    assert_int_equal(number, 123);
    assert_non_null(strstr(text, "\"ms\":1.5"));
    assert_int_equal(json_member(&document, 0, "name"), 0);
}

static void the_longest_path_fits_into_a_line(void **state)
{
    (void)state;
    static char path_text[2000];
    struct log_record record = record_of(REQUEST_COMPLETE);
    memset(path_text, '"', sizeof(path_text));
    log_record_text(record.path, sizeof(record.path), (struct slice){path_text, sizeof(path_text)});
    assert_int_equal(strlen(record.path), ACCESS_LOG_PATH_MAX);
    access_log_request(&access_log, &record, SECONDS);
    access_log_flush(&access_log, SECONDS);
    assert_int_equal(read_lines(), 1);
    assert_true(strlen(text) > 2 * ACCESS_LOG_PATH_MAX);
}

static void more_than_a_hundred_refusals_a_second_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 250; i++) {
        struct log_record record = record_of(REQUEST_REFUSED);
        access_log_request(&access_log, &record, 5 * SECONDS);
    }
    struct log_record served = record_of(REQUEST_COMPLETE); /* always logged */
    access_log_request(&access_log, &served, 5 * SECONDS);
    assert_int_equal(access_log_flush(&access_log, 5 * SECONDS), 6 * SECONDS);
    assert_int_equal(read_lines(), 101);
    assert_int_equal(access_log_flush(&access_log, 6 * SECONDS), NEVER);
    assert_int_equal(read_lines(), 102);
    assert_non_null(strstr(text, "\"end\":\"refused\",\"count\":150}"));
    struct log_record next = record_of(REQUEST_REFUSED);
    access_log_request(&access_log, &next, 6 * SECONDS);
    access_log_flush(&access_log, 6 * SECONDS);
    assert_int_equal(read_lines(), 103);
}

static void a_full_file_is_rotated(void **state)
{
    (void)state;
    struct stat info;
    struct failure why;
    assert_int_equal(truncate(path, ACCESS_LOG_FILE_MAX - 10), 0);
    assert_int_equal(access_log_reopen(&access_log, &why), 0);
    struct log_record record = record_of(REQUEST_COMPLETE);
    access_log_request(&access_log, &record, SECONDS);
    access_log_flush(&access_log, SECONDS);
    assert_int_equal(stat(older, &info), 0);
    assert_true(info.st_size > ACCESS_LOG_FILE_MAX);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 0);
    record = record_of(REQUEST_COMPLETE);
    access_log_request(&access_log, &record, SECONDS);
    access_log_flush(&access_log, SECONDS);
    assert_int_equal(read_lines(), 1);
}

static void a_link_is_not_followed(void **state)
{
    (void)state;
    struct access_log other = {0};
    struct failure why;
    char link[sizeof(folder) + 8];
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink(older, link), 0);
    assert_true(access_log_open(&other, link, &why) < 0);
    assert_int_equal(unlink(link), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_is_json_with_all_fields, open_log, close_log),
        cmocka_unit_test_setup_teardown(the_longest_path_fits_into_a_line, open_log, close_log),
        cmocka_unit_test_setup_teardown(more_than_a_hundred_refusals_a_second_are_counted, open_log,
                                        close_log),
        cmocka_unit_test_setup_teardown(a_full_file_is_rotated, open_log, close_log),
        cmocka_unit_test_setup_teardown(a_link_is_not_followed, open_log, close_log),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
