/* Reading, writing and waiting. All times are nanoseconds, all deadlines points of
 * CLOCK_MONOTONIC. */
#ifndef COMMON_OS_IO_H
#define COMMON_OS_IO_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define MILLISECONDS INT64_C(1000000)
#define SECONDS INT64_C(1000000000)
#define NEVER INT64_MAX /* a deadline that does not come */

/* Reads until `length` bytes or end of file, through EINTR and short reads. Bytes read or
 * -errno. */
ssize_t io_read_full(int fd, void *out, size_t length);

/* Writes all, through EINTR and short writes; on a non-blocking descriptor waits with poll(2).
 * 0 or a negative errno. */
int io_write_full(int fd, const void *data, size_t length);

/* Reads all that is left of a file, at most `size` - 1 bytes, and puts a NUL behind it. The length,
 * or a negative errno: -EFBIG when there is more. */
ssize_t io_read_whole(int fd, char *out, size_t size);

/* The same for the file at a path. `directory` as in openat(2); flags are added to O_RDONLY |
 * O_CLOEXEC. */
ssize_t io_read_file(int directory, const char *path, int flags, char *out, size_t size);

/* Opens a regular file for reading and never waits, as for the other end of a FIFO. The descriptor
 * with its status, or a negative errno: -EINVAL when it is something else. */
int io_open_regular(int directory, const char *path, int flags, struct stat *status);

/* Writes a small file in one write(2): for /proc and /sys and new files (O_CREAT with `mode` when
 * flags hold O_CREAT). 0 or a negative errno. */
int io_write_file(int directory, const char *path, int flags, unsigned mode, const char *text);

/* Copies the next path out of a list with colons between, as PATH is one, and moves *list behind
 * it. Empty ones and those of PATH_MAX bytes and more are skipped. False at the end. */
bool io_next_path(const char **list, char *path);

int io_set_nonblocking(int fd); /* 0 or a negative errno */

int64_t io_monotonic_ns(void); /* CLOCK_MONOTONIC */

/* The timeout of poll(2) or epoll_wait(2) for a deadline: milliseconds, rounded up so that the wait
 * never ends before it; 0 when it is past, -1 for NEVER. */
int io_timeout_ms(int64_t deadline, int64_t now);

/* poll(2) until the deadline, through EINTR. The number of ready descriptors; 0 at or after the
 * deadline, without a look at them; or a negative errno. */
int io_poll(struct pollfd *polls, unsigned count, int64_t deadline);

/* The same for one descriptor: whether it became ready for `events`, or has an error or an end to
 * report. */
bool io_wait(int fd, short events, int64_t deadline);

#endif
