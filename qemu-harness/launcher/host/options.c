/* The table of options, and the parser of argv.
 *
 * `--name value` and `--name=value` are the same. Everything after `--` is the command. An
 * operand before `--` is an error: with a forgotten `--` the wrong command would run.
 */
#include "qemu-harness/launcher/host/options.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/cleanup.h"

#define CPUS_MAX 16              /* CONFIG_NR_CPUS of the guest's kernel */
#define MEMORY_MIB_MIN 128       /* the guest does not boot with less */
#define MEMORY_MIB_MAX (1 << 20) /* 1 TiB */

const char *const file_server_choice_names[FILE_SERVER_CHOICE_COUNT] = {
    [FILE_SERVER_AUTO] = "auto",
    [FILE_SERVER_VIRTIOFS] = "virtiofs",
    [FILE_SERVER_9P] = "9p",
};

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_LIST, OPTION_NUMBER };

struct option_row {
    const char *name;
    enum option_kind kind;
    size_t offset; /* in struct options */
    long minimum, maximum;
    const char *value; /* the name of the value in the help text */
    const char *help;
};

#define FIELD(member) offsetof(struct options, member)

static const struct option_row option_table[] = {
    {"mount", OPTION_LIST, FIELD(mounts), 0, 0, "HOST[:GUEST[:ro|rw]]",
     "mounts a folder of the host at GUEST (default /workspace/NAME)"},
    {"gateway-url", OPTION_TEXT, FIELD(gateway_url), 0, 0, "URL",
     "the model gateway; without it the sandbox has no egress at all"},
    {"gateway-token-file", OPTION_TEXT, FIELD(gateway_token_file), 0, 0, "FILE",
     "file with the gateway's credential, which never enters the sandbox"},
    {"gateway-auth", OPTION_TEXT, FIELD(gateway_auth), 0, 0, "HOW",
     "bearer, x-api-key or header:NAME"},
    {"gateway-allow", OPTION_LIST, FIELD(gateway_allow), 0, 0, "'METHOD /PREFIX'",
     "only these requests reach the gateway"},
    {"rules", OPTION_TEXT, FIELD(rules), 0, 0, "FILE", "named upstreams (sandbox-egress.json)"},
    {"app-data", OPTION_TEXT, FIELD(app_data), 0, 0, "DIR",
     "the app's folder, whose sandbox-egress.json holds the rules"},
    {"ca-file", OPTION_LIST, FIELD(ca_files), 0, 0, "FILE", "further CAs for upstreams"},
    {"proxy", OPTION_TEXT, FIELD(proxy), 0, 0, "HOW",
     "proxy for the broker: system, none, URL or pac+URL"},
    {"server-port", OPTION_NUMBER, FIELD(server_port), 1, 65535, "PORT",
     "port that the command serves; the way in leads there"},
    {"port", OPTION_NUMBER, FIELD(port), 0, 65535, "PORT",
     "the way in also on 127.0.0.1:PORT, open to every user of this host"},
    {"env", OPTION_LIST, FIELD(environment), 0, 0, "NAME=VALUE",
     "environment variable of the command"},
    {"cwd", OPTION_TEXT, FIELD(cwd), 0, 0, "DIR",
     "the command's working directory (default: the first mount)"},
    {"config", OPTION_TEXT, FIELD(config), 0, 0, "FILE",
     "JSON object merged into the boot configuration"},
    {"cpus", OPTION_NUMBER, FIELD(cpus), 1, CPUS_MAX, "N",
     "processors of the guest (default 2; 1 where the processor is emulated, which is faster "
     "then)"},
    {"memory", OPTION_NUMBER, FIELD(memory_mib), MEMORY_MIB_MIN, MEMORY_MIB_MAX, "MIB",
     "memory of the guest (default 1024)"},
    {"arch", OPTION_TEXT, FIELD(arch), 0, 0, "ARCH", "x86_64 or aarch64 (default: this host's)"},
    {"kernel", OPTION_TEXT, FIELD(kernel), 0, 0, "FILE", "vmlinux (PVH), or Image for aarch64"},
    {"image", OPTION_TEXT, FIELD(image), 0, 0, "FILE", "the guest's root file system"},
    {"file-server", OPTION_TEXT, FIELD(file_server_text), 0, 0, "WHICH",
     "virtiofs, 9p or auto (default)"},
    {"events", OPTION_TEXT, FIELD(events), 0, 0, "FILE",
     "events of guest and broker as JSON lines, for an app"},
    {"timeline", OPTION_FLAG, FIELD(timeline), 0, 0, NULL, "draws the stages once ready"},
    {"console", OPTION_TEXT, FIELD(console), 0, 0, "FILE", "keeps what the kernel prints"},
    {"broker", OPTION_TEXT, FIELD(broker), 0, 0, "FILE", "the program codev-broker"},
    {"broker-log", OPTION_TEXT, FIELD(broker_log), 0, 0, "FILE", "the broker's request log"},
    {"broker-arg", OPTION_LIST, FIELD(broker_arguments), 0, 0, "ARG",
     "a further argument for the broker"},
    {"qemu", OPTION_TEXT, FIELD(qemu), 0, 0, "FILE", "the program qemu-system-ARCH"},
    {"qemu-arg", OPTION_LIST, FIELD(qemu_arguments), 0, 0, "ARG",
     "a further argument for QEMU (for tests)"},
    {"virtiofsd", OPTION_TEXT, FIELD(virtiofsd), 0, 0, "FILE", "the program virtiofsd"},
    {"vsock-device", OPTION_TEXT, FIELD(vsock_device), 0, 0, "FILE",
     "the program vhost-device-vsock, used without /dev/vhost-vsock"},
    {"help", OPTION_FLAG, FIELD(help), 0, 0, NULL, "this text"},
    {"version", OPTION_FLAG, FIELD(version), 0, 0, NULL, "the version"},
};

static const struct option_row *option_find(const char *text, size_t length)
{
    for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++)
        if (strlen(option_table[i].name) == length &&
            memcmp(option_table[i].name, text, length) == 0)
            return &option_table[i];
    return NULL;
}

static int option_number(const struct option_row *row, const char *text, long *out,
                         struct failure *why)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < row->minimum || value > row->maximum)
        return failure_set(why, EINVAL, "--%s %s: not a number from %ld to %ld", row->name, text,
                           row->minimum, row->maximum);
    *out = value;
    return 0;
}

static int option_store(struct options *options, const struct option_row *row, const char *value,
                        struct failure *why)
{
    void *field = (char *)options + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return 0;
    case OPTION_TEXT:
        if (*(const char **)field)
            return failure_set(why, EINVAL, "--%s is given twice", row->name);
        *(const char **)field = value;
        return 0;
    case OPTION_LIST: {
        struct option_list *list = field;
        if (list->count == OPTION_REPEAT_MAX)
            return failure_set(why, EINVAL, "--%s is given more than %d times", row->name,
                               OPTION_REPEAT_MAX);
        list->items[list->count++] = value;
        return 0;
    }
    case OPTION_NUMBER:
        return option_number(row, value, field, why);
    }
    return -EINVAL;
}

static int options_file_server(struct options *options, struct failure *why)
{
    if (!options->file_server_text)
        return 0;
    for (unsigned i = 0; i < FILE_SERVER_CHOICE_COUNT; i++) {
        if (strcmp(options->file_server_text, file_server_choice_names[i]) == 0) {
            options->file_server = (enum file_server_choice)i;
            return 0;
        }
    }
    return failure_set(why, EINVAL, "--file-server %s: not auto, virtiofs or 9p",
                       options->file_server_text);
}

/* Checks what options demand of each other. */
static int options_judge(struct options *options, struct failure *why)
{
    int result = options_file_server(options, why);
    if (result)
        return result;
    if (options->gateway_url && !options->gateway_token_file)
        return failure_set(why, EINVAL, "--gateway-url needs --gateway-token-file");
    if (options->gateway_token_file && !options->gateway_url)
        return failure_set(why, EINVAL, "--gateway-token-file needs --gateway-url");
    if (options->rules && options->app_data)
        return failure_set(why, EINVAL, "--rules and --app-data exclude each other");
    if (options->port >= 0 && options->server_port == 0)
        return failure_set(why, EINVAL, "--port needs --server-port, the port that it leads to");
    for (unsigned i = 0; i < options->environment.count; i++) {
        const char *item = options->environment.items[i];
        if (item[0] == '=' || !strchr(item, '='))
            return failure_set(why, EINVAL, "--env %s: not NAME=VALUE", item);
    }
    return 0;
}

/* Stores one option; argv[0] begins with "--". Returns the number of arguments that it took. */
static int options_take(struct options *options, char *const *argv, struct failure *why)
{
    const char *name = argv[0] + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = option_find(name, length);
    if (!row)
        return failure_set(why, EINVAL, "unknown option --%.*s (see --help)", (int)length, name);
    if (row->kind == OPTION_FLAG && equals)
        return failure_set(why, EINVAL, "--%s takes no value", row->name);
    const char *value = NULL;
    int taken = 1;
    if (row->kind != OPTION_FLAG) {
        value = equals ? equals + 1 : argv[1];
        taken = equals ? 1 : 2;
        if (!value)
            return failure_set(why, EINVAL, "--%s needs %s", row->name, row->value);
    }
    int result = option_store(options, row, value, why);
    return result ? result : taken;
}

int options_parse(struct options *options, int argc, char *const *argv, struct failure *why)
{
    *options = (struct options){.cpus = 0, .memory_mib = 1024, .port = -1};
    if (argc < 2)
        return failure_set(why, EINVAL, "no command: use `codev-sandbox run ...` (see --help)");
    int at = 1;
    if (strcmp(argv[1], "run") == 0)
        at = 2;
    else if (argv[1][0] != '-')
        return failure_set(why, EINVAL, "unknown command %s: the only command is `run`", argv[1]);
    while (argv[at]) {
        if (strcmp(argv[at], "--") == 0) {
            options->command = argv[at + 1] ? &argv[at + 1] : NULL;
            break;
        }
        if (strncmp(argv[at], "--", 2) != 0)
            return failure_set(why, EINVAL, "unexpected %s: put -- before the command to run",
                               argv[at]);
        int taken = options_take(options, argv + at, why);
        if (taken < 0)
            return taken;
        at += taken;
    }
    if (options->help || options->version)
        return 0;
    if (strcmp(argv[1], "run") != 0)
        return failure_set(why, EINVAL, "no command before %s: use `codev-sandbox run %s ...`",
                           argv[1], argv[1]);
    return options_judge(options, why);
}

void options_print_help(FILE *out)
{
    fputs("usage: codev-sandbox run [OPTION]... [-- COMMAND...]\n\n"
          "Runs COMMAND (default: a shell) in a micro-VM that sees the mounted folders, the model\n"
          "gateway through a broker on this host, and nothing else. Exit status: the command's,\n"
          "128+N when signal N ended it, 125 when the sandbox could not start.\n\n",
          out);
    for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
        const struct option_row *row = &option_table[i];
        fprintf(out, "  --%s%s%s\n        %s\n", row->name, row->value ? " " : "",
                row->value ? row->value : "", row->help);
    }
}
