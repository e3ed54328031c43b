/* See output.h. */
#include "qemu-harness/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define CREDIT_STEP (32 * 1024)

/* A description of our own for a pipe or terminal: O_NONBLOCK on it is nobody else's business. */
static int open_anew(int standard)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", standard);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

int output_open(struct output *output, int standard, struct failure *why)
{
    struct stat status;
    *output = (struct output){.fd = -1};
    output->bytes = malloc(OUTPUT_SIZE);
    if (!output->bytes)
        return failure_errno(why, ENOMEM, "output");
    if (fstat(standard, &status))
        return 0; /* it was closed: there is no reader */
    output->socket = S_ISSOCK(status.st_mode);
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))
        output->fd = open_anew(standard);
    if (output->fd < 0)
        output->fd = fcntl(standard, F_DUPFD_CLOEXEC, 3);
    return output->fd < 0 ? failure_errno(why, errno, "descriptor %d", standard) : 0;
}

void output_close(struct output *output)
{
    fd_close(&output->fd);
    free(output->bytes);
    output->bytes = NULL;
}

bool output_put(struct output *output, const unsigned char *data, size_t length)
{
    if (length > OUTPUT_SIZE - output->length)
        return false;
    size_t end = (output->start + output->length) % OUTPUT_SIZE;
    size_t first = length < OUTPUT_SIZE - end ? length : OUTPUT_SIZE - end;
    memcpy(output->bytes + end, data, first);
    memcpy(output->bytes, data + first, length - first);
    output->length += length;
    return true;
}

static ssize_t output_write(struct output *output, const unsigned char *data, size_t length)
{
    if (output->socket)
        return send(output->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    return write(output->fd, data, length);
}

void output_flush(struct output *output)
{
    while (output->length > 0) {
        size_t length = OUTPUT_SIZE - output->start;
        if (length > output->length)
            length = output->length;
        ssize_t written = (ssize_t)length;
        if (output->fd >= 0)
            written = output_write(output, output->bytes + output->start, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0) {
            fd_close(&output->fd);
            continue;
        }
        output->start = (output->start + (size_t)written) % OUTPUT_SIZE;
        output->length -= (size_t)written;
        output->owed += (size_t)written;
    }
}

size_t output_take_credit(struct output *output)
{
    size_t credit = output->owed;
    if (credit < CREDIT_STEP && (output->length > 0 || credit == 0))
        return 0;
    output->owed = 0;
    return credit;
}
