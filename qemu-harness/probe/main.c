/* The probe: makes one attempt to pass the sandbox's walls, or is one tool for a test, chosen by
 * its first argument. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

static const struct probe_verbs *const tables[] = {
    &network_verbs, &privilege_verbs, &others_verbs,   &kernel_verbs,   &process_verbs,
    &http_verbs,    &round_verbs,     &server_verbs,   &breakout_verbs, &lenient_verbs,
    &file_verbs,    &tree_verbs,      &abstract_verbs, &deny_verbs,     &spoil_verbs,
};

static int usage(FILE *out, int status)
{
    fprintf(out, "usage: probe VERB [ARGUMENT...]\n\n"
                 "Exit status of a try: 0 refused, 1 worked (or hung), 2 unclear; of a tool: 0 "
                 "done, 3 not.\n\n");
    for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
        for (size_t j = 0; j < tables[i]->count; j++) {
            const struct probe_verb *verb = &tables[i]->verbs[j];
            int width =
                fprintf(out, "  %s%s%s", verb->name, *verb->arguments ? " " : "", verb->arguments);
            fprintf(out, "%*s%s\n", width < 40 ? 40 - width : 1, "", verb->help);
        }
    }
    return status;
}

static const struct probe_verb *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(tables); i++) {
        for (size_t j = 0; j < tables[i]->count; j++) {
            if (strcmp(tables[i]->verbs[j].name, name) == 0)
                return &tables[i]->verbs[j];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct probe_verb *verb = argc > 1 ? find(argv[1]) : NULL;
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (argc > 1 && strcmp(argv[1], "help") == 0)
        return usage(stdout, 0);
    if (!verb)
        return usage(stderr, PROBE_UNCLEAR);
    if (verb->run && (argc - 2 < verb->least || argc - 2 > verb->most))
        probe_die("usage: probe %s %s", verb->name, verb->arguments);
    if (verb->run)
        return verb->run(argc - 1, argv + 1);
    if (argc > 2)
        probe_die("%s takes no argument", verb->name);
    errno = 0;
    long result = verb->attempt();
    return probe_report(verb->name, result < 0 ? errno : 0, -1);
}
