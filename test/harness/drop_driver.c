/* Drops privileges by codev-init's own code, as the server's process does, and executes a program.
 * Tests use it to see that everyday tools work behind the drop and that the rest fails.
 *
 *     drop_driver [--user-namespaces] UID GID HOME PROGRAM [ARGUMENT...]
 *
 * The environment is PATH, HOME and LANG. Exit status: the program's, or 125 with the reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "init/walls/drop.h"

#define CANNOT_START 125

int main(int argc, char **argv)
{
    static char home[256];
    char *environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", home, NULL};
    bool namespaces = argc > 1 && strcmp(argv[1], "--user-namespaces") == 0;
    char **words = argv + 1 + namespaces;
    struct failure why = {"cannot enter the home directory"};

    if (argc - namespaces < 5) {
        fprintf(stderr,
                "usage: drop_driver [--user-namespaces] UID GID HOME PROGRAM [ARGUMENT...]\n");
        return CANNOT_START;
    }
    const struct account account = {.name = "test",
                                    .uid = (uid_t)strtoul(words[0], NULL, 10),
                                    .gid = (gid_t)strtoul(words[1], NULL, 10)};
    const struct drop_plan plan = {.account = &account,
                                   .cgroup_fd = -1,
                                   .controlling_tty = -1,
                                   .limit_nofile = 4096,
                                   .user_namespaces = namespaces,
                                   .filter = DROP_FILTER_SERVER};
    snprintf(home, sizeof(home), "HOME=%s", words[2]);
    if (drop_to_account(&plan, &why) < 0 || chdir(words[2]) < 0) {
        fprintf(stderr, "%s\n", why.text);
        return CANNOT_START;
    }
    execvpe(words[3], words + 3, environment);
    perror(words[3]);
    return CANNOT_START;
}
