/* The rig's guest program: selects the function by the first argument or by its own name. */
#include "qemu-harness/wsl-rig/rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/cleanup.h"

struct rig_verb {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct rig_verb verbs[] = {
    {"channel", rig_channel},           {"stand-ins", rig_stand_ins},
    {"distribution", rig_distribution}, {"rules", rig_rules},
    {"processes", rig_processes},       {"unrule", rig_unrule},
    {"mount.drvfs", rig_mount_drvfs},   {"init", rig_windows_executable},
};

void rig_die(const char *what)
{
    fprintf(stderr, "rig: %s: %s\n", what, strerror(errno));
    exit(1);
}

static const struct rig_verb *find(const char *name)
{
    const char *slash = strrchr(name, '/');
    for (size_t i = 0; i < ARRAY_LENGTH(verbs); i++)
        if (strcmp(verbs[i].name, slash ? slash + 1 : name) == 0)
            return &verbs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct rig_verb *verb = argc > 0 ? find(argv[0]) : NULL;
    signal(SIGPIPE, SIG_IGN);
    if (verb)
        return verb->run(argc, argv);
    verb = argc > 1 ? find(argv[1]) : NULL;
    if (verb)
        return verb->run(argc - 1, argv + 1);
    fprintf(stderr, "usage: rig channel|stand-ins|distribution NAME|rules\n");
    return 64;
}
