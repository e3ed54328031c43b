/* Decides whether the server asks before it acts, with the project's own codev.json.
 *
 * The file is written by the guest, on a file system that may not answer. So a child with the
 * account's rights opens, reads and parses it, and returns one record of fixed size, whose form PID
 * 1 checks. PID 1 waits 2 s at most. Without a record the server asks, with a warning.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/server/permissions_text.h"
#include "init/walls/dropped_child.h"

#define PERMISSIONS_TIMEOUT_MS 2000
#define PERMISSIONS_FILE "codev.json"

/* Follows no link, does not block on a FIFO, opens no device (mounts are nodev), reads no more than
 * the limit. */
static void read_file(const char *mount, struct permissions *out)
{
    static char text[PERMISSIONS_FILE_MAX + 1];
    struct stat status;
    CLEANUP_FD int directory = open(mount, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP_FD int file =
        directory < 0 ? -errno : io_open_regular(directory, PERMISSIONS_FILE, O_NOFOLLOW, &status);

    if (file == -ENOENT && directory >= 0)
        return;
    ssize_t length = file < 0 ? file : io_read_whole(file, text, sizeof(text));
    if (length >= 0)
        permissions_from_text(text, (size_t)length, out);
    else if (length == -EFBIG)
        permissions_refuse(out, "codev.json: is larger than %d KiB", PERMISSIONS_FILE_MAX / 1024);
    else if (length == -EINVAL)
        permissions_refuse(out, "codev.json: is no regular file");
    else
        permissions_refuse(out, "codev.json: %s",
                           length == -ELOOP ? "is a symbolic link" : strerror((int)-length));
}

struct read_task {
    const char *mount;
    struct permissions *record; /* the configured setting at first */
};

static void read_and_report(int out, const struct failure *why, void *argument)
{
    struct read_task *task = argument;

    if (why)
        permissions_refuse(task->record, "codev.json: %.200s", why->text);
    else
        read_file(task->mount, task->record);
    (void)io_write_full(out, task->record, sizeof(*task->record));
}

/* The record comes from a process that parsed the guest's text: its strings must be terminated. */
static bool record_is_valid(const struct permissions *record)
{
    return memchr(record->permission, '\0', sizeof(record->permission)) &&
           memchr(record->warning, '\0', sizeof(record->warning));
}

static int read_in_child(const char *mount, const struct boot_config *config,
                         const struct account *account, struct permissions *out,
                         struct failure *why)
{
    static struct permissions record;
    struct read_task task = {.mount = mount, .record = &record};
    struct dropped_child child;
    int64_t deadline = io_monotonic_ns() + PERMISSIONS_TIMEOUT_MS * MILLISECONDS;

    record = *out;
    int result = dropped_child_start(&child, config, account, -1, read_and_report, &task, why);
    if (result < 0)
        return result;
    if (dropped_child_receive(&child, &record, sizeof(record), deadline) &&
        record_is_valid(&record))
        *out = record;
    else
        permissions_refuse(out, "codev.json: could not be read within %d s",
                           PERMISSIONS_TIMEOUT_MS / 1000);
    dropped_child_end(&child);
    return 0;
}

int permissions_decide(const struct boot_config *config, const struct account *account,
                       struct permissions *out, struct failure *why)
{
    const char *mount = permissions_mount(config);
    bool toggle = permissions_toggle(config);
    int result = 0;

    memset(out, 0, sizeof(*out));
    out->auto_accept = toggle;
    if (mount)
        result = read_in_child(mount, config, account, out, why);
    out->auto_accept = out->auto_accept && toggle;
    return result;
}
