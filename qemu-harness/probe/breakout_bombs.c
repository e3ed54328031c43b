/* Breakout: using up processes, memory, files and disk. A bomb is refused when it meets a limit
 * before the number in the command line; in the control run the machine has more than that number.
 * The test checks that PID 1, the relay and the other processes still run afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/breakout.h"
#include "qemu-harness/probe/probe.h"

#define MEGABYTE (1024 * 1024)

/* Reports the count reached. Returns 0 (it worked) when that is at least `enough`. */
static long stop(unsigned long count, unsigned long enough, const char *unit)
{
    int error = errno;
    breakout_say("%s after %lu %s", count < enough ? probe_errno_name(error) : "no end", count,
                 unit);
    errno = error;
    return count < enough ? -1 : 0;
}

static long fork_bomb(const struct breakout_vector *vector)
{
    unsigned long count = 0;
    (void)vector;
    setpgid(0, 0);
    while (count < breakout_place.processes) {
        pid_t child = fork();
        if (child < 0)
            break;
        if (child == 0) {
            pause();
            _exit(0);
        }
        count++;
    }
    long result = stop(count, breakout_place.processes, "processes");
    int error = errno;
    signal(SIGTERM, SIG_IGN);
    kill(0, SIGTERM);
    while (waitpid(-1, NULL, 0) > 0)
        ;
    errno = error;
    return result;
}

/* Writes to the memory, because the kernel allocates a page at its first write. */
static long memory_bomb(const struct breakout_vector *vector)
{
    unsigned long count = 0;
    for (; count < breakout_place.megabytes; count++) {
        char *piece = mmap(NULL, MEGABYTE, PROT_READ | PROT_WRITE,
                           MAP_ANONYMOUS | (vector->number ? MAP_SHARED : MAP_PRIVATE), -1, 0);
        if (piece == MAP_FAILED)
            break;
        for (size_t i = 0; i < MEGABYTE; i += 4096)
            piece[i] = 1;
    }
    return stop(count, breakout_place.megabytes, "MiB");
}

static long disk_bomb(const struct breakout_vector *vector)
{
    static char block[MEGABYTE];
    unsigned long count = 0, half = breakout_place.megabytes / 2;
    CLEANUP_FD int fd = open(vector->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    unlink(vector->path); /* the kernel frees it when this process ends */
    memset(block, 1, sizeof(block));
    while (count < half && io_write_full(fd, block, sizeof(block)) == 0)
        count++;
    return stop(count, half, "MiB");
}

static long descriptor_bomb(const struct breakout_vector *vector)
{
    unsigned long count = 0;
    struct rlimit limit = {breakout_place.files + 64, breakout_place.files + 64};
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    while (count < breakout_place.files && open(vector->path, O_RDWR | O_NOCTTY | O_CLOEXEC) >= 0)
        count++;
    return stop(count, breakout_place.files, "descriptors");
}

static const struct breakout_vector bombs[] = {
    {.name = "processes", .attempt = fork_bomb},
    {.name = "descriptors", .attempt = descriptor_bomb, .path = "/dev/null"},
    {.name = "terminals", .attempt = descriptor_bomb, .path = "/dev/ptmx"},
    {.name = "private memory", .attempt = memory_bomb},
    {.name = "shared memory", .attempt = memory_bomb, .number = 1},
    {.name = "files in /dev/shm", .attempt = disk_bomb, .path = "/dev/shm/breakout"},
    {.name = "files in /tmp", .attempt = disk_bomb, .path = "/tmp/breakout"},
};
const struct breakout_group breakout_bombs = {"bombs", bombs, ARRAY_LENGTH(bombs), 1};
