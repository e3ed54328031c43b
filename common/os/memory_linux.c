/* mmap(2), madvise(2) and memfd_create(2) behind memory.h. */
#include "common/os/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

void *memory_reserve(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void memory_discard(void *memory, size_t size)
{
    (void)madvise(memory, size, MADV_DONTNEED);
}

void memory_free(void *memory, size_t size)
{
    if (memory)
        (void)munmap(memory, size);
}

void memory_protect(void *memory, size_t size)
{
    (void)mlock(memory, size); /* fails under a low RLIMIT_MEMLOCK */
    (void)madvise(memory, size, MADV_DONTDUMP);
}

int memory_file_open(const char *label, struct failure *why)
{
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? failure_errno(why, errno, "make a file in memory (%s)", label) : fd;
}

void memory_file_seal(int fd)
{
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

void memory_file_path(int fd, char out[MEMORY_FILE_PATH_MAX])
{
    snprintf(out, MEMORY_FILE_PATH_MAX, "/proc/self/fd/%d", fd);
}
