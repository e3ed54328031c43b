/* Unit tests of init/walls/seccomp.c: the filter in an interpreter, for every system call and ABI,
 * and the same filter in the kernel, in a forked child that tries calls that are refused and calls
 * that must work. */
#include "test/harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "init/walls/seccomp.h"
#include "test/harness/seccomp_interpreter.h"

static struct seccomp_filter filter;

/* 0 when allowed, else the errno. */
static int verdict(long number, uint64_t first, uint64_t second, uint64_t third)
{
    struct seccomp_data data = {
        .nr = (int)number, .arch = OWN_ARCH, .args = {first, second, third}};
    uint32_t action = seccomp_interpret(&filter, &data);

    if (action == SECCOMP_RET_ALLOW)
        return 0;
    assert_int_equal(action & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ERRNO);
    return (int)(action & SECCOMP_RET_DATA);
}

static int load(void **state)
{
    (void)state;
    return seccomp_server_filter(&filter, false);
}

static int load_with_namespaces(void **state)
{
    (void)state;
    return seccomp_server_filter(&filter, true);
}

static void sockets(void **state)
{
    (void)state;
    for (int family = 0; family < 64; family++) {
        int allowed =
            family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
        assert_int_equal(verdict(SYS_socket, (uint64_t)family, SOCK_STREAM, 0),
                         allowed ? 0 : EAFNOSUPPORT);
        assert_int_equal(verdict(SYS_socketpair, (uint64_t)family, SOCK_STREAM, 0),
                         family == AF_UNIX ? 0 : EAFNOSUPPORT);
    }
    for (int protocol = 0; protocol < 32; protocol++) {
        assert_int_equal(
            verdict(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, (uint64_t)protocol),
            protocol == NETLINK_ROUTE ? 0 : EAFNOSUPPORT);
    }
    static const uint64_t families[] = {AF_INET, AF_INET6};
    static const uint64_t flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK, SOCK_CLOEXEC | SOCK_NONBLOCK,
                                     1ull << 40};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 5; j++) {
            assert_int_equal(verdict(SYS_socket, families[i], SOCK_RAW | flags[j], IPPROTO_TCP),
                             EPERM);
            assert_int_equal(verdict(SYS_socket, families[i], SOCK_PACKET | flags[j], 0x300),
                             EPERM);
            assert_int_equal(verdict(SYS_socket, families[i], SOCK_STREAM | flags[j], 0), 0);
            assert_int_equal(verdict(SYS_socket, families[i], SOCK_DGRAM | flags[j], IPPROTO_UDP),
                             0);
            assert_int_equal(verdict(SYS_socket, families[i], SOCK_STREAM | flags[j], 262),
                             EPROTONOSUPPORT);
        }
    }
    /* the kernel takes an int: the upper half of the register changes nothing */
    assert_int_equal(verdict(SYS_socket, 0xdead00000000ull | 40, SOCK_STREAM, 0), EAFNOSUPPORT);
    assert_int_equal(verdict(SYS_socket, 0xdead00000000ull | AF_INET, SOCK_RAW, 0), EPERM);
    assert_int_equal(verdict(SYS_socket, (uint64_t)-1, SOCK_STREAM, 0), EAFNOSUPPORT);
}

static const struct {
    long number;
    int error;
    bool namespaces; /* allowed with user_namespaces */
} refused[] = {
    {SYS_io_uring_setup, ENOSYS, false},
    {SYS_io_uring_enter, ENOSYS, false},
    {SYS_io_uring_register, ENOSYS, false},
    {SYS_clone3, ENOSYS, false},
    {SYS_bpf, EPERM, false},
    {SYS_perf_event_open, EPERM, false},
    {SYS_kexec_load, EPERM, false},
    {SYS_init_module, EPERM, false},
    {SYS_finit_module, EPERM, false},
    {SYS_delete_module, EPERM, false},
#ifdef __x86_64__
    {SYS_modify_ldt, ENOSYS, false},
#endif
    {SYS_swapon, EPERM, false},
    {SYS_swapoff, EPERM, false},
    {SYS_reboot, EPERM, false},
    {SYS_settimeofday, EPERM, false},
    {SYS_clock_settime, EPERM, false},
    {SYS_adjtimex, EPERM, false},
    {SYS_clock_adjtime, EPERM, false},
    {SYS_keyctl, EPERM, false},
    {SYS_add_key, EPERM, false},
    {SYS_request_key, EPERM, false},
    {SYS_userfaultfd, EPERM, false},
    {SYS_open_by_handle_at, EPERM, false},
    {SYS_mount, EPERM, true},
    {SYS_umount2, EPERM, true},
    {SYS_pivot_root, EPERM, true},
    {SYS_chroot, EPERM, true},
    {SYS_setns, EPERM, true},
    {SYS_fsopen, EPERM, true},
    {SYS_fsconfig, EPERM, true},
    {SYS_fsmount, EPERM, true},
    {SYS_fspick, EPERM, true},
    {SYS_move_mount, EPERM, true},
    {SYS_open_tree, EPERM, true},
    {SYS_mount_setattr, EPERM, true},
    {467, EPERM, true}, /* open_tree_attr */
#ifdef __x86_64__
    {SYS_iopl, EPERM, false},
    {SYS_ioperm, EPERM, false},
#endif
    {SYS_kexec_file_load, EPERM, false},
};

static int expected(long number, bool namespaces)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (refused[i].number == number)
            return namespaces && refused[i].namespaces ? 0 : refused[i].error;
    }
    return 0;
}

/* Every number there is or will be for a while: exactly the list is refused. */
static void numbers(bool namespaces)
{
    for (long number = 0; number < 1024; number++) {
        if (number == SYS_socket || number == SYS_socketpair)
            continue;
        assert_int_equal(verdict(number, 0, 0, 0), expected(number, namespaces));
    }
}

static void list(void **state)
{
    (void)state;
    numbers(false);
}

static void list_with_namespaces(void **state)
{
    (void)state;
    numbers(true);
    assert_int_equal(verdict(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0), 0);
    assert_int_equal(verdict(SYS_unshare, CLONE_NEWUSER, 0, 0), 0);
}

static void namespaces(void **state)
{
    static const uint64_t flags[] = {CLONE_NEWNS,  CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
                                     CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};

    (void)state;
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        assert_int_equal(verdict(SYS_clone, flags[i] | SIGCHLD, 0, 0), EPERM);
        assert_int_equal(verdict(SYS_unshare, flags[i] | CLONE_FILES, 0, 0), EPERM);
    }
    assert_int_equal(verdict(SYS_unshare, CLONE_NEWTIME, 0, 0), EPERM);
    assert_int_equal(verdict(SYS_unshare, CLONE_FILES | CLONE_FS, 0, 0), 0);
    /* threads, vfork and the C library's fork */
    assert_int_equal(verdict(SYS_clone,
                             CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                 CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                 CLONE_CHILD_CLEARTID,
                             0, 0),
                     0);
    assert_int_equal(verdict(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0), 0);
    assert_int_equal(verdict(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0),
                     0);
}

static void other_abis(void **state)
{
    static const uint32_t architectures[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64,
                                             AUDIT_ARCH_X86_64, 0};

    (void)state;
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
        if (architectures[i] == OWN_ARCH)
            continue;
        for (int number = 0; number < 512; number++) {
            struct seccomp_data data = {.nr = number, .arch = architectures[i]};
            assert_int_equal(seccomp_interpret(&filter, &data), SECCOMP_RET_ERRNO | ENOSYS);
        }
    }
#ifdef __x86_64__
    assert_int_equal(verdict(0x40000000 | SYS_getpid, 0, 0, 0), ENOSYS);
    assert_int_equal(verdict(0x40000000 | 547, 0, 0, 0), ENOSYS);
    assert_int_equal(verdict(-1, 0, 0, 0), ENOSYS);
#endif
}

/* --- in the kernel
 * ---------------------------------------------------------------------------------------- */

static void assert_socket(int family, int type, int protocol, int error)
{
    int fd = socket(family, type, protocol);

    if (error == 0)
        CHILD_ASSERT(fd >= 0);
    else
        CHILD_ASSERT(fd == -1 && errno == error);
    if (fd >= 0)
        close(fd);
}

static void real_sockets(void)
{
    assert_socket(AF_UNIX, SOCK_STREAM, 0, 0);
    assert_socket(AF_INET, SOCK_STREAM, 0, 0);
    assert_socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0);
    assert_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE, 0);
    assert_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, EAFNOSUPPORT);
    assert_socket(40 /* AF_VSOCK */, SOCK_STREAM, 0, EAFNOSUPPORT);
    assert_socket(AF_PACKET, SOCK_RAW, 0, EAFNOSUPPORT);
    assert_socket(38 /* AF_ALG */, SOCK_SEQPACKET, 0, EAFNOSUPPORT);
    assert_socket(AF_INET, SOCK_RAW, IPPROTO_RAW, EPERM);
    assert_socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6, EPERM);
    assert_socket(AF_INET, SOCK_PACKET, 0x300, EPERM);
    assert_socket(AF_INET, SOCK_STREAM, 262, EPROTONOSUPPORT);
}

static void real_calls(void)
{
    char buffer[256] = {0};
    int pair[2];

    CHILD_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_ASSERT(seccomp_load_server_filter(false) == 0);
    real_sockets();
    CHILD_ASSERT(syscall(SYS_io_uring_setup, 1, buffer) == -1 && errno == ENOSYS);
    CHILD_ASSERT(syscall(SYS_clone3, buffer, 88) == -1 && errno == ENOSYS);
    CHILD_ASSERT(unshare(CLONE_NEWUSER) == -1 && errno == EPERM);
    CHILD_ASSERT(mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == -1 && errno == EPERM);
    CHILD_ASSERT(umount2("/tmp", MNT_DETACH) == -1 && errno == EPERM);
    CHILD_ASSERT(syscall(SYS_fsopen, "tmpfs", 0) == -1 && errno == EPERM);
    CHILD_ASSERT(syscall(SYS_bpf, 0, buffer, 1) == -1 && errno == EPERM);
    CHILD_ASSERT(syscall(SYS_keyctl, 0, 0) == -1 && errno == EPERM);
    CHILD_ASSERT(syscall(SYS_userfaultfd, 0) == -1 && errno == EPERM);
    /* what runtimes use */
    CHILD_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHILD_ASSERT(memfd_create("x", MFD_CLOEXEC) >= 0);
    CHILD_ASSERT(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0) != MAP_FAILED);
    CHILD_ASSERT(unshare(CLONE_FILES) == 0);
    pid_t child = fork();
    CHILD_ASSERT(child >= 0);
    if (child == 0)
        _exit(7);
    int status;
    CHILD_ASSERT(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
}

static void in_the_kernel(void **state)
{
    (void)state;
    in_child(real_calls);
}

static void needs_no_new_privileges_only(void)
{
    CHILD_ASSERT(seccomp_load_server_filter(true) <= 0);
    CHILD_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_ASSERT(seccomp_load_server_filter(true) == 0);
    CHILD_ASSERT(prctl(PR_GET_SECCOMP) == 2);
}

static void with_namespaces_in_the_kernel(void **state)
{
    (void)state;
    in_child(needs_no_new_privileges_only);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(sockets, load),
        cmocka_unit_test_setup(list, load),
        cmocka_unit_test_setup(list_with_namespaces, load_with_namespaces),
        cmocka_unit_test_setup(namespaces, load),
        cmocka_unit_test_setup(other_abis, load),
        cmocka_unit_test(in_the_kernel),
        cmocka_unit_test(with_namespaces_in_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
