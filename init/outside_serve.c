/* The requests of PID 1 to the process outside (wsl_link.h), and the outer relay.
 *
 * PID 1 is trusted: it is the same program with the same rights. Requests are handled one at a
 * time; wsl_mount.c limits the time for a Windows drive that hangs.
 */
#include "init/outside_serve.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/proof/wsl_witness.h"
#include "init/wsl/wsl_mount.h"

#define ROUTES_MAX 8192

static struct boot_config config; /* only relay and way_in are set */

/* A broker at the gateway's present address is one more listener that must not be reached. */
static void add_gateway(struct wsl_message *message)
{
    static char routes[ROUTES_MAX];
    struct endpoint *witness = &message->witnesses[message->witness_count].endpoint;
    ssize_t length = io_read_file(AT_FDCWD, "/proc/net/route", 0, routes, sizeof(routes));

    for (unsigned number = 0; config.relay.present && number < config.relay.transport_count;
         number++) {
        const struct endpoint *transport = &config.relay.transports[number];
        if (transport->kind != ENDPOINT_TCP_GATEWAY)
            continue;
        *witness = (struct endpoint){.kind = ENDPOINT_TCP4, .port = transport->port};
        if (length > 0 && endpoint_default_gateway(routes, (size_t)length, witness->address) == 0)
            message->witness_count++;
        return;
    }
}

static int start_agent(struct outside *outside, struct wsl_message *message, struct failure *why)
{
    config.relay = message->relay;
    config.way_in = message->way_in;
    int result = 0;

    if (config.relay.present || config.way_in.present)
        result = relay_start(&outside->relay, &config, -1, why);
    message->way_in.listen = config.way_in.listen;
    if (result == 0)
        result = wsl_witness_open(message->witnesses, &message->witness_count, why);
    if (result == 0)
        add_gateway(message);
    return result;
}

static int answer(struct outside *outside, struct wsl_message *message, int *fd,
                  struct failure *why)
{
    switch ((enum wsl_message_kind)message->kind) {
    case WSL_MOUNT:
        *fd = wsl_mount_make(message, why);
        return *fd < 0 ? *fd : 0;
    case WSL_START:
        return start_agent(outside, message, why);
    case WSL_UPDATE:
        config.relay = message->relay;
        return relay_update(&outside->relay, &config, why);
    case WSL_TOUCHED:
        message->touched = wsl_witness_close();
        return 0;
    case WSL_ANSWER:
    case WSL_WARNING:
    case WSL_AGENT_LOST:
    case WSL_MESSAGE_KIND_COUNT:
        break;
    }
    return failure_set(why, EPROTO, "unknown request");
}

int outside_serve(struct outside *outside)
{
    static struct wsl_message message;
    struct failure why = {.text = ""};
    CLEANUP_FD int fd = -1;
    int result = wsl_link_receive(outside->link, &message, NULL);

    if (result < 0)
        return result;
    message.result = answer(outside, &message, &fd, &why);
    message.kind = WSL_ANSWER;
    message.why = why;
    const struct endpoint way_in = message.way_in.listen;
    secret_wipe(&message.relay, sizeof(message.relay));
    secret_wipe(&message.way_in, sizeof(message.way_in));
    message.way_in.listen = way_in;
    return wsl_link_send(outside->link, &message, fd);
}

static void report(struct outside *outside, enum wsl_message_kind kind, const struct failure *why)
{
    static struct wsl_message message;

    memset(&message, 0, sizeof(message));
    message.kind = kind;
    message.why = *why;
    (void)wsl_link_send(outside->link, &message, -1);
}

void outside_agent_ended(struct outside *outside, int wait_status)
{
    struct failure why;
    const char *how = WIFSIGNALED(wait_status) ? "signal" : "exit status";
    int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    int64_t now = io_monotonic_ns(), wait = restart_wait(&outside->restarts, now);

    outside->relay.pid = 0;
    outside->restart_at = wait < 0 ? 0 : now + wait;
    if (wait < 0)
        failure_set(&why, 0, "the outer codev-agent ended (%s %d) after %d restarts within %lld s",
                    how, number, RESTARTS_MAX, (long long)(RESTART_WINDOW_NS / SECONDS));
    else
        failure_set(&why, 0, "the outer codev-agent ended (%s %d) and is started again", how,
                    number);
    report(outside, wait < 0 ? WSL_AGENT_LOST : WSL_WARNING, &why);
}

void outside_restart(struct outside *outside)
{
    struct failure why;

    if (outside->restart_at == 0 || io_monotonic_ns() < outside->restart_at)
        return;
    outside->restart_at = 0;
    if (relay_start(&outside->relay, &config, -1, &why) < 0)
        report(outside, WSL_AGENT_LOST, &why);
}
