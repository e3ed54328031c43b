/* Starts the rig and codev-init in it, and names the mounted folders as Windows does. */
#include "qemu-harness/wsl-rig/launcher/wsl_machine.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/net/endpoint.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/launcher/host/programs.h"

#define DISTRIBUTION_DEFAULT "codev"
#define NETWORK_DEFAULT "nat"
#define INIT "/usr/sbin/codev-init"
#define IMAGE "../guest/x86_64/rootfs.tar"
#define MODULES "nf_tables,nft_reject_inet" /* as WSL's kernel has them */
#define HELLO_SECONDS 60
#define FACTS_MAX (64 * 1024)
#define FACTS_TOKENS_MAX 256
#define EROFS_SUPERBLOCK 1024 /* fs/erofs/erofs_fs.h: its offset; it begins with the magic number */
#define EROFS_MAGIC 0xE0F5E1E2u
#define ARGUMENTS_MAX (24 + 2 * OPTION_REPEAT_MAX)

static const char own_letters[] = "DEFGHIJKLMNOPQRSTUVWXYZ";

static struct {
    const char *network, *rig, *distribution; /* options, NULL without */
    char program[PATH_MAX];                   /* codev-rig */
    char image_path[PATH_MAX];
    bool image_is_disk; /* it is an erofs image, not an archive */
    const char *folder; /* of the rig */
    char forward_path[RUN_PATH_MAX];
} wsl;

/* --- options --- */

static const struct {
    const char *name;
    const char **value;
} wsl_options[] = {
    {"--wsl-network", &wsl.network},
    {"--wsl-rig", &wsl.rig},
    {"--wsl-distribution", &wsl.distribution},
};

/* The number of arguments that an option of ours takes at argv; 0: it is not ours. */
static int take_option(char **argv, struct failure *why)
{
    for (size_t i = 0; i < ARRAY_LENGTH(wsl_options); i++) {
        size_t length = strlen(wsl_options[i].name);
        if (strncmp(argv[0], wsl_options[i].name, length) != 0)
            continue;
        if (argv[0][length] == '=') {
            *wsl_options[i].value = argv[0] + length + 1;
            return 1;
        }
        if (argv[0][length] != '\0')
            continue;
        if (!argv[1])
            return failure_set(why, EINVAL, "%s needs a value", wsl_options[i].name);
        *wsl_options[i].value = argv[1];
        return 2;
    }
    return 0;
}

int wsl_options_take(int *argc, char **argv, struct failure *why)
{
    int kept = 0, at = 0;
    wsl.network = wsl.rig = wsl.distribution = NULL;
    while (argv[at] && strcmp(argv[at], "--") != 0) {
        int taken = take_option(argv + at, why);
        if (taken < 0)
            return taken;
        if (taken == 0)
            argv[kept++] = argv[at++];
        at += taken;
    }
    while (argv[at])
        argv[kept++] = argv[at++];
    argv[kept] = NULL;
    *argc = kept;
    if (wsl.network && strcmp(wsl.network, "nat") != 0 && strcmp(wsl.network, "mirrored") != 0)
        return failure_set(why, EINVAL, "--wsl-network %s: not nat or mirrored", wsl.network);
    if (wsl.network && wsl.rig)
        return failure_set(why, EINVAL, "--wsl-network is chosen when the rig of --wsl-rig starts");
    return 0;
}

static int check_options(const struct options *options, struct failure *why)
{
    if (options->file_server || options->kernel || options->qemu_arguments.count)
        return failure_set(why, EINVAL,
                           "--file-server, --kernel and --qemu-arg do not apply to WSL");
    if (options->arch && strcmp(options->arch, "x86_64") != 0)
        return failure_set(why, EINVAL, "the WSL rig is x86_64 only");
    return 0;
}

/* --- files --- */

static int look_at_image(struct failure *why)
{
    uint32_t magic;
    CLEANUP_FD int fd = open(wsl.image_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return failure_errno(why, errno, "image %s", wsl.image_path);
    wsl.image_is_disk = pread(fd, &magic, sizeof(magic), EROFS_SUPERBLOCK) == sizeof(magic) &&
                        le32toh(magic) == EROFS_MAGIC;
    return 0;
}

static int wsl_open(const struct machine_parts *parts, struct found_paths *found,
                    struct failure *why)
{
    const char *image = parts->options->image;
    int result = check_options(parts->options, why);
    if (result)
        return result;
    if (program_find(wsl.program, NULL, "codev-rig", "codev-rig", why))
        return failure_set(why, ENOENT, "no codev-rig beside this program or in PATH (make rig)");
    if (image ? snprintf(wsl.image_path, PATH_MAX, "%s", image) >= PATH_MAX
              : program_beside(wsl.image_path, IMAGE))
        return failure_set(why, ENAMETOOLONG, "image: path too long");
    wsl.folder = wsl.rig ? wsl.rig : parts->folder->path;
    found->machine_program = wsl.program;
    found->image = wsl.image_path;
    return look_at_image(why);
}

static int wsl_connect(const struct machine_parts *parts, struct guest_link *link,
                       struct failure *why)
{
    /* with NAT this host is the gateway, with a mirrored network it is 127.0.0.1 */
    static const char *const dial[] = {"tcp:gateway", "tcp:127.0.0.1", NULL};
    (void)why;
    *link = (struct guest_link){
        .broker_listen = "tcp:127.0.0.1:0",
        .broker_dial = dial,
        .broker_pinned = true,
        .way_in_listen = "tcp:127.0.0.1:0",
        .way_in.kind = ENDPOINT_UNIX,
        .hello_seconds = HELLO_SECONDS,
    };
    run_folder_name(parts->folder, wsl.forward_path, "forward.sock");
    memcpy(link->way_in.path, wsl.forward_path, sizeof(link->way_in.path));
    return 0;
}

/* --- mounts --- */

/* LETTER:\ and the rest of the path, as Windows writes it. */
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

/* The part of `path` below `folder`, or NULL. */
static const char *path_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (length == 1) /* the root */
        return path + 1;
    if (strncmp(path, folder, length) != 0 || (path[length] && path[length] != '/'))
        return NULL;
    return path + length + (path[length] == '/');
}

/* One drive of the rig, ["C", "/folder", READ-ONLY]. 1 when the mount lies on it and is named,
 * else 0. */
static int try_drive(struct mount *mount, const struct json *facts, uint32_t drive,
                     struct failure *why)
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
    int result = name_mount(mount->source, letter[0], rest, why);
    return result ? result : 1;
}

static int find_on_drives(struct mount *mount, const struct json *facts, struct failure *why)
{
    uint32_t drives = json_member(facts, 0, "drives");
    uint32_t drive = drives ? json_first(facts, drives) : 0;
    for (; drive; drive = json_next(facts, drives, drive)) {
        int result = try_drive(mount, facts, drive, why);
        if (result)
            return result < 0 ? result : 0;
    }
    return failure_set(why, ENOENT, "%s lies on no %s drive of the rig", mount->real,
                       mount->spec.readonly ? "read-only" : "writable");
}

static int name_on_rig(struct mount_table *mounts, const char *rig, struct failure *why)
{
    char path[PATH_MAX + 16], text[FACTS_MAX];
    struct json facts;
    struct json_token tokens[FACTS_TOKENS_MAX];
    struct json_position where;
    snprintf(path, sizeof(path), "%s/rig.json", rig);
    ssize_t length = io_read_file(AT_FDCWD, path, 0, text, sizeof(text));
    if (length < 0)
        return failure_errno(why, (int)-length, "no rig: %s", path);
    if (json_parse(&facts, text, (size_t)length, tokens, FACTS_TOKENS_MAX, &where))
        return failure_set(why, EPROTO, "%s: %s", path, where.reason);
    for (unsigned i = 0; i < mounts->count; i++) {
        int result = find_on_drives(&mounts->entries[i], &facts, why);
        if (result)
            return result;
    }
    return 0;
}

int wsl_name_mounts(struct mount_table *mounts, const char *rig, struct failure *why)
{
    for (unsigned i = 0; i < mounts->count; i++)
        mounts->entries[i].type = "drvfs";
    if (rig)
        return name_on_rig(mounts, rig, why);
    if (mounts->count > sizeof(own_letters) - 1)
        return failure_set(why, E2BIG, "more than %zu folders: no drive letters are left",
                           sizeof(own_letters) - 1);
    for (unsigned i = 0; i < mounts->count; i++)
        snprintf(mounts->entries[i].source, PATH_MAX, "%c:\\", own_letters[i]);
    return 0;
}

/* The rig's QEMU serves them. */
static int wsl_serve_folders(const struct machine_parts *parts, struct failure *why)
{
    return wsl_name_mounts(parts->mounts, wsl.rig, why);
}

/* --- the start --- */

static const char *distribution_name(void)
{
    return wsl.distribution ? wsl.distribution : DISTRIBUTION_DEFAULT;
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

static int start_rig(const struct machine_parts *parts, struct failure *why)
{
    static struct rig_arguments arguments;
    const struct mount_table *mounts = parts->mounts;
    char ids[32], memory[16];
    snprintf(ids, sizeof(ids), "%u:%u", parts->account->uid, parts->account->gid);
    snprintf(memory, sizeof(memory), "%ld", parts->options->memory_mib);
    const char *network = wsl.network ? wsl.network : NETWORK_DEFAULT;
    add_words(&arguments,
              (const char *const[]){wsl.program, "start", wsl.folder, "--network", network,
                                    "--modules", MODULES, "--ids", ids, "--memory", memory, NULL});
    for (unsigned i = 0; i < mounts->count; i++) {
        snprintf(arguments.drives[i], sizeof(arguments.drives[i]), "%c=fd:%d%s", own_letters[i],
                 mounts->entries[i].fd, mounts->entries[i].spec.readonly ? ":ro" : "");
        arguments.keep[i] = mounts->entries[i].fd;
        add_words(&arguments, (const char *const[]){"--drive", arguments.drives[i], NULL});
    }
    if (wsl.image_is_disk) {
        if (snprintf(arguments.disk, sizeof(arguments.disk), "%s=%s", distribution_name(),
                     wsl.image_path) >= (int)sizeof(arguments.disk))
            return failure_set(why, ENAMETOOLONG, "--wsl-distribution: too long");
        add_words(&arguments, (const char *const[]){"--disk", arguments.disk, NULL});
    }
    struct spawn spawn = {.name = "qemu",
                          .argv = arguments.argv,
                          .stdin_fd = -1,
                          .stdout_fd = parts->diagnostics,
                          .stderr_fd = parts->diagnostics,
                          .keep = arguments.keep,
                          .keep_count = mounts->count,
                          .death_signal = SIGKILL};
    return process_spawn(parts->processes, PROCESS_HELPER, &spawn, why);
}

/* Starts the stand-in for wsl.exe with codev-init behind it; its input and output are one socket.
 * A rig does not end with the sandbox that ran in it, so it is this process whose end is the
 * guest's. */
static int start_init(const struct machine_parts *parts, struct failure *why)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return failure_errno(why, errno, "socket pair");
    CLEANUP_FD int ours = pair[0];
    CLEANUP_FD int theirs = pair[1];
    const char *name = distribution_name();
    const char *const argv[] = {wsl.program, "wsl",   wsl.folder, "--import", wsl.image_path,
                                "-d",        name,    "-u",       "root",     "--exec",
                                INIT,        "--wsl", NULL};
    struct spawn spawn = {.name = "wsl",
                          .argv = argv,
                          .stdin_fd = theirs,
                          .stdout_fd = theirs,
                          .stderr_fd = parts->diagnostics,
                          .death_signal = SIGKILL};
    int result = process_spawn(parts->processes, PROCESS_GUEST, &spawn, why);
    if (result < 0)
        return result;
    io_set_nonblocking(ours);
    return fd_steal(&ours);
}

static int wsl_start(const struct machine_parts *parts, struct control_ends *control,
                     struct failure *why)
{
    if (!wsl.rig) {
        int result = start_rig(parts, why);
        if (result < 0)
            return result;
    }
    control->connection = start_init(parts, why);
    return control->connection < 0 ? control->connection : 0;
}

/* WSL's localhost forwarding. */
static int wsl_forward(const struct machine_parts *parts, const char *listen, struct failure *why)
{
    struct endpoint endpoint;
    char port[16];
    if (endpoint_parse_listen(&endpoint, listen, why) || endpoint.kind != ENDPOINT_TCP4 ||
        endpoint.port == 0)
        return failure_set(why, EPROTO, "the guest reports no TCP port for the way in: %s", listen);
    snprintf(port, sizeof(port), "%u", endpoint.port);
    const char *const argv[] = {wsl.program, "forward", wsl.folder, wsl.forward_path, port, NULL};
    struct spawn spawn = {.name = "forward",
                          .argv = argv,
                          .stdin_fd = -1,
                          .stdout_fd = -1,
                          .stderr_fd = -1,
                          .death_signal = SIGKILL};
    int result = process_spawn(parts->processes, PROCESS_HELPER, &spawn, why);
    return result < 0 ? result : 0;
}

static void wsl_close(void)
{
}

const struct machine wsl_machine = {
    .open = wsl_open,
    .connect = wsl_connect,
    .serve_folders = wsl_serve_folders,
    .start = wsl_start,
    .forward = wsl_forward,
    .close = wsl_close,
};
