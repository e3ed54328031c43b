/* Tries each file operation that programs use once in a folder and reports it on a line of its own:
 *
 *     fileops<TAB>OPERATION<TAB>worked | the error's name | wrong: WHAT
 *
 * An operation checks its result in the guest (it reads back what it wrote); a test compares the
 * resulting files on the host. The bytes are always the same: the file `name` holds lines of its
 * own name. In a read-only folder each operation must fail with the same error, and none may hang.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"

#define LINES 200
#define SPARSE_BYTES (5ll << 30)
#define MANY_MAX 100000
#define WRONG (-2) /* no error, but a wrong result */

static const char *wrong;
static unsigned many;

static int is_wrong(const char *what)
{
    wrong = what;
    return WRONG;
}

/* Creates the file with its content and returns a descriptor. */
static int create(const char *name)
{
    static char bytes[LINES * 300];
    size_t length = 0;
    for (int i = 0; i < LINES; i++)
        length += (size_t)snprintf(bytes + length, sizeof(bytes) - length, "%s\n", name);
    int fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
    int result = fd < 0 ? 0 : io_write_full(fd, bytes, length);
    if (result < 0) {
        fd_close(&fd);
        errno = -result;
    }
    return fd;
}

static int leave(const char *name)
{
    CLEANUP_FD int fd = create(name);
    return fd < 0 ? -1 : 0;
}

/* Whether the file holds what `create` wrote for that name. */
static int check(const char *file, const char *name)
{
    static char bytes[LINES * 300];
    size_t line = strlen(name) + 1;
    ssize_t got = io_read_file(AT_FDCWD, file, 0, bytes, sizeof(bytes));
    if (got < 0) {
        errno = (int)-got;
        return -1;
    }
    if ((size_t)got != line * LINES)
        return is_wrong("another size");
    for (size_t i = 0; i < LINES; i++) {
        if (memcmp(bytes + i * line, name, line - 1) != 0 || bytes[i * line + line - 1] != '\n')
            return is_wrong("other bytes");
    }
    return 0;
}

static int do_create(void)
{
    return leave("create") < 0 ? -1 : check("create", "create");
}

static int do_exclusive(void)
{
    CLEANUP_FD int fd = open("create", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return fd >= 0 ? is_wrong("made twice") : errno == EEXIST ? 0 : -1;
}

static int do_rename_over(void)
{
    if (leave("rename-old") < 0 || leave("rename-new") < 0 ||
        rename("rename-new", "rename-old") < 0)
        return -1;
    return access("rename-new", F_OK) == 0 ? is_wrong("both are there")
                                           : check("rename-old", "rename-new");
}

static int do_append(void)
{
    CLEANUP_FD int made = create("append");
    CLEANUP_FD int fd = made < 0 ? -1 : open("append", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0 || write(fd, "the end\n", 8) != 8)
        return -1;
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -1;
    return status.st_size == LINES * 7 + 8 ? 0 : is_wrong("not at the end");
}

static int do_map(void)
{
    CLEANUP_FD int fd = create("mmap");
    if (fd < 0)
        return -1;
    char *bytes = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (bytes == MAP_FAILED)
        return -1;
    memcpy(bytes, "MMAP", 4);
    if (msync(bytes, 4096, MS_SYNC) < 0 || munmap(bytes, 4096) < 0)
        return -1;
    char seen[4];
    return pread(fd, seen, 4, 0) != 4 ? -1 : memcmp(seen, "MMAP", 4) ? is_wrong("other bytes") : 0;
}

static int do_hard_link(void)
{
    struct stat status;
    if (leave("hard-link") < 0 || link("hard-link", "hard-link-2") < 0 ||
        stat("hard-link-2", &status) < 0)
        return -1;
    return status.st_nlink == 2 ? check("hard-link-2", "hard-link") : is_wrong("not two links");
}

static int do_symlink(void)
{
    char text[64];
    if (symlink("create", "symlink") < 0 || symlink("/nowhere/\n \"", "dangling") < 0)
        return -1;
    ssize_t length = readlink("dangling", text, sizeof(text));
    if (length < 0)
        return -1;
    return length == 12 && memcmp(text, "/nowhere/\n \"", 12) == 0 ? check("symlink", "create")
                                                                   : is_wrong("another target");
}

static int do_fsync(void)
{
    CLEANUP_FD int fd = create("fsync");
    CLEANUP_FD int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) < 0 || fdatasync(fd) < 0 || folder < 0 || fsync(folder) < 0 ? -1 : 0;
}

/* A lock that conflicts with a second open of the file. */
static int do_lock(void)
{
    CLEANUP_FD int fd = create("lock");
    CLEANUP_FD int other = fd < 0 ? -1 : open("lock", O_RDWR | O_CLOEXEC);
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 10};
    if (other < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    if (flock(other, LOCK_EX | LOCK_NB) == 0)
        return is_wrong("locked twice");
    return flock(fd, LOCK_UN) < 0 || fcntl(fd, F_SETLK, &range) < 0 ? -1 : 0;
}

static int do_chmod(void)
{
    struct stat status;
    if (leave("chmod") < 0 || chmod("chmod", 0750) < 0 || stat("chmod", &status) < 0)
        return -1;
    return (status.st_mode & 07777) == 0750 ? 0 : is_wrong("another mode");
}

static int do_owner(void)
{
    struct stat status;
    if (leave("owner") < 0 || stat("owner", &status) < 0)
        return -1;
    return status.st_uid == getuid() && status.st_gid == getgid() ? 0 : is_wrong("another owner");
}

static int do_times(void)
{
    struct timespec times[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
    struct stat status;
    if (leave("times") < 0 || utimensat(AT_FDCWD, "times", times, 0) < 0 ||
        stat("times", &status) < 0)
        return -1;
    if (status.st_mtim.tv_sec != 1100000000)
        return is_wrong("another time");
    return status.st_mtim.tv_nsec == 987654321 ? 0 : is_wrong("whole seconds only");
}

static int do_truncate(void)
{
    struct stat status;
    if (leave("truncate") < 0 || truncate("truncate", 100) < 0 || stat("truncate", &status) < 0)
        return -1;
    return status.st_size == 100 ? 0 : is_wrong("another size");
}

static int do_xattr(void)
{
    char value[16];
    if (leave("xattr") < 0 || setxattr("xattr", "user.codev", "value", 5, 0) < 0)
        return -1;
    ssize_t length = getxattr("xattr", "user.codev", value, sizeof(value));
    return length < 0                                      ? -1
           : length == 5 && memcmp(value, "value", 5) == 0 ? 0
                                                           : is_wrong("another value");
}

static int do_sparse(void)
{
    struct stat status;
    char byte = 1;
    CLEANUP_FD int fd = open("sparse", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, SPARSE_BYTES) < 0 || pwrite(fd, "end", 3, SPARSE_BYTES - 3) != 3)
        return -1;
    if (fstat(fd, &status) < 0 || pread(fd, &byte, 1, SPARSE_BYTES / 2) != 1)
        return -1;
    return status.st_size == SPARSE_BYTES && byte == 0 && status.st_blocks < 20000
               ? 0
               : is_wrong("not sparse");
}

static int do_unlinked(void)
{
    char byte = 0;
    CLEANUP_FD int fd = create("unlinked");
    if (fd < 0 || unlink("unlinked") < 0 || write(fd, "x", 1) != 1 || pread(fd, &byte, 1, 0) != 1)
        return -1;
    return byte == 'u' ? 0 : is_wrong("other bytes");
}

static int do_folders(void)
{
    if (mkdir("folder", 0755) < 0 || mkdir("folder/inner", 0700) < 0 ||
        leave("folder/inner/deep") < 0 || rename("folder/inner", "folder/moved") < 0)
        return -1;
    if (rmdir("folder") == 0 || (errno != ENOTEMPTY && errno != EEXIST))
        return is_wrong("removed though full");
    return check("folder/moved/deep", "folder/inner/deep");
}

static int do_names(void)
{
    char longest[256];
    memset(longest, 'n', 255);
    longest[255] = '\0';
    return leave("a b'\",;:=\\%$`*?\t") < 0 || leave("line\nbreak") < 0 ||
                   leave("gr\xc3\xb6\xc3\x9f"
                         "e-\xf0\x9f\x98\x80") < 0 ||
                   leave("-dash") < 0 || leave(longest) < 0
               ? -1
               : 0;
}

static int do_many(void)
{
    char name[32];
    unsigned seen = 0;
    if (mkdir("many", 0755) < 0)
        return -1;
    for (unsigned i = 0; i < many; i++) {
        snprintf(name, sizeof(name), "many/%u", i);
        CLEANUP_FD int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, name, strlen(name)) != (ssize_t)strlen(name))
            return -1;
    }
    DIR *folder = opendir("many");
    while (folder && readdir(folder))
        seen++;
    if (folder)
        closedir(folder);
    return seen == many + 2 ? 0 : is_wrong("not all are listed");
}

static const struct {
    const char *name;
    int (*run)(void);
} operations[] = {
    {"create", do_create},
    {"create exclusively", do_exclusive},
    {"rename over", do_rename_over},
    {"append", do_append},
    {"mmap", do_map},
    {"hard link", do_hard_link},
    {"symlink", do_symlink},
    {"fsync", do_fsync},
    {"lock", do_lock},
    {"chmod", do_chmod},
    {"owner", do_owner},
    {"times", do_times},
    {"truncate", do_truncate},
    {"xattr", do_xattr},
    {"5 GiB sparse", do_sparse},
    {"unlinked", do_unlinked},
    {"folders", do_folders},
    {"odd names", do_names},
    {"many files", do_many},
};

static int probe_fileops(int argc, char **argv)
{
    int failures = 0;
    many = argc > 2 ? (unsigned)probe_number(argv[2], MANY_MAX) : 0;
    if (chdir(argv[1]) < 0) {
        printf("fileops\tenter\t%s\n", probe_errno_name(errno));
        return PROBE_BROKEN;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(operations); i++) {
        errno = 0;
        int result = operations[i].run();
        if (result == WRONG)
            printf("fileops\t%s\twrong: %s\n", operations[i].name, wrong);
        else
            printf("fileops\t%s\t%s\n", operations[i].name,
                   result < 0 ? probe_errno_name(errno) : "worked");
        failures += result != 0;
    }
    return failures ? PROBE_BROKEN : PROBE_DONE;
}

static const struct probe_verb verbs[] = {
    {"fileops", "DIR [N]", "file operations in a folder, with N small files", NULL, probe_fileops,
     1, 2},
};
const struct probe_verbs file_verbs = {verbs, ARRAY_LENGTH(verbs)};
