/* The parts of endpoints that exist on Linux only: vsock, and the routing table in /proc. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <linux/vm_sockets.h>

#include "common/net/endpoint_internal.h"
#include "common/text/number.h"

#define VSOCK_BUFFER (8 * 1024 * 1024ull)
#define VSOCK_CONNECT_TIMEOUT_US 250000
#define ROUTE_UP_GATEWAY 3u /* RTF_UP | RTF_GATEWAY */

static_assert(VMADDR_CID_ANY == ENDPOINT_VSOCK_ANY && VMADDR_PORT_ANY == ENDPOINT_VSOCK_ANY,
              "endpoint.h");

int endpoint_vsock_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out)
{
    struct sockaddr_vm *address = (struct sockaddr_vm *)out;
    address->svm_family = AF_VSOCK;
    address->svm_cid = endpoint->cid;
    address->svm_port = endpoint->port;
    return sizeof(*address);
}

uint32_t endpoint_vsock_port(const struct sockaddr_storage *address)
{
    return ((const struct sockaddr_vm *)address)->svm_port;
}

void endpoint_tune_vsock(int fd)
{
    /* the maximum first: the size is cut to it */
    unsigned long long size = VSOCK_BUFFER;
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_MAX_SIZE, &size, sizeof(size));
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_BUFFER_SIZE, &size, sizeof(size));
    struct timeval timeout = {.tv_usec = VSOCK_CONNECT_TIMEOUT_US};
    (void)setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &timeout, sizeof(timeout));
}

int endpoint_open_routes(void)
{
    int fd = open("/proc/net/route", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* A number of a row of /proc/net/route: Iface Destination Gateway Flags RefCnt Use Metric Mask ...
 * (net/ipv4/fib_trie.c). UINT32_MAX when it is missing: no field that is read here has that
 * value. */
static uint32_t route_field(const char *row, unsigned number, unsigned base)
{
    static const char blank[] = " \t";
    for (; number > 0; number--) {
        row += strspn(row, blank);
        row += strcspn(row, blank);
    }
    row += strspn(row, blank);
    uint32_t value;
    const char *end = number_read(row, base, &value);
    return end && strchr(blank, *end) ? value : UINT32_MAX;
}

int endpoint_default_gateway(const char *table, size_t length, uint8_t address[4])
{
    uint32_t best = UINT32_MAX;
    bool found = false;
    for (const char *line = table, *end; line < table + length; line = end + 1) {
        end = memchr(line, '\n', (size_t)(table + length - line));
        if (!end)
            break; /* the last line is cut */
        char row[256];
        size_t row_length = (size_t)(end - line);
        if (row_length >= sizeof(row))
            continue;
        memcpy(row, line, row_length);
        row[row_length] = '\0';
        uint32_t destination = route_field(row, 1, 16), gateway = route_field(row, 2, 16);
        uint32_t flags = route_field(row, 3, 16), metric = route_field(row, 6, 10);
        uint32_t mask = route_field(row, 7, 16);
        if (destination != 0 || mask != 0 || (flags & ROUTE_UP_GATEWAY) != ROUTE_UP_GATEWAY)
            continue;
        if (found && metric >= best)
            continue;
        memcpy(address, &gateway, 4); /* printed as a number, but in network order in memory */
        best = metric;
        found = true;
    }
    return found ? 0 : -ENETUNREACH;
}
