/* Replaces the services of Windows that a guest can reach. Each accepts connections, writes a line
 * into the record (a file on the host), and answers just enough for a control run to see that it
 * was reached.
 *
 *     vsock 50000 to 50005   init, plan9, drvfs, drvfs as administrator, virtiofs, crash dumps
 *     10.255.255.254:53      the resolver of DNS tunnelling, UDP and TCP
 *
 * It handles one request at a time, and its only time limit is a second for the first bytes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/wsl-rig/rig.h"

#define VSOCK_FIRST 50000
#define VSOCK_COUNT 6
#define DNS_MAX 512
#define DNS_HEAD 12
#define LINE_MAX_BYTES 4096

enum stand_in { STAND_IN_DNS_UDP = VSOCK_COUNT, STAND_IN_DNS_TCP, STAND_IN_COUNT };

static int record = -1;

static void write_down(const char *kind, const char *text)
{
    char line[LINE_MAX_BYTES];
    int length = snprintf(line, sizeof(line), "%s %.*s\n", kind, 2000, text);
    (void)io_write_full(record, line, (size_t)length);
}

/* Reads the first line that the client sends. */
static void listen_to(int fd, char *text, size_t size)
{
    struct timeval patience = {.tv_sec = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t length = read(fd, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
}

/* "drvfs C:\x OPTIONS": how many channels the drive has. */
static void answer_drive(int fd, const char *text)
{
    char drives[LINE_MAX_BYTES], answer[16] = "0\n";
    if (strncmp(text, "drvfs ", 6) == 0 &&
        io_read_file(AT_FDCWD, RIG_DRIVES, 0, drives, sizeof(drives)) > 0) {
        char *rest = NULL;
        for (char *line = strtok_r(drives, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
            if ((line[0] | 0x20) == (text[6] | 0x20))
                snprintf(answer, sizeof(answer), "%lu\n", strtoul(line + 1, NULL, 10));
    }
    (void)io_write_full(fd, answer, strlen(answer));
}

static void serve_vsock(int listener, unsigned port)
{
    char text[LINE_MAX_BYTES], kind[32];
    CLEANUP_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    snprintf(kind, sizeof(kind), "vsock %u", port);
    listen_to(fd, text, sizeof(text));
    write_down(kind, text);
    if (port == RIG_DRVFS_PORT)
        answer_drive(fd, text);
    else
        (void)io_write_full(fd, "ran\n", 4);
}

/* Answers each question about an address with 10.0.2.2 and records the name. */
static size_t answer_question(unsigned char *message, size_t length, const char *kind)
{
    static const unsigned char address[] = {0xc0, DNS_HEAD, 0, 1, 0,  1, 0, 0,
                                            0,    60,       0, 4, 10, 0, 2, 2};
    char name[DNS_MAX] = "";
    size_t at = DNS_HEAD;
    if (length < DNS_HEAD)
        return 0;
    while (at < length && message[at]) {
        size_t label = message[at];
        if (at + label + 1 > length)
            return 0;
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "%.*s.", (int)label,
                 message + at + 1);
        at += label + 1;
    }
    at += 5; /* the root, type, class */
    if (at > length)
        return 0;
    write_down(kind, name);
    int wants_v4 = message[at - 3] == 1;
    message[2] |= 0x80;
    message[3] = 0x80;
    message[6] = 0;
    message[7] = (unsigned char)wants_v4;
    memset(message + 8, 0, 4);
    if (!wants_v4 || at + sizeof(address) > DNS_MAX)
        return at;
    memcpy(message + at, address, sizeof(address));
    return at + sizeof(address);
}

static void serve_dns_udp(int fd)
{
    unsigned char message[DNS_MAX];
    struct sockaddr_in peer;
    socklen_t size = sizeof(peer);
    ssize_t length = recvfrom(fd, message, sizeof(message), 0, (struct sockaddr *)&peer, &size);
    size_t answer = length > 0 ? answer_question(message, (size_t)length, "dns udp") : 0;
    if (answer)
        (void)sendto(fd, message, answer, 0, (struct sockaddr *)&peer, size);
}

static void serve_dns_tcp(int listener)
{
    unsigned char message[2 + DNS_MAX];
    struct timeval patience = {.tv_sec = 1};
    CLEANUP_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    ssize_t length = read(fd, message, sizeof(message));
    size_t answer = length > 2 ? answer_question(message + 2, (size_t)length - 2, "dns tcp") : 0;
    if (!answer) {
        write_down("dns tcp", "(no question)");
        return;
    }
    message[0] = (unsigned char)(answer >> 8);
    message[1] = (unsigned char)answer;
    (void)io_write_full(fd, message, answer + 2);
}

static int listen_vsock(unsigned port)
{
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = port};
    int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16))
        rig_die("vsock");
    return fd;
}

static int listen_dns(int type)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
    inet_pton(AF_INET, "10.255.255.254", &address.sin_addr);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
        (type == SOCK_STREAM && listen(fd, 16)))
        rig_die("10.255.255.254:53");
    return fd;
}

int rig_stand_ins(int argc, char **argv)
{
    struct pollfd fds[STAND_IN_COUNT];
    (void)argc;
    (void)argv;
    record = open(RIG_LOG, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (record < 0)
        rig_die(RIG_LOG);
    for (unsigned i = 0; i < VSOCK_COUNT; i++)
        fds[i].fd = listen_vsock(VSOCK_FIRST + i);
    fds[STAND_IN_DNS_UDP].fd = listen_dns(SOCK_DGRAM);
    fds[STAND_IN_DNS_TCP].fd = listen_dns(SOCK_STREAM);
    for (unsigned i = 0; i < STAND_IN_COUNT; i++)
        fds[i].events = POLLIN;
    write_down("stand-ins", "are there");
    while (poll(fds, STAND_IN_COUNT, -1) > 0 || errno == EINTR) {
        for (unsigned i = 0; i < VSOCK_COUNT; i++)
            if (fds[i].revents)
                serve_vsock(fds[i].fd, VSOCK_FIRST + i);
        if (fds[STAND_IN_DNS_UDP].revents)
            serve_dns_udp(fds[STAND_IN_DNS_UDP].fd);
        if (fds[STAND_IN_DNS_TCP].revents)
            serve_dns_tcp(fds[STAND_IN_DNS_TCP].fd);
    }
    rig_die("stand-ins");
}
