/* The program that the kernel starts for a file that begins with MZ (binfmt_misc, WSLInterop, flags
 * FP: the kernel keeps it open, so it also starts when /init is hidden).
 *
 * It tries all ways to Windows, the interop sockets first, then vsock, and ends with status 0 when
 * one of them accepted the command: Windows has then run it, and the record of the stand-ins has a
 * line for it.
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/wsl-rig/rig.h"

#define VSOCK_FIRST 50000
#define VSOCK_LAST 50005

static int dial_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
        return -1;
    return fd_steal(&fd);
}

/* True when the other side accepted the command. Closes the descriptor. */
static int say(int fd, const char *program)
{
    char line[4096], answer[8] = "";
    CLEANUP_FD int windows = fd;
    if (windows < 0)
        return 0;
    snprintf(line, sizeof(line), "run %s\n", program);
    return io_write_full(windows, line, strlen(line)) == 0 &&
           read(windows, answer, sizeof(answer) - 1) > 0 && strncmp(answer, "ran", 3) == 0;
}

int rig_windows_executable(int argc, char **argv)
{
    const char *program = argc > 1 ? argv[1] : "";
    const char *named = getenv("WSL_INTEROP");
    glob_t sockets = {0};
    int ran = named && say(dial_socket(named), program);
    if (!ran && glob(RIG_WSL "/*_interop", 0, NULL, &sockets) == 0)
        for (size_t i = 0; i < sockets.gl_pathc && !ran; i++)
            ran = say(dial_socket(sockets.gl_pathv[i]), program);
    for (unsigned port = VSOCK_FIRST; port <= VSOCK_LAST && !ran; port++)
        ran = say(rig_dial_windows(port), program);
    if (ran)
        return 0;
    fprintf(stderr, "%s: Windows cannot be reached\n", program);
    return 1;
}
