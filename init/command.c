/* The table of commands and their functions.
 *
 * The host is trusted, but its lines may be wrong: each command checks its members, and a mistake
 * is one warning that names the command. A wrong command never ends the sandbox.
 */
#include "init/command.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/json/json.h"
#include "common/os/cleanup.h"
#include "common/text/encoding.h"
#include "init/host/events.h"
#include "init/host_time.h"
#include "init/machine/machine.h"
#include "init/phase.h"

#define COMMAND_TOKENS_MAX 128
#define GRACE_MOST_MS (10 * 60 * 1000)
#define NAME_SIZE 32

struct command {
    const char *name;
    int (*run)(struct sandbox *sandbox, const struct json *document, struct failure *why);
};

/* A member that is a whole number from `least` to `most`. */
static int take_number(const struct json *document, const char *name, int64_t least, int64_t most,
                       int64_t *out, struct failure *why)
{
    uint32_t index = json_member(document, 0, name);

    if (index == 0 || json_int64(document, index, out) < 0 || *out < least || *out > most)
        return failure_set(why, EINVAL, "\"%s\" must be a number from %lld to %lld", name,
                           (long long)least, (long long)most);
    return 0;
}

static int take_name(const struct json *document, const char *name, char out[NAME_SIZE],
                     struct failure *why)
{
    uint32_t index = json_member(document, 0, name);

    if (index == 0 || json_string(document, index, out, NAME_SIZE) < 0)
        return failure_set(why, EINVAL, "\"%s\" must be a short string", name);
    return 0;
}

/* With a number it answers the event of that number; without one it is the present time. */
static int run_time(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    int64_t unix_ns, number, age_max_ns = 0;
    int result = take_number(document, "unix_ns", 1, INT64_MAX, &unix_ns, why);

    if (result < 0)
        return result;
    if (sandbox->place == PLACE_WSL)
        return failure_set(why, EPERM,
                           "the clock cannot be set in WSL: all distributions share it");
    if (json_member(document, 0, "number") != 0) {
        result = take_number(document, "number", 1, INT64_MAX, &number, why);
        if (result == 0)
            result = host_time_answered(sandbox, number, &age_max_ns, why);
    }
    return result < 0 ? result : clock_set(unix_ns, age_max_ns, why);
}

static int run_input(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    static char bytes[BASE64_LENGTH(CONTROL_DATA_MAX) + 1];
    uint32_t data = json_member(document, 0, "data"), eof = json_member(document, 0, "eof");
    int length = 0;

    if (data != 0) {
        length = json_string(document, data, bytes, sizeof(bytes));
        length = length < 0 ? length : base64_decode(bytes, sizeof(bytes), bytes, (size_t)length);
    }
    bool ended = eof != 0 && document->tokens[eof].type == JSON_TRUE;
    if (length < 0 || (data == 0 && !ended))
        return failure_set(why, EINVAL,
                           "\"data\" must be base64 of at most %d bytes, or \"eof\" true",
                           CONTROL_DATA_MAX);
    if (data != 0 && server_io_input(&sandbox->io, bytes, (size_t)length) < 0)
        return failure_set(why, EDQUOT, "%d bytes beyond the credit are dropped", length);
    if (ended)
        server_io_input_end(&sandbox->io);
    return 0;
}

static int run_credit(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    char stream[NAME_SIZE];
    int64_t bytes;
    int result = take_name(document, "stream", stream, why);

    if (result == 0)
        result = take_number(document, "bytes", 1, OUTPUT_CREDIT_MAX, &bytes, why);
    if (result == 0 && server_io_credit(&sandbox->io, stream, bytes) < 0)
        return failure_set(why, EINVAL, "the server has no stream \"%s\"", stream);
    return result;
}

static int run_resize(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    int64_t rows, columns;
    int result = take_number(document, "rows", 1, UINT16_MAX, &rows, why);

    if (result == 0)
        result = take_number(document, "cols", 1, UINT16_MAX, &columns, why);
    if (result < 0)
        return result;
    result = server_io_resize(&sandbox->io, (unsigned short)rows, (unsigned short)columns);
    return result < 0 ? failure_errno(why, -result, "the server's terminal") : 0;
}

static int run_signal(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {
        {"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},   {"SIGKILL", SIGKILL},
        {"SIGUSR1", SIGUSR1}, {"SIGUSR2", SIGUSR2}, {"SIGTERM", SIGTERM},   {"SIGCONT", SIGCONT},
        {"SIGTSTP", SIGTSTP}, {"SIGSTOP", SIGSTOP}, {"SIGWINCH", SIGWINCH},
    };
    char name[NAME_SIZE];
    int result = take_name(document, "name", name, why);

    if (result < 0)
        return result;
    for (unsigned number = 0; number < ARRAY_LENGTH(signals); number++) {
        if (strcmp(signals[number].name, name) != 0)
            continue;
        result = server_signal(&sandbox->server, &sandbox->io, signals[number].number);
        /* the host cannot know that the server has just ended */
        return result < 0 && result != -ESRCH ? failure_errno(why, -result, "send %s", name) : 0;
    }
    return failure_set(why, EINVAL, "the signal \"%s\" cannot be sent", name);
}

static int run_shutdown(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    int64_t grace_ms = SHUTDOWN_GRACE_MS;
    int result = 0;

    if (json_member(document, 0, "grace_ms") != 0)
        result = take_number(document, "grace_ms", 0, GRACE_MOST_MS, &grace_ms, why);
    if (result == 0)
        phase_shutdown(sandbox, grace_ms);
    return result;
}

static int run_relay(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    uint32_t index = json_member(document, 0, "relay");
    struct boot_relay fresh;

    if (!sandbox->config.relay.present)
        return failure_set(why, EINVAL, "the sandbox was started without a relay");
    if (index == 0)
        return failure_set(why, EINVAL, "\"relay\" must be an object as in the boot configuration");
    int result = boot_relay_parse(&fresh, sandbox->config.place, document, index, why);
    if (result == 0 && fresh.listen != sandbox->config.relay.listen)
        result = failure_set(why, EINVAL, "relay.listen cannot change while the sandbox runs");
    if (result == 0) {
        sandbox->config.relay = fresh;
        result = sandbox->place == PLACE_WSL ? wsl_link_update(sandbox->outside_fd, &fresh, why)
                                             : relay_update(&sandbox->relay, &sandbox->config, why);
    }
    secret_wipe(&fresh, sizeof(fresh));
    return result;
}

static int run_ack(struct sandbox *sandbox, const struct json *document, struct failure *why)
{
    (void)document;
    (void)why;
    sandbox->acknowledged = true;
    return 0;
}

static const struct command commands[] = {
    {"time", run_time},     {"input", run_input},   {"credit", run_credit},
    {"resize", run_resize}, {"signal", run_signal}, {"shutdown", run_shutdown},
    {"relay", run_relay},   {"ack", run_ack},
};

static const struct command *find_command(const struct json *document)
{
    uint32_t name = json_member(document, 0, "command");

    for (unsigned number = 0; name != 0 && number < ARRAY_LENGTH(commands); number++)
        if (json_string_equals(document, name, commands[number].name))
            return &commands[number];
    return NULL;
}

static int run_line(struct sandbox *sandbox, const char *line, size_t length, struct failure *why)
{
    struct json_token tokens[COMMAND_TOKENS_MAX];
    struct json_position where;
    struct json document;

    if (json_parse(&document, line, length, tokens, COMMAND_TOKENS_MAX, &where) < 0)
        return failure_set(why, EINVAL, "a line is not a command: column %u: %s", where.column,
                           where.reason);
    const struct command *command = find_command(&document);
    /* only the name is shown: the line may hold a token */
    char name[NAME_SIZE] = "";
    (void)take_name(&document, "command", name, NULL);
    if (!command)
        return failure_set(why, EINVAL, "unknown command%s%s", name[0] != '\0' ? ": " : "", name);
    return failure_prefix(why, command->run(sandbox, &document, why), "command %s", command->name);
}

void command_run(struct sandbox *sandbox, char *line, size_t length)
{
    struct failure why = {.text = ""};

    if (run_line(sandbox, line, length, &why) < 0)
        (void)event_warning(&sandbox->control, why.text);
    secret_wipe(line, length);
}
