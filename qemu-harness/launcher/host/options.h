/* The command line of codev-sandbox, as one const table of options.
 *
 * Options are read into strings and numbers. The table checks single values and what options
 * demand of each other; the users of an option check what it names. No option value is a secret:
 * the gateway's token is named by a file.
 */
#ifndef QEMU_HARNESS_LAUNCHER_HOST_OPTIONS_H
#define QEMU_HARNESS_LAUNCHER_HOST_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

#include "common/os/failure.h"

#define OPTION_REPEAT_MAX 64 /* of one repeatable option; more is a usage error */

struct option_list {
    const char *items[OPTION_REPEAT_MAX];
    unsigned count;
};

enum file_server_choice {
    FILE_SERVER_AUTO,
    FILE_SERVER_VIRTIOFS,
    FILE_SERVER_9P,
    FILE_SERVER_CHOICE_COUNT
};

extern const char *const file_server_choice_names[FILE_SERVER_CHOICE_COUNT];

struct options {
    struct option_list mounts;        /* --mount HOST[:GUEST[:ro|rw]] */
    struct option_list environment;   /* --env NAME=VALUE, for the command */
    struct option_list gateway_allow; /* passed to the broker unchanged */
    struct option_list ca_files;
    struct option_list broker_arguments;
    struct option_list qemu_arguments;
    const char *gateway_url;
    const char *gateway_token_file;
    const char *gateway_auth;
    const char *proxy;
    const char *rules;
    const char *app_data;
    const char *config;
    const char *cwd;
    const char *arch;
    const char *kernel;
    const char *image;
    const char *events;
    const char *console;
    const char *broker;
    const char *broker_log;
    const char *qemu;
    const char *virtiofsd;
    const char *vsock_device;
    const char *file_server_text;
    enum file_server_choice file_server;
    long cpus; /* 0: the accelerator decides */
    long memory_mib;
    long server_port; /* 0: the command serves no port */
    long port;        /* TCP on 127.0.0.1 for the way in; -1: no TCP, 0: a free one */
    bool timeline;
    bool help, version;
    char *const *command; /* NULL-terminated; NULL: an interactive shell */
};

/* Reads `run ...`, `--help` or `--version`. 0, or -EINVAL with the reason: a usage error. */
int options_parse(struct options *options, int argc, char *const *argv, struct failure *why);

/* Prints the text of --help, made from the table. */
void options_print_help(FILE *out);

#endif
