/* Stages `clock` and `hostname`. */
#include "init/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/os/io.h"
#include "common/text/escape.h"

#define NANOSECONDS 1000000000LL

int64_t clock_choose(int64_t clock_ns, int64_t unix_ns, int64_t age_max_ns)
{
    const int64_t ahead = clock_ns - unix_ns;
    int64_t age = age_max_ns;

    if (ahead >= 0 && ahead <= age_max_ns + CLOCK_AHEAD_MAX_NS)
        return 0;
    if (ahead < 0 && age > CLOCK_AHEAD_MAX_NS)
        age = CLOCK_AHEAD_MAX_NS; /* else it might have to be set back again */
    return unix_ns <= INT64_MAX - age ? unix_ns + age : INT64_MAX;
}

int clock_set(int64_t unix_ns, int64_t age_max_ns, struct failure *why)
{
    struct timespec now;

    if (unix_ns <= 0)
        return 0;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return failure_errno(why, errno, "read the clock");
    int64_t chosen =
        clock_choose((int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec, unix_ns, age_max_ns);
    if (chosen == 0)
        return 0;
    struct timespec wanted = {.tv_sec = (time_t)(chosen / NANOSECONDS),
                              .tv_nsec = (long)(chosen % NANOSECONDS)};
    if (clock_settime(CLOCK_REALTIME, &wanted) < 0)
        return failure_errno(why, errno, "set the clock");
    return 0;
}

/* Written even when the name could not be set: localhost has to resolve. */
static int write_names(const char *name)
{
    char text[256];
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;

    snprintf(text, sizeof(text), "%s\n", name);
    int result = io_write_file(AT_FDCWD, "/etc/hostname", flags, 0644, text);
    snprintf(text, sizeof(text), "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost %s\n", name,
             name);
    int hosts = io_write_file(AT_FDCWD, "/etc/hosts", flags, 0644, text);
    return result < 0 ? result : hosts;
}

int hostname_set(const char *wanted, struct failure *why)
{
    char name[HOSTNAME_MAX + 1], shown[128];
    bool same = hostname_make_valid(name, wanted);
    int set = sethostname(name, strlen(name)) < 0 ? errno : 0;
    int written = write_names(name);

    if (set != 0)
        failure_errno(why, set, "the hostname %s could not be set", name);
    else if (written < 0)
        failure_errno(why, -written, "/etc/hostname or /etc/hosts could not be written");
    else if (!same)
        failure_set(why, EINVAL, "the hostname \"%s\" is not valid: %s instead",
                    (escape_text(shown, sizeof(shown), wanted, strlen(wanted), 0), shown), name);
    else
        return 0;
    return 1;
}
