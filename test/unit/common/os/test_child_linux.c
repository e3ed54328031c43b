/* Children that execute a program, work, fail, hang and die. */
#include "test/harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/child_linux.h"

#define LIMIT_MS 20000

static void assert_no_child(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int execute_shell(void *argument, int *report_fd, struct failure *why)
{
    static char *const arguments[] = {(char *)"sh", (char *)"-c", (char *)"exit 5", NULL};
    int *moved = argument;
    if (moved)
        *report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, 40);
    execv("/bin/sh", arguments);
    return failure_errno(why, errno, "execute");
}

static void a_program_is_executed(void **state)
{
    (void)state;
    int status, moved = 1;
    pid_t pid = 0;
    struct failure why;
    assert_int_equal(child_execute(&pid, execute_shell, NULL, LIMIT_MS, &why), 0);
    assert_true(child_wait(pid, LIMIT_MS, &status));
    assert_int_equal(WEXITSTATUS(status), 5);
    assert_int_equal(child_execute(&pid, execute_shell, &moved, CHILD_NO_LIMIT, &why), 0);
    assert_true(child_wait(pid, CHILD_NO_LIMIT, NULL));
    assert_no_child();
}

static int fail_task(void *argument, int *report_fd, struct failure *why)
{
    if (argument)
        *report_fd = fcntl(*report_fd, F_DUPFD_CLOEXEC, 40);
    return failure_set(why, EXDEV, "the reason %d", getpid());
}

static void the_reason_arrives(void **state)
{
    (void)state;
    int moved = 1;
    pid_t pid = -5;
    struct failure why = {""};
    assert_int_equal(child_execute(&pid, fail_task, NULL, LIMIT_MS, &why), -EXDEV);
    assert_int_equal(strncmp(why.text, "the reason ", 11), 0);
    assert_int_equal(pid, -5);
    memset(&why, 0, sizeof(why));
    assert_int_equal(child_execute(&pid, fail_task, &moved, LIMIT_MS, &why), -EXDEV);
    assert_int_equal(strncmp(why.text, "the reason ", 11), 0);
    memset(&why, 0, sizeof(why));
    assert_int_equal(child_work(fail_task, NULL, CLONE_FILES, LIMIT_MS, &why), -EXDEV);
    assert_int_equal(strncmp(why.text, "the reason ", 11), 0);
    assert_int_equal(child_work(fail_task, NULL, 0, LIMIT_MS, NULL), -EXDEV);
    assert_no_child();
}

static int hang(void *argument, int *report_fd, struct failure *why)
{
    (void)argument;
    (void)report_fd;
    (void)why;
    while (pause() == -1)
        ;
    return 0;
}

static void who_hangs_is_killed(void **state)
{
    (void)state;
    pid_t pid;
    struct failure why;
    assert_int_equal(child_execute(&pid, hang, NULL, 50, &why), -ETIMEDOUT);
    while (waitpid(-1, NULL, 0) > 0) /* the caller reaps it */
        ;
    assert_int_equal(child_work(hang, NULL, 0, 50, &why), -ETIMEDOUT);
    assert_no_child();
}

static int die(void *argument, int *report_fd, struct failure *why)
{
    (void)argument;
    (void)report_fd;
    (void)why;
    kill(getpid(), SIGKILL);
    return 0;
}

/* With CLONE_FILES the child's descriptors are the parent's too. */
static int open_at(void *argument, int *report_fd, struct failure *why)
{
    (void)report_fd;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0 || dup2(fd, *(const int *)argument) < 0)
        return failure_errno(why, errno, "open");
    close(fd);
    return 0;
}

static void work_is_done(void **state)
{
    (void)state;
    int number = 77;
    struct failure why = {""};
    assert_int_equal(child_work(open_at, &number, CLONE_FILES, LIMIT_MS, &why), 0);
    assert_int_equal(close(number), 0);
    assert_int_equal(child_work(open_at, &number, 0, LIMIT_MS, &why), 0);
    assert_int_equal(close(number), -1);
    assert_int_equal(child_work(die, NULL, 0, LIMIT_MS, &why), -ECHILD);
    assert_string_equal(why.text, "the child process died (signal 9)");
    assert_no_child();
}

static void waiting_has_a_limit(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0)
        hang(NULL, NULL, NULL);
    assert_false(child_wait(child, 50, NULL));
    child_end(child);
    assert_no_child();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_is_executed), cmocka_unit_test(the_reason_arrives),
        cmocka_unit_test(who_hangs_is_killed),   cmocka_unit_test(work_is_done),
        cmocka_unit_test(waiting_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
