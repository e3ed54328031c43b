/* Abstract Unix sockets: names without a file, which belong to the network namespace. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

static socklen_t name_address(struct sockaddr_un *address, const char *name)
{
    size_t length = strnlen(name, sizeof(address->sun_path) - 1);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int probe_abstract(int argc, char **argv)
{
    struct sockaddr_un address;
    socklen_t length = name_address(&address, argv[1]);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 || connect(fd, (struct sockaddr *)&address, length) < 0 ? errno : 0;
    return probe_report(probe_words(argc, argv), error, -1);
}

static int probe_abstract_serve(int argc, char **argv)
{
    struct sockaddr_un address;
    socklen_t length = name_address(&address, argv[1]);
    (void)argc;
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 8) < 0)
        probe_die("@%s: %s", argv[1], strerror(errno));
    printf("listening\n");
    for (;;) {
        int client = accept(fd, NULL, NULL);
        if (client >= 0)
            close(client);
    }
}

static const struct probe_verb verbs[] = {
    {"abstract", "NAME", "connect to an abstract Unix socket", NULL, probe_abstract, 1, 1},
    {"abstract-serve", "NAME", "listen on one", NULL, probe_abstract_serve, 1, 1},
};
const struct probe_verbs abstract_verbs = {verbs, ARRAY_LENGTH(verbs)};
