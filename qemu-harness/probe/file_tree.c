/* Lists the content of a folder as seen from the guest; and a writer that writes until a write
 * fails. */
#include <bearssl.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"
#include "qemu-harness/probe/traffic.h"

#define HASH_MOST (1 << 20) /* larger files are compared by their size and their last bytes */
#define TAIL 4096
#define HASH_LEAST                                                                                 \
    16 /* the many small files of fileops: their bytes are looked at from outside only */
#define OPEN_MOST 16

static size_t prefix;

/* Writes all bytes but letters, digits, dot and slash in hex, so that a name cannot contain a line
 * end. */
static void print_path(const char *path)
{
    for (; *path; path++) {
        unsigned char byte = (unsigned char)*path;
        int plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                    (byte >= '0' && byte <= '9');
        if (plain || byte == '.' || byte == '/')
            putchar(byte);
        else
            printf("%%%02x", byte);
    }
    putchar('\n');
}

static void hash_file(const char *path, off_t size, char out[65])
{
    br_sha256_context hash;
    char bytes[4096];
    ssize_t got;
    strcpy(out, "unreadable");
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (size > HASH_MOST && lseek(fd, -TAIL, SEEK_END) < 0))
        return;
    br_sha256_init(&hash);
    while ((got = read(fd, bytes, sizeof(bytes))) > 0)
        br_sha256_update(&hash, bytes, (size_t)got);
    if (got == 0)
        traffic_digest(&hash, out);
}

static int show(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    char digest[65] = "-";
    (void)kind, (void)place;
    if (S_ISREG(status->st_mode) && status->st_size > HASH_LEAST)
        hash_file(path, status->st_size, digest);
    printf("filetree %o %u %u %lld %s ", status->st_mode, status->st_uid, status->st_gid,
           S_ISREG(status->st_mode) ? (long long)status->st_size : 0, digest);
    print_path(path + prefix);
    return 0;
}

static int probe_filetree(int argc, char **argv)
{
    (void)argc;
    prefix = strlen(argv[1]);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (nftw(argv[1], show, OPEN_MOST, FTW_PHYS) < 0)
        probe_die("%s: %s", argv[1], strerror(errno));
    return PROBE_DONE;
}

/* Writes to a file of the folder repeatedly until a write fails, and reports the error. */
static int probe_write_on(int argc, char **argv)
{
    int64_t end = probe_now_us() + (int64_t)probe_number(argv[2], 1000) * 1000000;
    unsigned long count = 0;
    int error = 0;
    (void)argc;
    while (error == 0 && probe_now_us() < end) {
        CLEANUP_FD int fd = open(argv[1], O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) < 0)
            error = errno;
        if (error == 0 && ++count == 1)
            printf("write-on: begun\n");
    }
    printf("write-on: %s after %lu writes\n", error ? probe_errno_name(error) : "no end", count);
    return error ? PROBE_DONE : PROBE_BROKEN;
}

static const struct probe_verb verbs[] = {
    {"filetree", "DIR", "mode, owner, size, hash and name of all there is", NULL, probe_filetree, 1,
     1},
    {"write-on", "FILE SECONDS", "writes a file until that fails", NULL, probe_write_on, 2, 2},
};
const struct probe_verbs tree_verbs = {verbs, ARRAY_LENGTH(verbs)};
