/* A ring for each stream, the escaping, and the writes. */
#include "qemu-harness/launcher/guest/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/text/escape.h"
#include "qemu-harness/launcher/host/descriptors.h"

#define CREDIT_STEP (32 * 1024)

/* Opens a pipe or terminal anew: O_NONBLOCK then affects no other process. */
static int open_anew(int standard)
{
    char path[DESCRIPTOR_PATH_SIZE];
    descriptor_path(standard, path);
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
        return 0; /* closed: there is no reader */
    output->socket = S_ISSOCK(status.st_mode);
    output->terminal = isatty(standard) == 1;
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

/* The first contiguous bytes of the ring. */
static unsigned char *ring_front(const struct output *output, size_t *length)
{
    *length = OUTPUT_SIZE - output->start;
    if (*length > output->length)
        *length = output->length;
    return output->bytes + output->start;
}

static void ring_consume(struct output *output, size_t length)
{
    output->start = (output->start + length) % OUTPUT_SIZE;
    output->length -= length;
    output->owed += length;
}

/* The number of bytes at the end that begin a character which is not complete. */
static size_t cut_character(const char *text, size_t length)
{
    for (size_t back = 1; back < OUTPUT_CHARACTER_MAX && back <= length; back++) {
        unsigned char byte = (unsigned char)text[length - back];
        size_t whole = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
        if (byte >= 0xc0)
            return whole > back ? back : 0;
        if (byte < 0x80)
            return 0;
    }
    return 0;
}

/* Escapes the next piece of the ring into `shown`. */
static void escape_piece(struct output *output)
{
    char piece[OUTPUT_CHARACTER_MAX + OUTPUT_ESCAPED_PIECE];
    size_t length = output->cut_length, more;
    memcpy(piece, output->cut, length);
    const unsigned char *bytes = ring_front(output, &more);
    if (more > OUTPUT_ESCAPED_PIECE)
        more = OUTPUT_ESCAPED_PIECE;
    memcpy(piece + length, bytes, more);
    ring_consume(output, more);
    length += more;
    output->cut_length = output->last && output->length == 0 ? 0 : cut_character(piece, length);
    length -= output->cut_length;
    memcpy(output->cut, piece + length, output->cut_length);
    output->shown_start = 0;
    output->shown_end = escape_text(output->shown, sizeof(output->shown), piece, length, 1);
}

/* The bytes to write next; 0 when there are none. */
static const void *next_bytes(struct output *output, size_t *length)
{
    if (!output->escape)
        return ring_front(output, length);
    if (output->shown_start == output->shown_end && output_pending(output))
        escape_piece(output);
    *length = output->shown_end - output->shown_start;
    return output->shown + output->shown_start;
}

bool output_pending(const struct output *output)
{
    return output->length > 0 || output->shown_start < output->shown_end ||
           (output->last && output->cut_length > 0);
}

void output_finish(struct output *output)
{
    output->last = true;
}

/* The reader has closed: discards what waits. */
static void discard(struct output *output)
{
    ring_consume(output, output->length);
    output->shown_start = output->shown_end = output->cut_length = 0;
}

void output_flush(struct output *output)
{
    while (output_pending(output)) {
        size_t length;
        if (output->fd < 0) {
            discard(output);
            return;
        }
        const void *bytes = next_bytes(output, &length);
        ssize_t written = length > 0 ? output_write(output, bytes, length) : 0;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0 && errno != EINTR)
            fd_close(&output->fd);
        else if (written > 0 && output->escape)
            output->shown_start += (size_t)written;
        else if (written > 0)
            ring_consume(output, (size_t)written);
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
