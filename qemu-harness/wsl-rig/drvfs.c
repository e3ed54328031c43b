/* mount.drvfs SOURCE TARGET [-o OPTIONS]: mounts C:\folder at TARGET, as WSL does for `mount -t
 * drvfs`.
 *
 * On WSL a drive is 9p over a socket that Windows opens on vsock port 50002. Here that port only
 * names the drive's channels, and 9p goes over virtio, one channel for each mount of a drive. So,
 * as on WSL, a process that may not use AF_VSOCK cannot mount a drive. QEMU on the host enforces
 * read-only drives.
 *
 * The server has one root for each drive, so a folder below it is bound over TARGET and the drive's
 * own mount is removed. The options uid, gid, umask, fmask, dmask, metadata and case are accepted
 * and ignored: owners and modes are those of the host.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/wsl-rig/rig.h"

#define ANSWER_MAX 64
#define OPEN_TREE_CLONE 1
#define MOVE_MOUNT_F_EMPTY_PATH 4

int rig_dial_windows(unsigned port)
{
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = port};
    CLEANUP_FD int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
        return -1;
    return fd_steal(&fd);
}

/* Asks Windows for the drive. Returns the number of its channels. */
static unsigned ask_windows(const char *source, const char *options)
{
    char line[4096], answer[ANSWER_MAX] = "";
    int length = snprintf(line, sizeof(line), "drvfs %s %s\n", source, options);
    CLEANUP_FD int windows = rig_dial_windows(RIG_DRVFS_PORT);
    if (windows < 0)
        rig_die("drvfs: Windows (vsock port 50002)");
    if (length < 0 || (size_t)length >= sizeof(line) ||
        io_write_full(windows, line, (size_t)length) ||
        io_read_full(windows, answer, sizeof(answer) - 1) < 0)
        rig_die(source);
    unsigned channels = (unsigned)strtoul(answer, NULL, 10);
    errno = ENODEV;
    if (channels == 0)
        rig_die(source);
    return channels;
}

struct flag {
    const char *name;
    unsigned long value;
};

static unsigned long parse_flags(char *options)
{
    static const struct flag flags[] = {
        {"ro", MS_RDONLY},     {"nosuid", MS_NOSUID},   {"nodev", MS_NODEV},
        {"noexec", MS_NOEXEC}, {"noatime", MS_NOATIME}, {"dirsync", MS_DIRSYNC},
    };
    unsigned long result = 0;
    char *rest = NULL;
    for (char *word = strtok_r(options, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
        for (size_t i = 0; i < ARRAY_LENGTH(flags); i++)
            if (strcmp(word, flags[i].name) == 0)
                result |= flags[i].value;
    return result;
}

static void mount_drive(char letter, unsigned channels, const char *target, unsigned long flags)
{
    char tag[16];
    for (unsigned i = 0; i < channels; i++) {
        snprintf(tag, sizeof(tag), "%c%u", letter, i);
        if (mount(tag, target, "9p", flags,
                  "trans=virtio,version=9p2000.L,msize=131072,cache=none,aname=drvfs") == 0)
            return;
        if (errno != EBUSY && errno != ENOENT)
            break;
    }
    rig_die(target);
}

/* Replaces the drive that is mounted at `target` by its folder `below`. */
static void keep_below(const char *target, const char *below)
{
    CLEANUP_FD int drive = open(target, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int folder =
        drive < 0 ? -1 : (int)syscall(SYS_open_tree, drive, below, OPEN_TREE_CLONE | O_CLOEXEC);
    int error = errno;
    fd_close(&drive);
    if (umount2(target, MNT_DETACH))
        rig_die(target);
    errno = error;
    if (folder < 0 ||
        syscall(SYS_move_mount, folder, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH))
        rig_die(below);
    close(folder);
}

int rig_mount_drvfs(int argc, char **argv)
{
    const char *words[2] = {NULL, NULL};
    char *options = NULL;
    unsigned count = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            options = argv[++i];
        else if (argv[i][0] != '-' && count < 2)
            words[count++] = argv[i];
    }
    if (count < 2 || !isalpha((unsigned char)words[0][0]) || words[0][1] != ':') {
        fprintf(stderr, "usage: mount.drvfs C:\\FOLDER TARGET [-o OPTIONS]\n");
        return 64;
    }
    char *below = strdup(words[0] + 2);
    for (char *at = below; at && *at; at++)
        *at = *at == '\\' ? '/' : *at;
    while (below && *below == '/')
        below++;
    unsigned channels = ask_windows(words[0], options ? options : "");
    unsigned long flags = options ? parse_flags(options) : 0;
    mount_drive((char)toupper((unsigned char)words[0][0]), channels, words[1], flags);
    if (below && *below)
        keep_below(words[1], below);
    return 0;
}
