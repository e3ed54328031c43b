/* The breakout table: attempts to leave the sandbox or to gain rights, each made once.
 *
 * `probe breakout` runs as the account codev inside a sandbox, where each vector must be refused.
 * In the control run it runs as root on the same kernel without the sandbox, where each vector must
 * work, because a vector that fails in both would prove nothing. For a vector that cannot work
 * there either, `cannot` gives the reason; it is then an error in the table when that vector works.
 */
#ifndef QEMU_HARNESS_PROBE_BREAKOUT_H
#define QEMU_HARNESS_PROBE_BREAKOUT_H

#include <stddef.h>
#include <sys/types.h>

/* Whose /proc entry a path lies in. */
enum breakout_target { BREAKOUT_NOBODY, BREAKOUT_INIT, BREAKOUT_AGENT };

struct breakout_vector {
    const char *name;
    /* Returns a negative number and errno when it is refused. Without it: the attempt of the verb
     * `path`. */
    long (*attempt)(const struct breakout_vector *vector);
    const char *path;            /* a file, below /proc/PID with a target; a request; a verb */
    enum breakout_target target; /* which process */
    long number;                 /* a system call, a flag, a family: the attempt's own */
    const char *cannot;          /* why it works nowhere with this kernel, or NULL */
};

struct breakout_group {
    const char *name;
    const struct breakout_vector *vectors;
    size_t count;
    int has_limits; /* a refusal may be a limit: EAGAIN, EMFILE, ENOSPC, ENOMEM, the kernel's
                       SIGKILL */
};

extern const struct breakout_group breakout_identity, breakout_calls, breakout_processes,
    breakout_process_files, breakout_kernel_files, breakout_sockets, breakout_namespaces,
    breakout_mounts, breakout_relay, breakout_bombs;

/* The options of the command line. */
struct breakout_place {
    pid_t agent;        /* the relay, or in the control run the process in its place */
    const char *folder; /* a shared folder in which the host has prepared files for the vectors */
    unsigned long processes, files, megabytes; /* a bomb that reaches these met no limit */
};
extern struct breakout_place breakout_place;

/* Sets the detail in the vector's line, such as the status of an answer. */
void breakout_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The path of a vector, with its target's /proc/PID/ before it; static. */
const char *breakout_path(const struct breakout_vector *vector);
pid_t breakout_pid(const struct breakout_vector *vector);

/* Attempts that several groups use. */
long breakout_open_read(const struct breakout_vector *vector); /* opens */
long breakout_read(const struct breakout_vector *vector);      /* and reads a byte */
long breakout_open_write(
    const struct breakout_vector *vector); /* opens for writing, writes nothing */

#endif
