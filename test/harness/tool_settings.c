/* Prints the tool settings that codev-init would make, by codev-init's own code, so that a test can
 * run this machine's clients with exactly these:
 *
 *     tool_settings PORT HOME RULE...
 *
 * Prints the environment, one NAME=VALUE a line, an empty line, and what codev-init appends to
 * /etc/gitconfig.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "init/server/environment.h"
#include "init/server/tool_files.h"

int main(int argc, char **argv)
{
    static struct boot_config config;
    static struct permissions permissions;
    struct account account = {.name = "codev", .shell = "/bin/sh", .uid = 1000, .gid = 1000};
    struct failure why;
    char **environment, text[4096];

    if (argc < 4) {
        fprintf(stderr, "usage: tool_settings PORT HOME RULE...\n");
        return 64;
    }
    config.relay.present = true;
    config.relay.listen = (uint16_t)atoi(argv[1]);
    snprintf(account.home, sizeof(account.home), "%s", argv[2]);
    for (int i = 3; i < argc && config.egress_count < EGRESS_MAX; i++)
        config.egress[config.egress_count++] = argv[i];
    if (environment_build(&config, &account, &permissions, &environment, &why) < 0 ||
        tool_files_git(text, sizeof(text), &config) < 0) {
        fprintf(stderr, "tool_settings: too much\n");
        return 1;
    }
    for (char **entry = environment; *entry; entry++)
        puts(*entry);
    printf("\n%s", text);
    return 0;
}
