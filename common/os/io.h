/* Small helpers around read(2) and write(2). */
#ifndef COMMON_OS_IO_H
#define COMMON_OS_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads until `length` bytes or end of file, through EINTR and short reads. Bytes read or -errno. */
ssize_t io_read_full(int fd, void *out, size_t length);

/* Writes all, through EINTR and short writes; on a non-blocking descriptor waits with poll(2).
 * 0 or a negative errno. */
int io_write_full(int fd, const void *data, size_t length);

/* Reads a whole file of at most `size` - 1 bytes and puts a NUL behind it. Length, or a negative errno
 * (-EFBIG when it is larger). `directory` as in openat(2); flags are added to O_RDONLY | O_CLOEXEC. */
ssize_t io_read_file(int directory, const char *path, int flags, char *out, size_t size);

/* Writes a small file in one write(2): for /proc and /sys and new files (O_CREAT with `mode` when
 * flags hold O_CREAT). 0 or a negative errno. */
int io_write_file(int directory, const char *path, int flags, unsigned mode, const char *text);

int io_set_nonblocking(int fd); /* 0 or a negative errno */

int64_t io_monotonic_ns(void); /* CLOCK_MONOTONIC, nanoseconds */

#endif
