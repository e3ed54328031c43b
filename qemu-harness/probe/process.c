/* Tools about processes: the own identity, orphans, exit statuses, clocks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"

#define ORPHANS_MAX 100000
#define REAP_LIMIT_MS 30000

static int probe_status_lines(int argc, char **argv)
{
    (void)argc, (void)argv;
    static const char *const wanted[] = {"Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:"};
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        probe_die("/proc/self/status: %s", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        int show = strncmp(line, "Cap", 3) == 0;
        for (size_t i = 0; i < ARRAY_LENGTH(wanted); i++)
            show |= strncmp(line, wanted[i], strlen(wanted[i])) == 0;
        if (show)
            fputs(line, stdout);
    }
    fclose(file);
    return PROBE_DONE;
}

/* Counts the zombies (state Z) of the own session; those of other sessions do not matter here. In
 * the file, state, parent, group and session follow the name (proc(5)). */
static unsigned count_zombies(void)
{
    pid_t own_session = getsid(0);
    unsigned count = 0;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[300], text[512];
        snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            io_read_file(AT_FDCWD, path, 0, text, sizeof(text)) < 0)
            continue;
        const char *behind_name = strrchr(text, ')');
        int session;
        count += behind_name && sscanf(behind_name, ") Z %*d %*d %d", &session) == 1 &&
                 session == own_session;
    }
    if (folder)
        closedir(folder);
    return count;
}

static void sleep_ms(long milliseconds)
{
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&pause, &pause) < 0 && errno == EINTR)
        ;
}

/* A grandchild without parent that ends at once, or after a moment. */
static void make_orphan(unsigned number)
{
    pid_t child = fork();
    if (child < 0)
        probe_die("fork: %s", strerror(errno));
    if (child == 0) {
        if (fork() == 0 && number % 3 == 0)
            sleep_ms(20);
        _exit((int)number & 127);
    }
    waitpid(child, NULL, 0);
}

static int probe_orphans(int argc, char **argv)
{
    unsigned count = (unsigned)probe_number(argv[1], ORPHANS_MAX), left;
    int64_t end = probe_now_us() + REAP_LIMIT_MS * 1000;
    for (unsigned i = 0; i < count; i++)
        make_orphan(i);
    while ((left = count_zombies()) > 0 && probe_now_us() < end)
        sleep_ms(20);
    printf("%s: %u made, %u left as zombies\n", probe_words(argc, argv), count, left);
    return left ? PROBE_BROKEN : PROBE_DONE;
}

/* Children that end before they are waited for, with all 256 exit statuses. */
static int probe_exits(int argc, char **argv)
{
    unsigned count = (unsigned)probe_number(argv[1], ORPHANS_MAX), wrong = 0;
    (void)argc;
    for (unsigned i = 0; i < count; i++) {
        int status;
        pid_t child = fork();
        if (child < 0)
            probe_die("fork: %s", strerror(errno));
        if (child == 0)
            _exit((int)i & 255);
        wrong += waitpid(child, &status, 0) != child || status != ((int)i & 255) << 8;
    }
    printf("%s: %u ended, %u with a wrong status\n", probe_words(argc, argv), count, wrong);
    return wrong ? PROBE_BROKEN : PROBE_DONE;
}

static int probe_sleep(int argc, char **argv)
{
    (void)argc;
    sleep_ms((long)probe_number(argv[1], 1000000) * 1000);
    return PROBE_DONE;
}

/* Ends by a signal or with a status, for tests of the reported result. */
static int probe_end(int argc, char **argv)
{
    (void)argc;
    if (strcmp(argv[1], "signal") == 0)
        raise((int)probe_number(argv[2], 64));
    if (strcmp(argv[1], "status") != 0)
        probe_die("status or signal");
    return (int)probe_number(argv[2], 255);
}

/* Prints the time on the machine's monotonic clock, for make bench-boot. */
static int probe_mark(int argc, char **argv)
{
    (void)argc;
    printf("mark %s %lld\n", argv[1], (long long)probe_now_us() * 1000);
    return PROBE_DONE;
}

static long long unix_ns(const struct timespec *time)
{
    return time->tv_sec * 1000000000LL + time->tv_nsec;
}

/* Prints the guest's time of day and, with a file, the time that the owner of its folder gives
 * it. */
static int probe_clock(int argc, char **argv)
{
    struct timespec before, after;
    struct stat status;
    clock_gettime(CLOCK_REALTIME, &before);
    if (argc < 2) {
        printf("clock %lld\n", unix_ns(&before));
        return PROBE_DONE;
    }
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, "", 1) != 1 || close(fd) || stat(argv[1], &status))
        probe_die("%s: %s", argv[1], strerror(errno));
    clock_gettime(CLOCK_REALTIME, &after);
    printf("clock %lld %lld %lld\n", unix_ns(&before), unix_ns(&status.st_mtim), unix_ns(&after));
    return PROBE_DONE;
}

static const struct probe_verb verbs[] = {
    {"clock", "[FILE]", "prints the time of day in ns; makes FILE: its time, and the time again",
     NULL, probe_clock, 0, 1},
    {"mark", "NAME", "prints the time since the machine started, in ns", NULL, probe_mark, 1, 1},
    {"status", "", "uids, gids, capabilities, NoNewPrivs, Seccomp", NULL, probe_status_lines, 0, 0},
    {"orphans", "N", "N orphans; done when none is left a zombie", NULL, probe_orphans, 1, 1},
    {"exits", "N", "N children that end at once, each status checked", NULL, probe_exits, 1, 1},
    {"sleep", "SECONDS", "does nothing", NULL, probe_sleep, 1, 1},
    {"end", "status|signal N", "ends that way", NULL, probe_end, 2, 2},
};
const struct probe_verbs process_verbs = {verbs, ARRAY_LENGTH(verbs)};
