/* See wsl.h. */
#include "qemu-harness/launcher/run/wsl.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/launcher/host/programs.h"

#define DISTRIBUTION_DEFAULT "codev"
#define INIT "/usr/sbin/codev-init"
#define IMAGE "../guest/x86_64/rootfs.tar"
#define MODULES "nf_tables,nft_reject_inet" /* as WSL's kernel has them */
#define FACTS_MAX (64 * 1024)
#define FACTS_TOKENS_MAX 256
#define EROFS_SUPERBLOCK 1024 /* fs/erofs/erofs_fs.h: where it begins, with the number */
#define EROFS_MAGIC 0xE0F5E1E2u
#define ARGUMENTS_MAX (24 + 2 * OPTION_REPEAT_MAX)

static const char own_letters[] = "DEFGHIJKLMNOPQRSTUVWXYZ";

static int look_at_image(struct wsl *wsl, struct failure *why)
{
    uint32_t magic;
    CLEANUP_FD int fd = open(wsl->image_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failure_errno(why, errno, "image %s", wsl->image_path);
    wsl->image_is_disk = pread(fd, &magic, sizeof(magic), EROFS_SUPERBLOCK) == sizeof(magic) &&
                         le32toh(magic) == EROFS_MAGIC;
    return 0;
}

int wsl_open(struct wsl *wsl, const struct options *options, const struct run_folder *folder,
             struct failure *why)
{
    wsl->wanted = true;
    wsl->own = !options->wsl_rig;
    if (program_find(wsl->program, NULL, "codev-rig", "codev-rig", why))
        return failure_set(why, ENOENT, "no codev-rig beside this program or in PATH (make rig)");
    const char *image = options->image;
    if (image ? snprintf(wsl->image_path, PATH_MAX, "%s", image) >= PATH_MAX
              : program_beside(wsl->image_path, IMAGE))
        return failure_set(why, ENAMETOOLONG, "image: path too long");
    if (snprintf(wsl->folder, PATH_MAX, "%s", wsl->own ? folder->path : options->wsl_rig) >=
        PATH_MAX)
        return failure_set(why, ENAMETOOLONG, "--wsl-rig: path too long");
    return look_at_image(wsl, why);
}

void wsl_close(struct wsl *wsl)
{
    free(wsl->sources);
    wsl->sources = NULL;
}

/* LETTER:\ and what is left of the path, as Windows writes it. */
static int name_mount(char out[PATH_MAX], char letter, const char *rest, struct failure *why)
{
    if (strchr(rest, '\\'))
        return failure_set(why, EINVAL, "%s: a backslash cannot be in a name on Windows", rest);
    if (snprintf(out, PATH_MAX, "%c:\\%s", letter, rest) >= PATH_MAX)
        return failure_errno(why, ENAMETOOLONG, "%s", rest);
    for (char *at = out; *at; at++)
        *at = *at == '/' ? '\\' : *at;
    return 0;
}

/* What of `path` lies behind `folder`, or NULL. */
static const char *path_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (length == 1) /* the root */
        return path + 1;
    if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    return path + length + (path[length] == '/');
}

/* One of the rig's drives, ["C", "/folder", READ-ONLY]. 1 when it has named the mount, 0 when it is another. */
static int try_drive(char out[PATH_MAX], const struct mount *mount, const struct json *facts,
                     uint32_t drive, struct failure *why)
{
    char letter[4], folder[PATH_MAX];
    uint32_t first = json_first(facts, drive);
    uint32_t second = first ? json_next(facts, drive, first) : 0;
    uint32_t third = second ? json_next(facts, drive, second) : 0;
    if (!third || json_string(facts, first, letter, sizeof(letter)) != 1 ||
        json_string(facts, second, folder, sizeof(folder)) < 0)
        return failure_set(why, EPROTO, "the rig's drives cannot be read");
    bool readonly = facts->tokens[third].type == JSON_TRUE;
    const char *rest = path_below(mount->real, folder);
    if (!rest || readonly != mount->spec.readonly)
        return 0;
    int result = name_mount(out, letter[0], rest, why);
    return result ? result : 1;
}

static int find_on_drives(char out[PATH_MAX], const struct mount *mount, const struct json *facts,
                          struct failure *why)
{
    uint32_t drives = json_member(facts, 0, "drives");
    uint32_t drive = drives ? json_first(facts, drives) : 0;
    for (; drive; drive = json_next(facts, drives, drive)) {
        int result = try_drive(out, mount, facts, drive, why);
        if (result)
            return result < 0 ? result : 0;
    }
    return failure_set(why, ENOENT, "%s lies on no drive of the rig that is %s", mount->real,
                       mount->spec.readonly ? "read-only" : "writable");
}

static int name_on_rig(struct wsl *wsl, const struct mount_table *mounts, struct failure *why)
{
    char path[PATH_MAX + 16], text[FACTS_MAX];
    struct json facts;
    struct json_token tokens[FACTS_TOKENS_MAX];
    struct json_position where;
    snprintf(path, sizeof(path), "%s/rig.json", wsl->folder);
    ssize_t length = io_read_file(AT_FDCWD, path, 0, text, sizeof(text));
    if (length < 0)
        return failure_errno(why, (int)-length, "no rig: %s", path);
    if (json_parse(&facts, text, (size_t)length, tokens, FACTS_TOKENS_MAX, &where))
        return failure_set(why, EPROTO, "%s: %s", path, where.reason);
    for (unsigned i = 0; mounts->entries && i < mounts->count; i++) {
        int result = find_on_drives(wsl->sources[i], &mounts->entries[i], &facts, why);
        if (result)
            return result;
    }
    return 0;
}

int wsl_name_mounts(struct wsl *wsl, const struct mount_table *mounts, struct failure *why)
{
    wsl->sources = calloc(OPTION_REPEAT_MAX, sizeof(*wsl->sources));
    if (!wsl->sources)
        return failure_errno(why, ENOMEM, "drives");
    if (!wsl->own)
        return name_on_rig(wsl, mounts, why);
    if (mounts->count > sizeof(own_letters) - 1)
        return failure_set(why, E2BIG, "more than %zu folders: no drive letters are left",
                           sizeof(own_letters) - 1);
    for (unsigned i = 0; i < mounts->count; i++)
        snprintf(wsl->sources[i], PATH_MAX, "%c:\\", own_letters[i]);
    return 0;
}

static const char *distribution_name(const struct options *options)
{
    return options->wsl_distribution ? options->wsl_distribution : DISTRIBUTION_DEFAULT;
}

struct rig_arguments {
    const char *argv[ARGUMENTS_MAX];
    unsigned count;
    char drives[OPTION_REPEAT_MAX][32];
    char disk[PATH_MAX + NAME_MAX];
    int keep[OPTION_REPEAT_MAX];
};

static void add_words(struct rig_arguments *arguments, const char *const *words)
{
    for (; *words; words++)
        arguments->argv[arguments->count++] = *words;
}

static int start_rig(const struct wsl *wsl, const struct options *options,
                     const struct mount_table *mounts, const struct account *account,
                     int diagnostics, struct process_table *processes, struct failure *why)
{
    static struct rig_arguments arguments;
    char ids[32], memory[16];
    snprintf(ids, sizeof(ids), "%u:%u", account->uid, account->gid);
    snprintf(memory, sizeof(memory), "%ld", options->memory_mib);
    const char *network = options->wsl_network ? options->wsl_network : "nat";
    add_words(&arguments,
              (const char *const[]){wsl->program, "start", wsl->folder, "--network", network,
                                    "--modules", MODULES, "--ids", ids, "--memory", memory, NULL});
    for (unsigned i = 0; i < mounts->count; i++) {
        snprintf(arguments.drives[i], sizeof(arguments.drives[i]), "%c=fd:%d%s", own_letters[i],
                 mounts->entries[i].fd, mounts->entries[i].spec.readonly ? ":ro" : "");
        arguments.keep[i] = mounts->entries[i].fd;
        add_words(&arguments, (const char *const[]){"--drive", arguments.drives[i], NULL});
    }
    if (wsl->image_is_disk) {
        if (snprintf(arguments.disk, sizeof(arguments.disk), "%s=%s", distribution_name(options),
                     wsl->image_path) >= (int)sizeof(arguments.disk))
            return failure_set(why, ENAMETOOLONG, "--wsl-distribution: too long");
        add_words(&arguments, (const char *const[]){"--disk", arguments.disk, NULL});
    }
    struct spawn spawn = {.argv = arguments.argv,
                          .stdin_fd = -1,
                          .stdout_fd = diagnostics,
                          .stderr_fd = diagnostics,
                          .keep = arguments.keep,
                          .keep_count = mounts->count,
                          .death_signal = SIGKILL};
    return process_spawn(processes, PROCESS_QEMU, &spawn, why);
}

/* wsl.exe with codev-init behind it; its input and output are one socket. */
static int start_init(const struct wsl *wsl, const struct options *options, int diagnostics,
                      struct process_table *processes, struct failure *why)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return failure_errno(why, errno, "socket pair");
    CLEANUP_FD int ours = pair[0];
    CLEANUP_FD int theirs = pair[1];
    const char *name = distribution_name(options);
    const char *const argv[] = {wsl->program, "wsl",   wsl->folder, "--import", wsl->image_path,
                                "-d",         name,    "-u",        "root",     "--exec",
                                INIT,         "--wsl", NULL};
    struct spawn spawn = {.argv = argv,
                          .stdin_fd = theirs,
                          .stdout_fd = theirs,
                          .stderr_fd = diagnostics,
                          .death_signal = SIGKILL};
    int result = process_spawn(processes, PROCESS_WSL, &spawn, why);
    if (result < 0)
        return result;
    io_set_nonblocking(ours);
    return fd_steal(&ours);
}

int wsl_start(const struct wsl *wsl, const struct options *options,
              const struct mount_table *mounts, const struct account *account, int diagnostics,
              struct process_table *processes, struct failure *why)
{
    if (wsl->own) {
        int result = start_rig(wsl, options, mounts, account, diagnostics, processes, why);
        if (result < 0)
            return result;
    }
    return start_init(wsl, options, diagnostics, processes, why);
}

int wsl_forward(const struct wsl *wsl, const char *path, const char *way_in,
                struct process_table *processes, struct failure *why)
{
    struct endpoint endpoint;
    char port[16];
    if (endpoint_parse_listen(&endpoint, way_in, why) || endpoint.kind != ENDPOINT_TCP4 ||
        endpoint.port == 0)
        return failure_set(why, EPROTO, "the way in is not at a port: %s", way_in);
    snprintf(port, sizeof(port), "%u", endpoint.port);
    const char *const argv[] = {wsl->program, "forward", wsl->folder, path, port, NULL};
    struct spawn spawn = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .death_signal = SIGKILL};
    int result = process_spawn(processes, PROCESS_FORWARD, &spawn, why);
    return result < 0 ? result : 0;
}
