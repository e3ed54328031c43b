/* Unit tests of init/walls/drop.c in forked children of root. */
#include "test/harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "common/os/io.h"
#include "init/walls/drop.h"

static const struct account account = {
    .name = "t", .home = "/", .shell = "/bin/sh", .uid = 4321, .gid = 4322};

static struct drop_plan plan_for(enum drop_filter filter)
{
    return (struct drop_plan){.account = &account,
                              .cgroup_fd = -1,
                              .controlling_tty = -1,
                              .limit_nofile = 512,
                              .filter = filter};
}

static void drop_as_server(void)
{
    struct drop_plan plan = plan_for(DROP_FILTER_SERVER);
    struct failure why;
    int kept = open("/dev/null", O_RDONLY), closed = open("/dev/null", O_RDONLY), far;
    struct rlimit limit;
    sigset_t mask;

    far = dup2(kept, 200);
    int keep[] = {far, kept};
    plan.keep_fds = keep;
    plan.keep_count = 2;
    signal(SIGPIPE, SIG_IGN);
    sigfillset(&mask);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    umask(0777);
    if (drop_to_account(&plan, &why) != 0) {
        dprintf(2, "%s\n", why.text);
        _exit(1);
    }
    CHILD_ASSERT(getuid() == 4321 && geteuid() == 4321 && getgid() == 4322);
    CHILD_ASSERT(getsid(0) == getpid());
    CHILD_ASSERT(fcntl(kept, F_GETFD) >= 0 && fcntl(far, F_GETFD) >= 0);
    CHILD_ASSERT(fcntl(closed, F_GETFD) == -1 && fcntl(0, F_GETFD) >= 0);
    for (int fd = 3; fd < 256; fd++)
        CHILD_ASSERT(fd == kept || fd == far || fcntl(fd, F_GETFD) == -1);
    CHILD_ASSERT(signal(SIGPIPE, SIG_DFL) == SIG_DFL);
    CHILD_ASSERT(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGTERM));
    CHILD_ASSERT(umask(0) == 022);
    CHILD_ASSERT(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == 512 &&
                 limit.rlim_max == 512);
    CHILD_ASSERT(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0);
    CHILD_ASSERT(open("/etc/shadow", O_RDONLY) == -1 && errno == EACCES);
    CHILD_ASSERT(socket(40, 1, 0) == -1 && errno == EAFNOSUPPORT);
    CHILD_ASSERT(drop_check_no_way_back(&why) == 0);
    CHILD_ASSERT(access(".", F_OK) == 0);
    /* not readable for others of the same account until it executes something */
    CHILD_ASSERT(open("/proc/self/mem", O_RDONLY) == -1);
}

static void server(void **state)
{
    (void)state;
    in_root_child(drop_as_server);
}

/* A static program, which runs where there is no file system: busybox of the guest's sysroot. */
static int open_busybox(void)
{
    const char *build = getenv("CODEV_BUILD");
    struct utsname machine;
    char path[PATH_MAX];

    uname(&machine);
    snprintf(path, sizeof(path), "%s/sysroot/%s/bin/busybox", build ? build : "build",
             machine.machine);
    return open(path, O_PATH | O_CLOEXEC);
}

/* The agent: no file system at all, and its program executed from a descriptor. */
static void drop_as_agent(void)
{
    struct drop_plan plan = plan_for(DROP_FILTER_NONE);
    struct failure why;
    char *arguments[] = {"busybox", "false", NULL}, *none[] = {NULL};
    int program = open_busybox();

    CHILD_ASSERT(program >= 0);
    plan.keep_fds = &program;
    plan.keep_count = 1;
    plan.empty_root = true;
    if (drop_to_account(&plan, &why) != 0) {
        dprintf(2, "%s\n", why.text);
        _exit(1);
    }
    CHILD_ASSERT(access("/proc", F_OK) == -1 && errno == ENOENT);
    CHILD_ASSERT(access("/run", F_OK) == -1 && access("/etc", F_OK) == -1);
    CHILD_ASSERT(chdir("..") == 0 && access("etc", F_OK) == -1);
    CHILD_ASSERT(mkdir("/x", 0755) == -1 && (errno == EROFS || errno == EACCES));
    CHILD_ASSERT(open("/x", O_CREAT | O_WRONLY, 0600) == -1);
    pid_t child = fork();
    if (child == 0) {
        syscall(SYS_execveat, program, "", arguments, none, 0x1000 /* AT_EMPTY_PATH */);
        _exit(99);
    }
    int status;
    CHILD_ASSERT(waitpid(child, &status, 0) == child);
    CHILD_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void agent(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* such a build keeps its file system, for its libraries: empty_root.c */
#endif
    in_root_child(drop_as_agent);
}

static void drop_twice(void)
{
    struct drop_plan plan = plan_for(DROP_FILTER_SERVER);
    struct failure why;

    CHILD_ASSERT(drop_to_account(&plan, &why) == 0);
    CHILD_ASSERT(drop_to_account(&plan, &why) < 0);
    CHILD_ASSERT(strncmp(why.text, "drop, ", 6) == 0);
}

static void failures_are_named(void)
{
    struct account root = account;
    struct drop_plan plan = plan_for(DROP_FILTER_SERVER);
    struct failure why;
    pid_t child = fork();

    if (child == 0) {
        root.uid = 0;
        plan.account = &root;
        CHILD_ASSERT(drop_to_account(&plan, &why) == -EPERM);
        CHILD_ASSERT(strcmp(why.text, "drop, uid: the account's uid is 0") == 0);
        _exit(0);
    }
    int status;
    CHILD_ASSERT(waitpid(child, &status, 0) == child && status == 0);
    plan.cgroup_fd = open("/tmp", O_PATH | O_DIRECTORY);
    CHILD_ASSERT(drop_to_account(&plan, &why) < 0);
    CHILD_ASSERT(strncmp(why.text, "drop, cgroup: enter the cgroup", 30) == 0);
}

/* What the check of the identity looks at, one by one: nothing of root's is taken for the
 * account. */
static void identity_of_root(void)
{
    struct drop_plan plan = plan_for(DROP_FILTER_SERVER);
    struct failure why;
    int status = open("/proc/self/status", O_RDONLY);

    CHILD_ASSERT(drop_check_identity(&plan, status, &why) == -EPERM);
    CHILD_ASSERT(strstr(why.text, "Uid is \"0\t0\t0\t0\""));
    CHILD_ASSERT(drop_check_no_way_back(&why) == -EPERM);
    CHILD_ASSERT(strstr(why.text, "setuid"));
}

static void identity_without_filter(void)
{
    struct drop_plan dropped = plan_for(DROP_FILTER_NONE), wanted = plan_for(DROP_FILTER_SERVER);
    struct failure why;

    CHILD_ASSERT(drop_to_account(&dropped, &why) == 0);
    int status = open("/proc/self/status", O_RDONLY);
    CHILD_ASSERT(drop_check_identity(&wanted, status, &why) == -EPERM);
    CHILD_ASSERT(strstr(why.text, "Seccomp is \"0\""));
}

#define ROOT_TEST(name)                                                                            \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        in_root_child(name);                                                                       \
    }
ROOT_TEST(drop_twice)
ROOT_TEST(failures_are_named)
ROOT_TEST(identity_of_root)
ROOT_TEST(identity_without_filter)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server),
        cmocka_unit_test(agent),
        cmocka_unit_test(test_drop_twice),
        cmocka_unit_test(test_failures_are_named),
        cmocka_unit_test(test_identity_of_root),
        cmocka_unit_test(test_identity_without_filter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
