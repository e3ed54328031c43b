/* Loaded into vhost-device-vsock (LD_PRELOAD), where it stands between that program and the C library, for faults of its
 * version 0.3.
 *
 * A stream in both directions stops. The program flushes what it holds for a host's socket only on an event that is
 * EPOLLOUT and nothing else. While the same socket has input too, it looks at the input alone; has the guest no room
 * for that, it asks the guest for credit, gets the answer "none", watches the socket again and finds the same event,
 * thousands of times a second. A server inside that answers what it is sent (an echo) makes room only once its own
 * bytes leave: so a stream in both directions whose host pauses for a second stops for good, on one full buffer
 * behind the other. No side can help: the guest's credit is honestly none, and the host cannot take its bytes back.
 * Here an event of both kinds is told in turns: first that there is room, which flushes, and at the next call, since
 * the event is still there, all of it. What has not both passes as it is.
 *
 * An end is lost. A host that closes while bytes for it are still unread leaves ECONNRESET in the socket, once, before
 * the end of file. The program takes any error of a read for "nothing", after it has stopped watching the socket: so
 * the guest never hears of the end, and both keep the connection for ever. Here that error is the end of file.
 *
 * What is for a host that has left is kept, and with it the guest's credit, so that a guest that has to send before
 * it reads on never comes to the end; the answer OK to a host that has left ends the program. Here such bytes count
 * as sent: nobody is there to miss them, and the end follows on the other way.
 *
 * The program is single-threaded where its sockets are concerned; the data of an event is the descriptor.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BOTH (EPOLLIN | EPOLLOUT)
#define DESCRIPTORS_MAX 65536 /* beyond it events pass as they are */

typedef int wait_function(int, struct epoll_event *, int, int);
typedef ssize_t read_function(int, void *, size_t);
typedef ssize_t receive_function(int, void *, size_t, int);
typedef ssize_t write_function(int, const void *, size_t);
typedef ssize_t send_function(int, const void *, size_t, int);

static bool told_of_room[DESCRIPTORS_MAX];

static void take_turns(struct epoll_event *event)
{
    uint64_t descriptor = event->data.u64;
    if ((event->events & BOTH) != BOTH || descriptor >= DESCRIPTORS_MAX)
        return;
    told_of_room[descriptor] = !told_of_room[descriptor];
    if (told_of_room[descriptor])
        event->events = EPOLLOUT;
}

int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    static wait_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "epoll_wait");
    int count = next(epoll, events, max, timeout);
    for (int i = 0; i < count; i++)
        take_turns(&events[i]);
    return count;
}

static ssize_t reset_is_the_end(ssize_t length)
{
    return length < 0 && errno == ECONNRESET ? 0 : length;
}

ssize_t read(int fd, void *bytes, size_t length)
{
    static read_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "read");
    return reset_is_the_end(next(fd, bytes, length));
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    static receive_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "recv");
    return reset_is_the_end(next(fd, bytes, length, flags));
}

static ssize_t nobody_misses_it(ssize_t sent, size_t length)
{
    return sent < 0 && errno == EPIPE ? (ssize_t)length : sent;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    static write_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "write");
    return nobody_misses_it(next(fd, bytes, length), length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    static send_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    return nobody_misses_it(next(fd, bytes, length, flags), length);
}
