/* Functions and types that all verbs of the probe use.
 *
 * The probe runs inside a sandbox as the account codev and attempts one action. A verb whose
 * attempt must be refused prints one line:
 *
 *     VERB ...: refused (EPERM)            exit status 0
 *     VERB ...: worked                     1
 *     VERB ...: no answer in 3000 ms       1   (a refusal has to come at once)
 *     VERB ...: unclear (EFAULT)           2   (it failed for another reason than a refusal)
 *
 * The other verbs are tools for tests (a client, servers, loads). Their exit status is 0 on success
 * and 3 when the other side failed.
 */
#ifndef QEMU_HARNESS_PROBE_PROBE_H
#define QEMU_HARNESS_PROBE_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum probe_status {
    PROBE_REFUSED = 0,
    PROBE_DONE = 0,
    PROBE_WORKED = 1,
    PROBE_UNCLEAR = 2,
    PROBE_BROKEN = 3
};

/* One verb. Exactly one of `attempt` (no arguments; returns a negative number and errno when it is
 * refused) and `run` (argv[0] is the verb; returns the exit status) is set. */
struct probe_verb {
    const char *name, *arguments, *help;
    long (*attempt)(void);
    int (*run)(int argc, char **argv);
    int least, most; /* arguments of `run` */
};

struct probe_verbs {
    const struct probe_verb *verbs;
    size_t count;
};

extern const struct probe_verbs network_verbs, privilege_verbs, others_verbs, kernel_verbs,
    process_verbs, http_verbs, round_verbs, server_verbs, breakout_verbs, lenient_verbs, file_verbs,
    tree_verbs, abstract_verbs, deny_verbs, spoil_verbs;

/* The name of an errno ("EPERM"), or its number as text when the probe has no name for it. */
const char *probe_errno_name(int error);

/* True for an error that means "not permitted" or "does not exist". */
int probe_is_refusal(int error);

/* Prints the line of an attempt called `what` with the error it ended with (0: it worked), and
 * returns the exit status. `microseconds` below 0 is left out. */
int probe_report(const char *what, int error, int64_t microseconds);

/* "connect 127.0.0.1 80" of argv; static. */
const char *probe_words(int argc, char **argv);

/* Parses a whole number from 0 to `most`; ends the program with a message when it is invalid. */
uint64_t probe_number(const char *text, uint64_t most);

int64_t probe_now_us(void);

/* Prints a message and ends with PROBE_UNCLEAR. */
void probe_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
