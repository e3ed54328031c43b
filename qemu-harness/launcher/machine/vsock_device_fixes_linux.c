/* Loaded into vhost-device-vsock (LD_PRELOAD), where it stands between that program and the C
 * library, for faults of its version 0.3.
 *
 * A stream in both directions stops. The program flushes what it holds for a host's socket only on
 * an event that is EPOLLOUT and nothing else. While the same socket has input too, it looks at the
 * input alone; has the guest no room for that, it asks the guest for credit, gets the answer
 * "none", watches the socket again and finds the same event, thousands of times a second. A server
 * inside that answers what it is sent (an echo) makes room only once its own bytes leave: so a
 * stream in both directions whose host pauses for a second stops for good, on one full buffer
 * behind the other. No side can help: the guest's credit is honestly none, and the host cannot take
 * its bytes back. Here an event of both kinds is told in turns: first that there is room, which
 * flushes, and at the next call, since the event is still there, all of it. What has not both
 * passes as it is.
 *
 * An end is lost. A host that closes while bytes for it are still unread leaves ECONNRESET in the
 * socket, once, before the end of file. The program takes any error of a read for "nothing", after
 * it has stopped watching the socket: so the guest never hears of the end, and both keep the
 * connection for ever. Here that error is the end of file.
 *
 * Bytes for a host that has left are kept, and with them the guest's credit, so a guest that has to
 * send before it reads on never comes to the end; the answer OK to a host that has left ends the
 * program. Here such bytes count as sent: nobody is there to miss them, and the end follows on the
 * other way. A host that left bytes unread shows once as ECONNRESET instead of EPIPE.
 *
 * A packet is dropped, and the stream has a hole, when a write fails for want of memory. Here the
 * socket counts as full: the packet is kept and written later.
 *
 * One fault is not mended here: bytes that wait for a slow host are dropped when the guest's kernel
 * resets the connection. common/wire/piece.h says how the way in lives with that.
 *
 * The program is single-threaded where its sockets are concerned; the data of an event is the
 * descriptor.
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

static ssize_t loses_nothing(ssize_t sent, size_t length)
{
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
        return (ssize_t)length;
    if (sent < 0 && (errno == ENOBUFS || errno == ENOMEM))
        errno = EAGAIN;
    return sent;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    static write_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "write");
    return loses_nothing(next(fd, bytes, length), length);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    static send_function *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    return loses_nothing(next(fd, bytes, length, flags), length);
}
