/* The modes that a process under the filter can and cannot give to a file. */
#include "test/harness/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "qemu-harness/launcher/folders/set_uid_filter.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static char folder[] = "/tmp/codev-set-uid-XXXXXX";
static int directory;

static void load(void)
{
    CHILD_ASSERT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_ASSERT(set_uid_filter_load() == 0);
}

#define REFUSED(call) CHILD_ASSERT((call) == -1 && errno == EPERM)

static void change_modes(void)
{
    int file = openat(directory, "file", O_CREAT | O_RDWR, 0644);
    CHILD_ASSERT(file >= 0);
    load();
    REFUSED(fchmod(file, 04755));
    REFUSED(fchmod(file, 06755));
    REFUSED(fchmodat(directory, "file", 04755, 0));
    REFUSED(syscall(SYS_fchmodat2, directory, "file", 04755, 0));
    CHILD_ASSERT(fchmod(file, 0755) == 0);
    CHILD_ASSERT(fchmodat(directory, "file", 0700, 0) == 0);
#ifdef SYS_chmod
    CHILD_ASSERT(fchdir(directory) == 0);
    REFUSED(syscall(SYS_chmod, "file", 04755));
    CHILD_ASSERT(syscall(SYS_chmod, "file", 0600) == 0);
#endif
}

static void make_files(void)
{
    load();
    REFUSED(openat(directory, "new", O_CREAT | O_WRONLY, 04755));
    REFUSED(openat(directory, "new", O_CREAT | O_WRONLY, 02755));
    REFUSED(openat(directory, ".", O_TMPFILE | O_WRONLY, 04755));
    REFUSED(mknodat(directory, "new", S_IFREG | 04755, 0));
    CHILD_ASSERT(faccessat(directory, "new", F_OK, 0) == -1);
    CHILD_ASSERT(openat(directory, "new", O_CREAT | O_WRONLY, 0755) >= 0);
    /* without O_CREAT the argument is ignored */
    CHILD_ASSERT(syscall(SYS_openat, directory, "new", O_RDONLY, 04755) >= 0);
    CHILD_ASSERT(mkdirat(directory, "folder", 0755) == 0);
    CHILD_ASSERT(fchmodat(directory, "folder", 02775, 0) == 0);
#ifdef SYS_chmod
    CHILD_ASSERT(fchdir(directory) == 0);
    REFUSED(syscall(SYS_open, "other", O_CREAT | O_WRONLY, 04755));
    REFUSED(syscall(SYS_creat, "other", 04755));
    REFUSED(syscall(SYS_mknod, "other", S_IFREG | 04755, 0));
#endif
}

static void what_the_filter_cannot_see(void)
{
    char how[24] = {0};
    load();
    CHILD_ASSERT(syscall(SYS_openat2, directory, "file", how, sizeof(how)) == -1 &&
                 errno == ENOSYS);
    CHILD_ASSERT(syscall(SYS_io_uring_setup, 1, NULL) == -1 && errno == ENOSYS);
#ifdef __x86_64__
    CHILD_ASSERT(syscall(0x40000000 | SYS_chmod, "file", 04755) == -1 && errno == ENOSYS);
#endif
}

static void changing_a_mode(void **state)
{
    (void)state;
    in_child(change_modes);
}

static void making_a_file(void **state)
{
    (void)state;
    in_child(make_files);
}

static void other_system_calls(void **state)
{
    (void)state;
    in_child(what_the_filter_cannot_see);
}

static int start(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory < 0;
}

static int stop(void **state)
{
    (void)state;
    unlinkat(directory, "file", 0);
    unlinkat(directory, "new", 0);
    unlinkat(directory, "folder", AT_REMOVEDIR);
    close(directory);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changing_a_mode),
                                       cmocka_unit_test(making_a_file),
                                       cmocka_unit_test(other_system_calls)};
    return cmocka_run_group_tests(tests, start, stop);
}
