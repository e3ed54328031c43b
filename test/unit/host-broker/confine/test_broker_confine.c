/* What a confined process can no longer do and what it still can, tried in a child. */
#include "test/harness/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "host-broker/confine/confine.h"

/* The runtime of the sanitizers makes calls that the filter refuses. */
#ifdef __SANITIZE_ADDRESS__
#define UNDER_SANITIZER 1
#else
#define UNDER_SANITIZER 0
#endif

static char folder[] =
    "/var/tmp/codev-confine-XXXXXX"; /* not below a folder that is always allowed */

static void path_in(char out[256], const char *name)
{
    snprintf(out, 256, "%s/%s", folder, name);
}

static void write_file(const char *name)
{
    char path[256];
    path_in(path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

static void make_folder(const char *name)
{
    char path[256];
    path_in(path, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    make_folder("token");
    make_folder("ca");
    make_folder("log");
    make_folder("run");
    make_folder("home");
    write_file("token/token");
    write_file("ca/ca.pem");
    write_file("home/secret");
    write_file("run/b.sock");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static int opened(const char *name, int flags)
{
    char path[256];
    path_in(path, name);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

static int confine_here(void)
{
    static char token[256], ca[256], log[256], sock[256];
    static const char *const ca_files[] = {ca};
    struct failure why = {""};
    path_in(token, "token/token");
    path_in(ca, "ca/ca.pem");
    path_in(log, "log/log");
    path_in(sock, "run/b.sock");
    struct confine_needs needs = {.token_file = token,
                                  .ca_files = ca_files,
                                  .ca_file_count = 1,
                                  .log = log,
                                  .sockets = {sock},
                                  .socket_count = 1};
    int result = confine_files(&needs, &why);
    if (result < 0)
        dprintf(STDERR_FILENO, "%s\n", why.text);
    return result;
}

static bool has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static void reads_what_it_needs(void)
{
    CHILD_ASSERT(confine_here() == 1);
    CHILD_ASSERT(opened("token/token", O_RDONLY) == 0);
    CHILD_ASSERT(opened("ca/ca.pem", O_RDONLY) == 0);
    CHILD_ASSERT(open("/etc/hosts", O_RDONLY | O_CLOEXEC) >= 0);
    CHILD_ASSERT(open("/dev/urandom", O_RDONLY | O_CLOEXEC) >= 0);
    int memory = memfd_create("store", MFD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
    CHILD_ASSERT(open(path, O_RDONLY | O_CLOEXEC) >= 0);
    CHILD_ASSERT(dlopen("libnss_files.so.2", RTLD_NOW) || dlopen("libm.so.6", RTLD_NOW));
}

static void writes_its_log_and_removes_its_socket(void)
{
    char log[256], older[256], sock[256];
    path_in(log, "log/log");
    path_in(older, "log/log.1");
    path_in(sock, "run/b.sock");
    CHILD_ASSERT(confine_here() == 1);
    CHILD_ASSERT(opened("log/log", O_WRONLY | O_APPEND | O_CREAT) == 0);
    CHILD_ASSERT(rename(log, older) == 0);
    CHILD_ASSERT(opened("log/log", O_WRONLY | O_APPEND | O_CREAT) == 0);
    CHILD_ASSERT(unlink(sock) == 0);
}

static void touches_no_other_file(void)
{
    char made[256];
    path_in(made, "home/made");
    CHILD_ASSERT(confine_here() == 1);
    CHILD_ASSERT(opened("home/secret", O_RDONLY) == -EACCES);
    CHILD_ASSERT(opened("home/secret", O_WRONLY) == -EACCES);
    CHILD_ASSERT(opened("home/new", O_WRONLY | O_CREAT) == -EACCES);
    CHILD_ASSERT(opened("token/token", O_WRONLY) == -EACCES);
    CHILD_ASSERT(opened("token/new", O_WRONLY | O_CREAT) == -EACCES);
    CHILD_ASSERT(opened("run/new", O_WRONLY | O_CREAT) == -EACCES);
    CHILD_ASSERT(opened("", O_RDONLY | O_DIRECTORY) == -EACCES);
    CHILD_ASSERT(mkdir(made, 0700) < 0 && errno == EACCES);
    CHILD_ASSERT(open("/proc/self/maps", O_RDONLY) < 0 && errno == EACCES);
    CHILD_ASSERT(open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
    execl("/bin/true", "true", (char *)NULL);
    CHILD_ASSERT(errno == EACCES);
}

static void *resolve(void *found)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *list = NULL;
    *(bool *)found = getaddrinfo("localhost", "443", &hints, &list) == 0 && list;
    return NULL;
}

static void names_resolve_in_a_thread(void)
{
    struct failure why;
    pthread_t thread;
    bool found = false;
    CHILD_ASSERT(confine_here() >= 0 && confine_calls(&why) == 1);
    CHILD_ASSERT(pthread_create(&thread, NULL, resolve, &found) == 0);
    CHILD_ASSERT(pthread_join(thread, NULL) == 0 && found);
}

static bool refused(long result, int error)
{
    return result < 0 && errno == error;
}

static void makes_no_process(void)
{
    struct failure why;
    CHILD_ASSERT(confine_calls(&why) == 1);
    CHILD_ASSERT(refused(execl("/bin/true", "true", (char *)NULL), EPERM));
    CHILD_ASSERT(refused(fork(), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_clone3, NULL, 0), ENOSYS));
#ifdef SYS_fork
    CHILD_ASSERT(refused(syscall(SYS_fork), EPERM));
#endif
}

static void looks_into_no_process(void)
{
    struct failure why;
    CHILD_ASSERT(confine_calls(&why) == 1);
    CHILD_ASSERT(refused(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_unshare, CLONE_NEWUSER), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_bpf, 0, NULL, 0), EPERM));
    CHILD_ASSERT(refused(syscall(SYS_io_uring_setup, 1, NULL), ENOSYS));
    CHILD_ASSERT(refused(syscall(SYS_mount, NULL, NULL, NULL, 0, NULL), EPERM));
}

static void makes_usual_sockets_only(void)
{
    struct failure why;
    int pair[2], stream, enabled = 1;
    CHILD_ASSERT(confine_calls(&why) == 1);
    CHILD_ASSERT((stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) >= 0);
    CHILD_ASSERT(setsockopt(stream, SOL_SOCKET, SO_KEEPALIVE, &enabled, sizeof(enabled)) == 0);
    CHILD_ASSERT(socket(AF_INET6, SOCK_DGRAM, 0) >= 0 || errno == EAFNOSUPPORT);
    CHILD_ASSERT(socket(AF_NETLINK, SOCK_RAW, 0) >= 0);
    CHILD_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHILD_ASSERT(refused(listen(stream, 1), EPERM));
    CHILD_ASSERT(refused(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT));
    CHILD_ASSERT(refused(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT));
    CHILD_ASSERT(refused(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT));
    CHILD_ASSERT(refused(socket(AF_NETLINK, SOCK_RAW, 12), EAFNOSUPPORT));
    CHILD_ASSERT(refused(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM));
    CHILD_ASSERT(refused(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6), EPERM));
}

static void run_with_landlock(void (*work)(void))
{
    if (UNDER_SANITIZER || !has_landlock())
        skip();
    in_child(work);
}

static void run_with_seccomp(void (*work)(void))
{
    if (UNDER_SANITIZER)
        skip();
    in_child(work);
}

#define FILE_TEST(work)                                                                            \
    static void test_##work(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with_landlock(work);                                                                   \
    }
#define CALL_TEST(work)                                                                            \
    static void test_##work(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run_with_seccomp(work);                                                                    \
    }

FILE_TEST(reads_what_it_needs)
FILE_TEST(writes_its_log_and_removes_its_socket)
FILE_TEST(touches_no_other_file)
CALL_TEST(names_resolve_in_a_thread)
CALL_TEST(makes_no_process)
CALL_TEST(looks_into_no_process)
CALL_TEST(makes_usual_sockets_only)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_it_needs),
        cmocka_unit_test(test_writes_its_log_and_removes_its_socket),
        cmocka_unit_test(test_touches_no_other_file),
        cmocka_unit_test(test_names_resolve_in_a_thread),
        cmocka_unit_test(test_makes_no_process),
        cmocka_unit_test(test_looks_into_no_process),
        cmocka_unit_test(test_makes_usual_sockets_only),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
