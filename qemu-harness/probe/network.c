/* Attempts to reach a network: all kinds of sockets, connections, datagrams, names. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/wire/protocol.h"
#include "qemu-harness/probe/probe.h"

#define CONNECT_LIMIT_MS 5000
#define DATAGRAM_LIMIT_MS 1000 /* for an ICMP error, or for an answer, to come back */
#define FAMILY_MAX 46          /* AF_MAX of Linux 6.x */

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* Waits for an event of a socket. Returns its SO_ERROR, or ETIMEDOUT. */
static int await_socket(int fd, short events, int limit_ms)
{
    struct pollfd wait = {.fd = fd, .events = events};
    int error = 0;
    socklen_t length = sizeof(error);
    if (poll(&wait, 1, limit_ms) <= 0)
        return ETIMEDOUT;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

/* A socket of `type` on its way to a numeric address: 0 and *fd, or an errno. */
static int start_connect(const char *host, const char *port, int type, int *fd)
{
    struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV},
                    *found;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        probe_die("'%s' port '%s' is no numeric address", host, port);
    int error = 0;
    *fd = socket(found->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0 || (connect(*fd, found->ai_addr, found->ai_addrlen) < 0 && errno != EINPROGRESS))
        error = errno;
    freeaddrinfo(found);
    return error;
}

static int probe_connect(int argc, char **argv)
{
    CLEANUP_FD int fd = -1;
    int64_t start = probe_now_us();
    int error = start_connect(argv[1], argv[2], SOCK_STREAM, &fd);
    if (error == 0)
        error = await_socket(fd, POLLOUT, CONNECT_LIMIT_MS);
    return probe_report(probe_words(argc, argv), error, probe_now_us() - start);
}

static int probe_udp(int argc, char **argv)
{
    CLEANUP_FD int fd = -1;
    int64_t start = probe_now_us();
    int error = start_connect(argv[1], argv[2], SOCK_DGRAM, &fd);
    if (error == 0 && send(fd, "probe", 5, 0) < 0)
        error = errno;
    if (error == 0) { /* the datagram was sent; only an error that comes back is a refusal */
        error = await_socket(fd, POLLIN, DATAGRAM_LIMIT_MS);
        if (error == ETIMEDOUT)
            error = 0;
    }
    return probe_report(probe_words(argc, argv), error, probe_now_us() - start);
}

static int probe_vsock(int argc, char **argv)
{
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK,
        .svm_cid = argc > 2 ? (unsigned)probe_number(argv[2], UINT32_MAX) : VMADDR_CID_HOST,
        .svm_port = (unsigned)probe_number(argv[1], UINT32_MAX),
    };
    int64_t start = probe_now_us();
    int error = 0;
    CLEANUP_FD int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno != EINPROGRESS))
        error = errno;
    else
        error = await_socket(fd, POLLOUT, CONNECT_LIMIT_MS);
    return probe_report(probe_words(argc, argv), error, probe_now_us() - start);
}

/* Writes a question for the name's IPv4 address; its length. */
static size_t write_question(uint8_t *out, size_t size, const char *name)
{
    static const uint8_t header[12] = {0x12, 0x34, 1, 0, 0, 1};
    size_t at = sizeof(header);
    memcpy(out, header, sizeof(header));
    while (*name) {
        size_t label = strcspn(name, ".");
        if (label == 0 || label > 63 || at + label + 6 > size)
            probe_die("no name to ask for");
        out[at++] = (uint8_t)label;
        memcpy(out + at, name, label);
        at += label;
        name += label + (name[label] == '.');
    }
    memcpy(out + at, "\0\0\1\0\1", 5);
    return at + 5;
}

static int probe_dns(int argc, char **argv)
{
    static const char *const codes[16] = {"NOERROR",  "FORMERR", "SERVFAIL",
                                          "NXDOMAIN", "NOTIMP",  "REFUSED"};
    uint8_t message[512];
    CLEANUP_FD int fd = -1;
    const char *what = probe_words(argc, argv);
    size_t length = write_question(message, sizeof(message), argv[1]);
    int64_t start = probe_now_us();
    int error = start_connect("127.0.0.1", "53", SOCK_DGRAM, &fd);
    if (error == 0 && send(fd, message, length, 0) < 0)
        error = errno;
    if (error == 0)
        error = await_socket(fd, POLLIN, CONNECT_LIMIT_MS);
    ssize_t got = error ? -1 : recv(fd, message, sizeof(message), 0);
    if (got < 0)
        return probe_report(what, error ? error : errno, probe_now_us() - start);
    if (got < 12 || message[0] != 0x12 || message[1] != 0x34) {
        printf("%s: unclear (%zd bytes that are no answer)\n", what, got);
        return PROBE_UNCLEAR;
    }
    unsigned code = message[3] & 15;
    int64_t taken = probe_now_us() - start;
    printf("%s: %s (%s) in %d.%d ms\n", what, code ? "refused" : "worked",
           codes[code] ? codes[code] : "unknown code", (int)(taken / 1000),
           (int)(taken / 100 % 10));
    return code ? PROBE_REFUSED : PROBE_WORKED;
}

static long make_socket(int family, int type, int protocol)
{
    CLEANUP_FD int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    return fd < 0 ? -1 : 0;
}

static long try_packet(void)
{
    return make_socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
}

static long try_raw(void)
{
    return make_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static long try_raw6(void)
{
    return make_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
}

static long try_ping(void)
{
    return make_socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
}

static long try_mptcp(void)
{
    return make_socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP);
}

static long try_vsock_socket(void)
{
    return make_socket(AF_VSOCK, SOCK_STREAM, 0);
}

static long try_vsock_device(void)
{
    CLEANUP_FD int fd = open("/dev/vsock", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

static long try_netfilter(void)
{
    return make_socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static long try_audit(void)
{
    return make_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
}

static long try_iouring(void)
{
    char parameters[256] = {0}; /* struct io_uring_params has 120 bytes */
    CLEANUP_FD int fd = (int)syscall(SYS_io_uring_setup, 1, parameters);
    return fd < 0 ? -1 : 0;
}

/* The four families that a program may use; all others must not exist here. */
static int probe_families(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET};
    int others = 0;
    for (int family = 0; family < FAMILY_MAX; family++) {
        if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
            continue;
        for (size_t i = 0; i < ARRAY_LENGTH(types); i++) {
            if (make_socket(family, types[i], 0) == 0) {
                printf("families: worked (family %d, type %d)\n", family, types[i]);
                others++;
            }
        }
    }
    if (others == 0)
        printf("families: refused (every other family)\n");
    return others ? PROBE_WORKED : PROBE_REFUSED;
}

static const struct probe_verb verbs[] = {
    {"connect", "HOST PORT", "TCP to a numeric address", NULL, probe_connect, 2, 2},
    {"udp", "HOST PORT", "a datagram to a numeric address", NULL, probe_udp, 2, 2},
    {"vsock", "PORT [CID]", "vsock to the host (CID 2) or another CID", NULL, probe_vsock, 1, 2},
    {"dns", "NAME", "a question to 127.0.0.1:53, by UDP", NULL, probe_dns, 1, 1},
    {"families", "", "a socket of every family but the usual four", NULL, probe_families, 0, 0},
    {"packet", "", "an AF_PACKET socket", try_packet, NULL, 0, 0},
    {"raw", "", "a raw IPv4 socket", try_raw, NULL, 0, 0},
    {"raw6", "", "a raw IPv6 socket", try_raw6, NULL, 0, 0},
    {"ping", "", "an ICMP datagram socket", try_ping, NULL, 0, 0},
    {"mptcp", "", "a multipath TCP socket", try_mptcp, NULL, 0, 0},
    {"vsock-socket", "", "only the AF_VSOCK socket", try_vsock_socket, NULL, 0, 0},
    {"vsock-device", "", "open /dev/vsock", try_vsock_device, NULL, 0, 0},
    {"netfilter", "", "a netlink socket to the firewall", try_netfilter, NULL, 0, 0},
    {"audit", "", "a netlink socket to the audit system", try_audit, NULL, 0, 0},
    {"iouring", "", "an io_uring, which makes sockets unseen", try_iouring, NULL, 0, 0},
};
const struct probe_verbs network_verbs = {verbs, ARRAY_LENGTH(verbs)};
