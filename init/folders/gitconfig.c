/* Writes safe.directory for each mount.
 *
 * git refuses a repository that belongs to another user ("dubious ownership"). The files of a
 * mounted folder may have any owner of the host, and the user mounted it on purpose, so each mount
 * is listed as safe: the folder, its repository (upload-pack asks about that folder alone), and,
 * with a slash and a star (git 2.46), all below it.
 */
#include "init/folders/gitconfig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"

#define GITCONFIG_PATH "/etc/gitconfig"
#define LINE_MAX_BYTES (2 * PATH_MAX + 64) /* each byte of a path may need a backslash */

struct line_writer {
    char *out;
    size_t size, length;
};

static void put(struct line_writer *line, char c)
{
    if (line->length + 1 < line->size)
        line->out[line->length] = c;
    line->length++;
}

static void put_text(struct line_writer *line, const char *text)
{
    while (*text != '\0')
        put(line, *text++);
}

/* Within double quotes git interprets only these bytes (parse_value of its config parser); no other
 * byte can end the line. */
static void put_quoted(struct line_writer *line, char c)
{
    switch (c) {
    case '"':
    case '\\':
        put(line, '\\');
        put(line, c);
        break;
    case '\n':
        put_text(line, "\\n");
        break;
    case '\t':
        put_text(line, "\\t");
        break;
    case '\b':
        put_text(line, "\\b");
        break;
    default:
        put(line, c);
    }
}

int gitconfig_directory_line(char *out, size_t size, const char *path, const char *suffix)
{
    struct line_writer line = {.out = out, .size = size};

    put_text(&line, "\tdirectory = \"");
    for (; *path != '\0'; path++)
        put_quoted(&line, *path);
    put_text(&line, suffix);
    put_text(&line, "\"\n");
    if (line.length >= size)
        return -ENOSPC;
    out[line.length] = '\0';
    return (int)line.length;
}

int gitconfig_write(const struct boot_config *config, struct failure *why)
{
    static const char *const suffixes[] = {"", "/.git", "/*"};
    char line[LINE_MAX_BYTES];

    if (config->mount_count == 0)
        return 0;
    CLEANUP_FD int file =
        open(GITCONFIG_PATH, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return failure_errno(why, errno, "open " GITCONFIG_PATH);
    int result = io_write_full(file, "[safe]\n", strlen("[safe]\n"));
    for (unsigned i = 0; result == 0 && i < config->mount_count; i++) {
        for (size_t s = 0; result == 0 && s < ARRAY_LENGTH(suffixes); s++) {
            int length =
                gitconfig_directory_line(line, sizeof(line), config->mounts[i].target, suffixes[s]);
            result = length < 0 ? length : io_write_full(file, line, (size_t)length);
        }
    }
    return result < 0 ? failure_errno(why, -result, "write " GITCONFIG_PATH) : 0;
}
