/* The way in's listeners, its table of connections, and the earliest time that one of them waits
 * for. */
#include "qemu-harness/launcher/guest/way_in.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/launcher/guest/way_in_connection_internal.h"
#include "qemu-harness/launcher/host/descriptors.h"

#define LISTEN_BACKLOG 1024

int way_in_open(struct way_in *way_in, long server_port, long tcp_port,
                const struct run_folder *folder, struct failure *why)
{
    way_in->unix_listener = way_in->tcp_listener = -1;
    if (server_port == 0)
        return 0;
    int result = secret_make_hex(way_in->secret);
    if (result)
        return failure_errno(why, -result, "secret");
    way_in->connections = calloc(WAY_IN_MAX, sizeof(*way_in->connections));
    if (!way_in->connections)
        return failure_errno(why, ENOMEM, "way in");
    struct endpoint endpoint = {.kind = ENDPOINT_UNIX};
    run_folder_name(folder, way_in->path, "way-in.sock");
    snprintf(endpoint.path, sizeof(endpoint.path), "%s", way_in->path);
    way_in->unix_listener = endpoint_listen(&endpoint, LISTEN_BACKLOG, why);
    if (way_in->unix_listener < 0)
        return way_in->unix_listener;
    if (tcp_port < 0)
        return 0;
    endpoint = (struct endpoint){
        .kind = ENDPOINT_TCP4, .port = (uint32_t)tcp_port, .address = {127, 0, 0, 1}};
    way_in->tcp_listener = endpoint_listen(&endpoint, LISTEN_BACKLOG, why);
    way_in->tcp_port = endpoint.port;
    return way_in->tcp_listener < 0 ? way_in->tcp_listener : 0;
}

void way_in_close(struct way_in *way_in)
{
    fd_close(&way_in->unix_listener);
    fd_close(&way_in->tcp_listener);
    for (unsigned i = 0; way_in->connections && i < WAY_IN_MAX; i++)
        way_in_connection_end(&way_in->connections[i]);
    free(way_in->connections);
    way_in->connections = NULL;
    secret_wipe(way_in->secret, sizeof(way_in->secret));
}

static struct way_in_connection *find_free(struct way_in *way_in)
{
    for (unsigned i = 0; i < WAY_IN_MAX; i++)
        if (way_in->connections[i].state == WAY_IN_FREE)
            return &way_in->connections[i];
    return NULL;
}

/* The half-open connection that was silent for longest, or NULL. */
static struct way_in_connection *find_half_open(struct way_in *way_in)
{
    struct way_in_connection *oldest = NULL;
    for (unsigned i = 0; i < WAY_IN_MAX; i++) {
        struct way_in_connection *connection = &way_in->connections[i];
        if (connection->state == WAY_IN_JOINED && way_in_connection_half_open(connection) &&
            (!oldest || connection->last < oldest->last))
            oldest = connection;
    }
    return oldest;
}

static struct way_in_connection *make_room(struct way_in *way_in)
{
    struct way_in_connection *room = find_free(way_in);
    if (!room && (room = find_half_open(way_in)))
        way_in_connection_end(room);
    return room;
}

unsigned way_in_poll(struct way_in *way_in, struct pollfd *fds, bool open, int64_t now,
                     int *timeout_ms)
{
    unsigned count = 0;
    if (!way_in->connections)
        return 0;
    if (open && (find_free(way_in) || find_half_open(way_in))) {
        fds[count++] = (struct pollfd){.fd = way_in->unix_listener, .events = POLLIN};
        if (way_in->tcp_listener >= 0)
            fds[count++] = (struct pollfd){.fd = way_in->tcp_listener, .events = POLLIN};
    }
    for (unsigned i = 0; i < WAY_IN_MAX; i++) {
        struct way_in_connection *connection = &way_in->connections[i];
        if (connection->state == WAY_IN_FREE)
            continue;
        count += way_in_connection_poll(connection, fds + count, count);
        int64_t due = way_in_connection_due(connection);
        int left = io_timeout_ms(due, now);
        if (left >= 0 && (*timeout_ms < 0 || left < *timeout_ms))
            *timeout_ms = left;
    }
    return count;
}

/* Accepts all that wait; listeners are non-blocking. */
static void accept_all(struct way_in *way_in, int listener, int64_t now)
{
    while (listener >= 0 && (find_free(way_in) || find_half_open(way_in))) {
        int client = descriptor_accept(listener);
        if (client < 0)
            return;
        way_in_connection_begin(make_room(way_in), client, listener == way_in->tcp_listener, now);
    }
}

void way_in_work(struct way_in *way_in, const struct guest_link *link, const struct pollfd *fds,
                 unsigned count, int64_t now)
{
    if (!way_in->connections)
        return;
    for (unsigned i = 0; i < WAY_IN_MAX; i++) {
        struct way_in_connection *connection = &way_in->connections[i];
        if (connection->state != WAY_IN_FREE)
            way_in_connection_work(connection, link, way_in->secret, fds, now);
    }
    for (unsigned i = 0; i < count && i < 2; i++)
        if ((fds[i].fd == way_in->unix_listener || fds[i].fd == way_in->tcp_listener) &&
            fds[i].revents)
            accept_all(way_in, fds[i].fd, now);
}
