/* The bare copy loop: accepts, dials, and moves bytes both ways with poll(2), a 64 KiB buffer and
 * blocking writes. No limits, no time-outs, no preface, no half-close, and one stalled reader
 * stalls all: it does the minimum that every relay has to do, so that a relay's speed can be
 * compared with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/io.h"
#include "test/bench/load/load.h"

#define PAIRS_MAX 1024
#define CONNECT_PATIENCE_MS 5000
#define BUFFER_SIZE (64 * 1024)
#define WRITE_MAX (32 * 1024) /* larger vsock packets fail on some machine monitors */

static struct pollfd watched[1 + 2 * PAIRS_MAX]; /* the listener, then pairs */
static unsigned watched_count;

static void add_pair(const struct load_options *options, int client)
{
    int target = load_connect(&options->copy);
    struct pollfd connected = {.fd = target, .events = POLLOUT};
    if (poll(&connected, 1, CONNECT_PATIENCE_MS) <= 0)
        load_die("copy: no connection");
    if (watched_count + 2 > 1 + 2 * PAIRS_MAX)
        load_die("copy: too many connections");
    watched[watched_count++] = (struct pollfd){.fd = client, .events = POLLIN};
    watched[watched_count++] = (struct pollfd){.fd = target, .events = POLLIN};
}

static void remove_pair(unsigned first)
{
    close(watched[first].fd);
    close(watched[first + 1].fd);
    watched[first] = watched[watched_count - 2];
    watched[first + 1] = watched[watched_count - 1];
    watched_count -= 2;
}

/* False when that side has ended. */
static bool move_bytes(int from, int to)
{
    static char buffer[BUFFER_SIZE];
    ssize_t got = recv(from, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return true;
    for (ssize_t done = 0; done < got;) {
        ssize_t piece = got - done < WRITE_MAX ? got - done : WRITE_MAX;
        if (io_write_full(to, buffer + done, (size_t)piece) < 0)
            return false;
        done += piece;
    }
    return got > 0;
}

int load_copy(struct load_options *options)
{
    struct failure why;
    int listener = endpoint_listen(&options->peer, 4096, &why);
    if (listener < 0)
        load_die(why.text);
    watched[watched_count++] = (struct pollfd){.fd = listener, .events = POLLIN};
    printf("{\"listening\":true,\"port\":%u}\n", options->peer.port);
    fflush(stdout);
    for (;;) {
        if (poll(watched, watched_count, -1) < 0 && errno != EINTR)
            load_die("poll");
        for (unsigned i = 1; i + 1 < watched_count; i += 2) {
            bool alive = true;
            if (watched[i].revents != 0)
                alive = move_bytes(watched[i].fd, watched[i + 1].fd);
            if (alive && watched[i + 1].revents != 0)
                alive = move_bytes(watched[i + 1].fd, watched[i].fd);
            if (!alive) {
                remove_pair(i);
                i -= 2;
            }
        }
        int client;
        if (watched[0].revents != 0 &&
            (client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
            add_pair(options, client);
    }
}
