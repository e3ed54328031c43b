/* The server's input and output.
 *
 * In the modes `pipe` and `tty` a stream is read when the control channel's output slot is free,
 * one piece into one event. The streams take turns, so that a flood on one does not starve the
 * other. In mode `log` the streams are read whenever they have bytes, into line buffers that fill
 * the slot.
 */
#include "init/server/server_io.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "init/host/events.h"

const char *const output_stream_names[] = {
    [OUTPUT_STDOUT] = "stdout",
    [OUTPUT_STDERR] = "stderr",
    [OUTPUT_TTY] = "tty",
};
static_assert(ARRAY_LENGTH(output_stream_names) == OUTPUT_STREAM_COUNT, "a name for every stream");

#define TERMINAL_END_OF_FILE "\x04" /* VEOF, as a new terminal has it */

static char piece[CONTROL_DATA_MAX]; /* valid within one call only */

void server_io_open(struct server_io *io, enum server_stdio mode, int in, int out, int error)
{
    io->mode = mode;
    io->input.fd = in;
    io->input.credit = CONTROL_CREDIT_INITIAL;
    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++)
        io->outputs[stream] = (struct server_output){.fd = -1, .credit = CONTROL_CREDIT_INITIAL};
    if (mode == STDIO_TTY) {
        io->outputs[OUTPUT_TTY].fd = out;
    } else {
        io->outputs[OUTPUT_STDOUT].fd = out;
        io->outputs[OUTPUT_STDERR].fd = error;
    }
}

void server_io_close(struct server_io *io)
{
    fd_close(&io->input.fd);
    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++)
        fd_close(&io->outputs[stream].fd);
}

/* ---- output ---- */

size_t server_io_readable(const struct server_io *io, enum output_stream stream, bool slot_free)
{
    const struct server_output *output = &io->outputs[stream];

    if (output->fd < 0)
        return 0;
    if (io->mode == STDIO_LOG)
        return CONTROL_DATA_MAX;
    if (!slot_free || output->credit <= 0)
        return 0;
    return output->credit < CONTROL_DATA_MAX ? (size_t)output->credit : CONTROL_DATA_MAX;
}

/* Reads one piece and passes it on. When the other end is closed a pty returns EIO, a pipe end of
 * file. */
static void read_output(struct server_io *io, struct control *control, enum output_stream stream)
{
    struct server_output *output = &io->outputs[stream];
    size_t most = server_io_readable(io, stream, control_output_free(control));
    ssize_t got = most > 0 ? read(output->fd, piece, most) : -1;

    if (most == 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (got <= 0) {
        fd_close(&output->fd);
        return;
    }
    if (io->mode == STDIO_LOG) {
        log_buffer_write(&io->logs[stream], piece, (size_t)got);
        return;
    }
    output->credit -= got;
    control_output_put(control, output_stream_names[stream], piece, (size_t)got);
    (void)control_flush(control); /* the event loop notices when the channel ends */
}

/* Moves the next lines of one stream's log into the free slot. */
static void send_log(struct server_io *io, struct control *control, enum output_stream stream)
{
    struct log_buffer *log = &io->logs[stream];
    size_t length;
    const char *bytes = log_buffer_peek(log, CONTROL_DATA_MAX, &length);
    int64_t dropped = log_buffer_take_dropped(log);

    if (dropped > 0 && event_dropped(control, dropped) < 0)
        log->dropped += dropped;
    if (!bytes)
        return;
    control_output_put(control, output_stream_names[stream], bytes, length);
    io->lines_sent = 0;
    for (size_t at = 0; at < length; at++)
        io->lines_sent += bytes[at] == '\n';
    log_buffer_remove(log, length);
    (void)control_flush(control);
}

static void send_logs(struct server_io *io, struct control *control)
{
    bool more = true;

    while (more && control_output_free(control)) {
        more = false;
        for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++) {
            if (!control_output_free(control))
                return;
            send_log(io, control, (enum output_stream)stream);
            more = more || io->logs[stream].end > 0;
        }
    }
}

/* ---- input ---- */

static void input_discard(struct server_input *input)
{
    fd_close(&input->fd);
    input->spent += (int64_t)input->used;
    input->start = input->used = 0;
}

/* Writes the contiguous bytes at the ring's start to the server. */
static void write_input(struct server_input *input)
{
    size_t run = sizeof(input->ring) - input->start;

    if (run > input->used)
        run = input->used;
    ssize_t put = write(input->fd, input->ring + input->start, run);
    if (put < 0 && errno != EAGAIN && errno != EINTR)
        input_discard(input);
    if (put <= 0)
        return;
    input->start = (input->start + (size_t)put) % sizeof(input->ring);
    input->used -= (size_t)put;
    input->spent += put;
}

static void finish_input(struct server_io *io)
{
    struct server_input *input = &io->input;

    if (!input->end_wanted || input->used > 0 || input->fd < 0)
        return;
    if (io->mode != STDIO_TTY)
        fd_close(&input->fd);
    else if (write(input->fd, TERMINAL_END_OF_FILE, 1) < 0 && errno == EAGAIN)
        return;
    input->end_wanted = false;
}

static void return_credit(struct server_input *input, struct control *control)
{
    if (input->spent < INPUT_CREDIT_STEP || event_input_credit(control, input->spent) < 0)
        return;
    input->credit += input->spent;
    input->spent = 0;
}

int server_io_input(struct server_io *io, const char *bytes, size_t length)
{
    struct server_input *input = &io->input;

    if ((int64_t)length > input->credit)
        return -EDQUOT;
    input->credit -= (int64_t)length;
    if (input->fd < 0 || (input->end_wanted && io->mode != STDIO_TTY)) {
        input->spent += (int64_t)length;
        return 0;
    }
    size_t end = (input->start + input->used) % sizeof(input->ring);
    size_t first = sizeof(input->ring) - end;
    if (first > length)
        first = length;
    memcpy(input->ring + end, bytes, first);
    memcpy(input->ring, bytes + first, length - first);
    input->used += length;
    write_input(input);
    return 0;
}

void server_io_input_end(struct server_io *io)
{
    io->input.end_wanted = true;
    finish_input(io);
}

/* ---- the poll table ---- */

void server_io_prepare(const struct server_io *io, const struct control *control,
                       struct pollfd *polls)
{
    const bool slot_free = control_output_free(control);
    const struct server_input *input = &io->input;

    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++) {
        bool wanted = server_io_readable(io, (enum output_stream)stream, slot_free) > 0;
        polls[stream] =
            (struct pollfd){.fd = wanted ? io->outputs[stream].fd : -1, .events = POLLIN};
    }
    bool writing = input->used > 0 || (input->end_wanted && io->mode == STDIO_TTY);
    polls[SERVER_IO_INPUT] = (struct pollfd){.fd = writing ? input->fd : -1, .events = POLLOUT};
}

void server_io_run(struct server_io *io, struct control *control, const struct pollfd *polls)
{
    for (int number = 0; number < OUTPUT_STREAM_COUNT; number++) {
        enum output_stream stream = (enum output_stream)((io->turn + number) % OUTPUT_STREAM_COUNT);
        if (polls[stream].fd >= 0 && polls[stream].revents != 0)
            read_output(io, control, stream);
    }
    io->turn = (enum output_stream)((io->turn + 1) % OUTPUT_STREAM_COUNT);
    if (io->mode == STDIO_LOG)
        send_logs(io, control);
    if (polls[SERVER_IO_INPUT].revents != 0 && io->input.fd >= 0 && io->input.used > 0)
        write_input(&io->input);
    finish_input(io);
    return_credit(&io->input, control);
}

/* ---- commands and questions ---- */

int server_io_credit(struct server_io *io, const char *stream, int64_t bytes)
{
    for (int number = 0; number < OUTPUT_STREAM_COUNT; number++) {
        struct server_output *output = &io->outputs[number];
        if (strcmp(stream, output_stream_names[number]) != 0)
            continue;
        if ((number == OUTPUT_TTY) != (io->mode == STDIO_TTY))
            return -EINVAL;
        output->credit =
            bytes < OUTPUT_CREDIT_MAX - output->credit ? output->credit + bytes : OUTPUT_CREDIT_MAX;
        return 0;
    }
    return -EINVAL;
}

int server_io_resize(const struct server_io *io, unsigned short rows, unsigned short columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};

    if (io->mode != STDIO_TTY)
        return -ENOTTY;
    return ioctl(io->outputs[OUTPUT_TTY].fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

/* Bytes that can be read from a descriptor. */
static int bytes_waiting(int fd)
{
    int waiting = 0;

    return ioctl(fd, FIONREAD, &waiting) == 0 ? waiting : 0;
}

static bool lacks_credit(const struct server_io *io, const struct server_output *output)
{
    return io->mode != STDIO_LOG && output->fd >= 0 && output->credit <= 0;
}

static bool has_ended(int fd)
{
    struct pollfd entry = {.fd = fd};

    return bytes_waiting(fd) == 0 && poll(&entry, 1, 0) > 0 &&
           (entry.revents & (POLLHUP | POLLERR)) != 0;
}

bool server_io_drained(struct server_io *io)
{
    bool ended = true;

    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++) {
        struct server_output *output = &io->outputs[stream];
        if (lacks_credit(io, output) && has_ended(output->fd))
            fd_close(&output->fd);
        ended = ended && output->fd < 0;
    }
    return ended && io->logs[OUTPUT_STDOUT].end == 0 && io->logs[OUTPUT_STDERR].end == 0;
}

void server_io_give_up(struct server_io *io, struct control *control)
{
    int64_t lines = control_output_forget(control) ? io->lines_sent : 0;

    if (io->mode != STDIO_LOG)
        return;
    for (int stream = OUTPUT_STDOUT; stream <= OUTPUT_STDERR; stream++)
        lines += log_buffer_drop_all(&io->logs[stream]);
    if (lines > 0)
        (void)event_dropped(control, lines);
}

bool server_io_waits_for_host(const struct server_io *io, const struct control *control)
{
    if (!control_output_free(control))
        return true;
    for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++) {
        const struct server_output *output = &io->outputs[stream];
        if (lacks_credit(io, output) && bytes_waiting(output->fd) > 0)
            return true;
    }
    return false;
}
