/* Starts codev-broker, waits until it is ready, and splits its two outputs into lines. */
#include "qemu-harness/launcher/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/text/escape.h"
#include "qemu-harness/launcher/host/descriptors.h"
#include "qemu-harness/launcher/host/programs.h"

#define ARGUMENTS_MAX (32 + 6 * OPTION_REPEAT_MAX)

struct broker_arguments {
    const char *argv[ARGUMENTS_MAX];
    unsigned count;
};

static void add_option(struct broker_arguments *arguments, const char *option, const char *value)
{
    if (!value)
        return;
    if (option)
        arguments->argv[arguments->count++] = option;
    arguments->argv[arguments->count++] = value;
}

static void add_list(struct broker_arguments *arguments, const char *option,
                     const struct option_list *list)
{
    for (unsigned i = 0; i < list->count; i++)
        add_option(arguments, option, list->items[i]);
}

static void broker_arguments_make(struct broker_arguments *arguments, const char *program,
                                  const struct guest_link *link, const struct options *options)
{
    *arguments = (struct broker_arguments){.count = 0};
    add_option(arguments, NULL, program);
    add_option(arguments, "--rules", options->rules);
    add_option(arguments, "--app-data", options->app_data);
    if (!options->gateway_url) {
        add_option(arguments, NULL, "--check");
        return;
    }
    add_option(arguments, "--listen", link->broker_listen);
    add_option(arguments, "--peer-cid", link->broker_peer_cid[0] ? link->broker_peer_cid : NULL);
    add_option(arguments, "--gateway-url", options->gateway_url);
    add_option(arguments, "--gateway-token-file", options->gateway_token_file);
    add_option(arguments, "--gateway-auth", options->gateway_auth);
    add_list(arguments, "--gateway-allow", &options->gateway_allow);
    add_list(arguments, "--ca-file", &options->ca_files);
    add_option(arguments, "--proxy", options->proxy);
    add_option(arguments, "--log", options->broker_log);
    add_list(arguments, NULL, &options->broker_arguments);
}

static int broker_spawn(struct broker *broker, const char *const *argv,
                        struct process_table *processes, struct failure *why)
{
    CLEANUP_FD int in_read = -1;
    CLEANUP_FD int out_write = -1;
    CLEANUP_FD int err_write = -1;
    int result = descriptor_pipe(&in_read, &broker->life);
    if (!result)
        result = descriptor_pipe(&broker->out, &out_write);
    if (!result)
        result = descriptor_pipe(&broker->err, &err_write);
    if (result)
        return failure_errno(why, -result, "pipe");
    io_set_nonblocking(broker->out);
    io_set_nonblocking(broker->err);
    struct spawn spawn = {.name = "broker",
                          .argv = argv,
                          .stdin_fd = in_read,
                          .stdout_fd = out_write,
                          .stderr_fd = err_write,
                          .death_signal = SIGTERM};
    result = process_spawn(processes, PROCESS_BROKER, &spawn, why);
    return result < 0 ? result : 0;
}

int broker_start(struct broker *broker, const struct options *options,
                 const struct guest_link *link, struct process_table *processes,
                 struct failure *why)
{
    broker->life = broker->out = broker->err = -1;
    broker->wanted = options->gateway_url;
    broker->rules_only = !broker->wanted && (options->rules || options->app_data);
    line_buffer_init(&broker->out_lines, broker->out_bytes, sizeof(broker->out_bytes));
    line_buffer_init(&broker->err_lines, broker->err_bytes, sizeof(broker->err_bytes));
    snprintf(broker->egress, sizeof(broker->egress), "[]");
    if (!broker->wanted && !broker->rules_only)
        return 0;
    char program[PATH_MAX];
    int result = program_find(program, options->broker, "codev-broker", "codev-broker", why);
    if (result)
        return result;
    struct broker_arguments arguments;
    broker_arguments_make(&arguments, program, link, options);
    return broker_spawn(broker, arguments.argv, processes, why);
}

bool broker_read(struct broker *broker, int *fd, struct line_buffer *lines)
{
    (void)broker;
    size_t room;
    char *at = line_buffer_room(lines, &room);
    if (room == 0) { /* discard a line that is longer than any we know */
        line_buffer_init(lines, lines->bytes, lines->size);
        at = line_buffer_room(lines, &room);
    }
    ssize_t length = read(*fd, at, room);
    if (length > 0)
        line_buffer_filled(lines, (size_t)length);
    else if (length == 0 || (errno != EAGAIN && errno != EINTR))
        fd_close(fd);
    return *fd >= 0;
}

enum broker_line broker_next_line(struct broker *broker, struct line_buffer *lines,
                                  struct json *line, char *message, size_t size)
{
    char *text;
    size_t length;
    struct json_position where;
    if (line_buffer_take(lines, &text, &length) != 1)
        return BROKER_NOTHING;
    if (json_parse(line, text, length, broker->tokens, BROKER_TOKENS_MAX, &where) == 0 &&
        line->tokens[0].type == JSON_OBJECT)
        return BROKER_EVENT;
    const char own_name[] = "codev-broker: "; /* whoever shows the message adds it again */
    size_t skip =
        length >= sizeof(own_name) - 1 && memcmp(text, own_name, sizeof(own_name) - 1) == 0
            ? sizeof(own_name) - 1
            : 0;
    escape_text(message, size, text + skip, length - skip, 0);
    snprintf(broker->last_message, sizeof(broker->last_message), "%s", message);
    return BROKER_MESSAGE;
}

/* Takes the port of the first address in the ready line, where the link does not name one, and
 * the pin of the broker's key, where the guest checks it. */
static int take_address(struct broker *broker, const struct json *line,
                        const struct guest_link *link, struct failure *why)
{
    struct endpoint endpoint;
    char text[ENDPOINT_TEXT_MAX];
    uint32_t list = json_member(line, 0, "listen");
    uint32_t first = list ? json_first(line, list) : 0;
    uint32_t pin = json_member(line, 0, "pin");
    broker->guest_port = link->broker_port;
    if (!broker->guest_port) {
        if (!first || json_string(line, first, text, sizeof(text)) < 0 ||
            endpoint_parse_listen(&endpoint, text, why) || endpoint.port == 0)
            return failure_set(why, EPROTO, "the broker's ready line names no port");
        broker->guest_port = endpoint.port;
    }
    if (link->broker_pinned &&
        (!pin || json_string(line, pin, broker->pin, sizeof(broker->pin)) != BROKER_PIN_LENGTH))
        return failure_set(why, EPROTO, "the broker's ready line holds no pin");
    return 0;
}

static int take_ready(struct broker *broker, const struct json *line, const struct guest_link *link,
                      struct failure *why)
{
    uint32_t egress = json_member(line, 0, "egress");
    uint32_t token = json_member(line, 0, "token");
    if (!token || json_string(line, token, broker->token, sizeof(broker->token)) < 0 ||
        !secret_is_hex(broker->token))
        return failure_set(why, EPROTO, "the broker's ready line holds no token");
    if (!egress || line->tokens[egress].type != JSON_ARRAY)
        return failure_set(why, EPROTO, "the broker's ready line holds no egress names");
    snprintf(broker->egress, sizeof(broker->egress), "%.*s",
             (int)(line->tokens[egress].end - line->tokens[egress].start),
             line->text + line->tokens[egress].start);
    return take_address(broker, line, link, why);
}

/* The broker ended, or closed its output, before it was ready. That is success for a check of the
 * rules, and otherwise a failure. */
static int broker_ended(struct broker *broker, struct process_table *processes, struct failure *why)
{
    struct json line;
    char how[128], message[FAILURE_TEXT_MAX];
    struct process *process = process_find(processes, PROCESS_BROKER);
    for (int i = 0; i < 200 && !process->ended; i++) {
        poll(NULL, 0, 10);
        process_reap(processes);
    }
    if (broker->rules_only && process->ended && process->status == 0)
        return 0;
    struct pollfd rest = {.fd = broker->err, .events = POLLIN};
    while (broker->err >= 0 && poll(&rest, 1, 0) == 1)
        broker_read(broker, &broker->err, &broker->err_lines);
    while (broker_next_line(broker, &broker->err_lines, &line, message, sizeof(message)))
        ;
    process_describe(process, how, sizeof(how));
    if (broker->last_message[0])
        return failure_set(why, ECHILD, "%s (%s)", broker->last_message, how);
    return failure_set(why, ECHILD, "codev-broker ended before it was ready: %s", how);
}

int broker_wait_ready(struct broker *broker, const struct guest_link *link,
                      struct process_table *processes, int signals, struct failure *why)
{
    struct json line;
    enum broker_line kind;
    char message[FAILURE_TEXT_MAX];
    int64_t deadline = io_monotonic_ns() + BROKER_READY_MS * MILLISECONDS;
    while (broker->wanted || broker->rules_only) {
        while ((kind = broker_next_line(broker, &broker->out_lines, &line, message,
                                        sizeof(message))) != BROKER_NOTHING)
            if (kind == BROKER_EVENT &&
                json_string_equals(&line, json_member(&line, 0, "event"), "ready"))
                return take_ready(broker, &line, link, why);
        if (broker->out < 0)
            return broker_ended(broker, processes, why);
        struct pollfd fds[3] = {{.fd = broker->out, .events = POLLIN},
                                {.fd = broker->err, .events = POLLIN},
                                {.fd = signals, .events = POLLIN}};
        if (io_poll(fds, ARRAY_LENGTH(fds), deadline) <= 0)
            return failure_set(why, ETIMEDOUT, "codev-broker is not ready after %d s",
                               BROKER_READY_MS / 1000);
        if (fds[2].revents)
            return -EINTR;
        if (fds[0].revents)
            broker_read(broker, &broker->out, &broker->out_lines);
        if (fds[1].revents)
            broker_read(broker, &broker->err, &broker->err_lines);
    }
    return 0;
}

void broker_close(struct broker *broker)
{
    fd_close(&broker->life);
    fd_close(&broker->out);
    fd_close(&broker->err);
    secret_wipe(broker->token, sizeof(broker->token));
    secret_wipe(broker->out_bytes, sizeof(broker->out_bytes));
}
