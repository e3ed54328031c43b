/* Runs the breakout table and prints a line for each vector:
 *
 *     breakout<TAB>GROUP<TAB>VECTOR<TAB>VERDICT<TAB>DETAIL<TAB>REASON
 *
 * VERDICT is refused, worked or unclear; DETAIL is the kernel's error; REASON says why the vector
 * cannot work on this kernel.
 *
 * Each vector runs in a child process with a time limit, so that one that hangs, ends or drops its
 * rights does not affect the others. As root (the control run) the child has a mount namespace of
 * its own, so that what it unmounts is still mounted for the next vector. A vector that is killed
 * or does not end in time was not refused, except when a limit of its group sent SIGKILL.
 */
#include "qemu-harness/probe/breakout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "qemu-harness/probe/probe.h"

#define VECTOR_LIMIT_MS 60000

static const struct breakout_group *const groups[] = {
    &breakout_identity,     &breakout_calls,   &breakout_processes,  &breakout_process_files,
    &breakout_kernel_files, &breakout_sockets, &breakout_namespaces, &breakout_mounts,
    &breakout_relay,        &breakout_bombs,
};

static const struct probe_verbs *const borrowed[] = {&network_verbs, &privilege_verbs,
                                                     &kernel_verbs};

struct breakout_place breakout_place = {.folder = "/nowhere"};

struct outcome {
    int error; /* 0: it worked */
    char detail[96];
};

static struct outcome outcome;

void breakout_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome.detail, sizeof(outcome.detail), format, arguments);
    va_end(arguments);
}

pid_t breakout_pid(const struct breakout_vector *vector)
{
    return vector->target == BREAKOUT_AGENT ? breakout_place.agent : 1;
}

const char *breakout_path(const struct breakout_vector *vector)
{
    static char path[256];
    if (vector->target != BREAKOUT_NOBODY)
        snprintf(path, sizeof(path), "/proc/%d/%s", (int)breakout_pid(vector), vector->path);
    else if (vector->path[0] != '/')
        snprintf(path, sizeof(path), "%s/%s", breakout_place.folder, vector->path);
    else
        snprintf(path, sizeof(path), "%s", vector->path);
    return path;
}

long breakout_open_read(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(breakout_path(vector), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

long breakout_read(const struct breakout_vector *vector)
{
    char byte;
    CLEANUP_FD int fd = open(breakout_path(vector), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    errno = ENODATA;
    return read(fd, &byte, 1) == 1 ? 0 : -1;
}

long breakout_open_write(const struct breakout_vector *vector)
{
    CLEANUP_FD int fd = open(breakout_path(vector), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -1 : 0;
}

static long attempt_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(borrowed); i++) {
        for (size_t j = 0; j < borrowed[i]->count; j++) {
            const struct probe_verb *verb = &borrowed[i]->verbs[j];
            if (strcmp(verb->name, name) == 0 && verb->attempt)
                return verb->attempt();
        }
    }
    probe_die("no attempt is called %s", name);
}

static void attempt_in_child(const struct breakout_vector *vector, int out)
{
    if (geteuid() == 0 && unshare(CLONE_NEWNS) == 0)
        (void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    errno = 0;
    long result = vector->attempt ? vector->attempt(vector) : attempt_verb(vector->path);
    outcome.error = result < 0 ? (errno ? errno : EPERM) : 0;
    if (!outcome.detail[0])
        breakout_say("%s", outcome.error ? probe_errno_name(outcome.error) : "no error");
    (void)io_write_full(out, &outcome, sizeof(outcome));
    _exit(0);
}

static int is_limit(int error)
{
    return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOSPC ||
           error == ENOMEM || error == EDQUOT;
}

/* Besides the usual errors, these are refusals too: the process is not visible, or a link or a
 * mount is in the path. */
static int is_refusal(int error)
{
    return probe_is_refusal(error) || error == ESRCH || error == EXDEV || error == ELOOP;
}

/* The verdict on a child that ended without a report. */
static const char *judge_silence(const struct breakout_group *group, int status)
{
    if (WIFSIGNALED(status)) {
        breakout_say("killed by signal %d", WTERMSIG(status));
        return group->has_limits && WTERMSIG(status) == SIGKILL ? "refused" : "unclear";
    }
    breakout_say("ended with status %d", WEXITSTATUS(status));
    return "unclear";
}

static const char *run_vector(const struct breakout_group *group,
                              const struct breakout_vector *vector)
{
    int pipe_fds[2], status = 0;
    memset(&outcome, 0, sizeof(outcome));
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        probe_die("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        probe_die("fork: %s", strerror(errno));
    if (child == 0)
        attempt_in_child(vector, pipe_fds[1]);
    close(pipe_fds[1]);
    struct pollfd wait = {.fd = pipe_fds[0], .events = POLLIN};
    int answered = poll(&wait, 1, VECTOR_LIMIT_MS) > 0;
    ssize_t got = answered ? io_read_full(pipe_fds[0], &outcome, sizeof(outcome)) : 0;
    close(pipe_fds[0]);
    if (!answered)
        kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (!answered) {
        breakout_say("no answer in %d s", VECTOR_LIMIT_MS / 1000);
        return "worked";
    }
    if (got != sizeof(outcome))
        return judge_silence(group, status);
    if (outcome.error == 0)
        return "worked";
    return is_refusal(outcome.error) || (group->has_limits && is_limit(outcome.error)) ? "refused"
                                                                                       : "unclear";
}

static void set_option(const char *name, const char *value)
{
    if (strcmp(name, "--agent") == 0)
        breakout_place.agent = (pid_t)probe_number(value, INT32_MAX);
    else if (strcmp(name, "--folder") == 0)
        breakout_place.folder = value;
    else if (strcmp(name, "--processes") == 0)
        breakout_place.processes = probe_number(value, 1 << 16);
    else if (strcmp(name, "--files") == 0)
        breakout_place.files = probe_number(value, 1 << 20);
    else if (strcmp(name, "--megabytes") == 0)
        breakout_place.megabytes = probe_number(value, 1 << 20);
    else
        probe_die("%s: no such option", name);
}

static int probe_breakout(int argc, char **argv)
{
    unsigned tried = 0, refused = 0, worked = 0;
    const char *only = "";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--group") == 0)
            only = argv[i + 1];
        else
            set_option(argv[i], argv[i + 1]);
    }
    for (size_t i = 0; i < ARRAY_LENGTH(groups); i++) {
        for (size_t j = 0; j < groups[i]->count; j++) {
            const struct breakout_vector *vector = &groups[i]->vectors[j];
            if (*only && strcmp(only, groups[i]->name) != 0)
                continue;
            const char *verdict = run_vector(groups[i], vector);
            printf("breakout\t%s\t%s\t%s\t%s\t%s\n", groups[i]->name, vector->name, verdict,
                   outcome.detail, vector->cannot ? vector->cannot : "");
            tried++;
            refused += strcmp(verdict, "refused") == 0;
            worked += strcmp(verdict, "worked") == 0;
        }
    }
    printf("breakout: %u tried, %u refused, %u worked, %u unclear\n", tried, refused, worked,
           tried - refused - worked);
    return refused == tried ? PROBE_REFUSED : worked > 0 ? PROBE_WORKED : PROBE_UNCLEAR;
}

/* What a set-uid or set-gid program of the table is started with. */
static long try_be_root(void)
{
    errno = EPERM;
    return geteuid() == 0 || getegid() == 0 ? 0 : -1;
}

static const struct probe_verb verbs[] = {
    {"breakout", "[OPTION VALUE]...",
     "the breakout table: --agent PID, --folder DIR, --processes N, --files N, --megabytes N, "
     "--group G",
     NULL, probe_breakout, 0, 32},
    {"be-root", "", "whether this process has root's uid or gid", try_be_root, NULL, 0, 0},
};
const struct probe_verbs breakout_verbs = {verbs, ARRAY_LENGTH(verbs)};
