/* The proxy resolver's main loop: forks workers, watches their time and memory, kills and reaps
 * them. */
#include "host-broker/proxy/pac_resolver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "host-broker/proxy/pac_internal.h"

#define SOCKET_FD STDIN_FILENO
#define WATCH_INTERVAL_MS 10

struct worker {
    pid_t pid; /* 0: a free place */
    uint32_t number;
    int64_t until;
    const char *killed_for;
};

static struct worker workers[PAC_WORKERS_MAX];

static void send_reply(const struct pac_reply *reply)
{
    size_t length = offsetof(struct pac_reply, text) + strlen(reply->text) + 1;
    (void)send(SOCKET_FD, reply, length, MSG_NOSIGNAL);
}

static void confine(void)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef __SANITIZE_ADDRESS__ /* the leak checker traces its own process */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

static void run_worker(const struct pac_question *question, char *const *ca_files, pid_t parent)
{
    static struct pac_reply reply;
    setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent)
        _exit(1);
    reply.number = question->number;
    pac_worker_answer(question, ca_files, &reply);
    send_reply(&reply);
    _exit(0);
}

static void start_worker(struct worker *worker, char *const *ca_files)
{
    static struct pac_question question;
    ssize_t length = recv(SOCKET_FD, &question, sizeof(question), MSG_DONTWAIT);
    if (length == 0)
        _exit(0);
    if (length != (ssize_t)sizeof(question))
        return;
    pid_t self = getpid();
    worker->pid = fork();
    if (worker->pid == 0)
        run_worker(&question, ca_files, self);
    if (worker->pid < 0) {
        struct pac_reply reply = {.number = question.number, .verdict = PAC_FAILED};
        snprintf(reply.text, sizeof(reply.text), "no worker process: %s", strerror(errno));
        worker->pid = 0;
        send_reply(&reply);
        return;
    }
    setpgid(worker->pid, worker->pid);
    worker->number = question.number;
    worker->until = io_monotonic_ns() + PAC_TIMEOUT_MS * MILLISECONDS;
    worker->killed_for = NULL;
}

/* Resident bytes. Address space is no measure: the interpreter reserves gigabytes that it never
 * uses. */
static unsigned long memory_of(pid_t pid)
{
    char path[64], text[128];
    unsigned long total = 0, resident = 0;
    snprintf(path, sizeof(path), "/proc/%d/statm", pid);
    if (io_read_file(-1, path, 0, text, sizeof(text)) <= 0 ||
        sscanf(text, "%lu %lu", &total, &resident) != 2)
        return 0;
    return resident * (unsigned long)sysconf(_SC_PAGESIZE);
}

static void watch_worker(struct worker *worker, int64_t now)
{
    if (worker->killed_for)
        return;
    if (now >= worker->until)
        worker->killed_for = "no answer within 5 s";
    else if (memory_of(worker->pid) > PAC_MEMORY_MAX)
        worker->killed_for = "more than 192 MiB of memory";
    if (worker->killed_for)
        kill(-worker->pid, SIGKILL);
}

static void end_worker(struct worker *worker, int status)
{
    struct pac_reply reply = {.number = worker->number, .verdict = PAC_FAILED};
    kill(-worker->pid, SIGKILL); /* what it may have started */
    worker->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return; /* it has answered */
    if (worker->killed_for)
        snprintf(reply.text, sizeof(reply.text), "%s", worker->killed_for);
    else
        snprintf(reply.text, sizeof(reply.text), "the interpreter ended without an answer (%s %d)",
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    send_reply(&reply);
}

static bool reap_workers(void)
{
    bool running = false;
    for (size_t i = 0; i < ARRAY_LENGTH(workers); i++) {
        int status;
        if (workers[i].pid == 0)
            continue;
        if (waitpid(workers[i].pid, &status, WNOHANG) == workers[i].pid)
            end_worker(&workers[i], status);
        else
            watch_worker(&workers[i], io_monotonic_ns());
        running = running || workers[i].pid != 0;
    }
    return running;
}

static struct worker *free_place(void)
{
    for (size_t i = 0; i < ARRAY_LENGTH(workers); i++)
        if (workers[i].pid == 0)
            return &workers[i];
    return NULL;
}

int pac_resolver_main(int argc, char **argv)
{
    (void)argc;
    confine();
    for (;;) {
        bool running = reap_workers();
        struct worker *place = free_place();
        struct pollfd fd = {.fd = place ? SOCKET_FD : -1, .events = POLLIN};
        if (poll(&fd, 1, running ? WATCH_INTERVAL_MS : -1) > 0 && place)
            start_worker(place, argv + 2);
    }
}
