/* Prints the result of an attempt and returns the exit status for it. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/os/cleanup.h"
#include "qemu-harness/probe/probe.h"

#define NAMED(error)                                                                               \
    {                                                                                              \
        error, #error, 0                                                                           \
    }
#define REFUSAL(error)                                                                             \
    {                                                                                              \
        error, #error, 1                                                                           \
    }

static const struct {
    int number;
    const char *name;
    int refusal;
} errors[] = {
    REFUSAL(EPERM),
    REFUSAL(EACCES),
    REFUSAL(ENOSYS),
    REFUSAL(EROFS),
    REFUSAL(ENETUNREACH),
    REFUSAL(EHOSTUNREACH),
    REFUSAL(ECONNREFUSED),
    REFUSAL(ENETDOWN),
    REFUSAL(ECONNRESET),
    REFUSAL(EAFNOSUPPORT),
    REFUSAL(EPROTONOSUPPORT),
    REFUSAL(ESOCKTNOSUPPORT),
    REFUSAL(EOPNOTSUPP),
    REFUSAL(ENOENT),
    REFUSAL(ENODEV),
    REFUSAL(ENXIO),
    NAMED(EINVAL),
    NAMED(EFAULT),
    NAMED(EBADF),
    NAMED(ESRCH),
    NAMED(ETIMEDOUT),
    NAMED(EADDRNOTAVAIL),
    NAMED(EBUSY),
    NAMED(ENOTDIR),
    NAMED(ENOMEM),
    NAMED(EAGAIN),
    NAMED(EPIPE),
    NAMED(E2BIG),
    NAMED(EMFILE),
    NAMED(EEXIST),
    NAMED(ENOTTY),
    NAMED(EIO),
    NAMED(ENOPROTOOPT),
    NAMED(EPROTOTYPE),
    NAMED(EADDRINUSE),
    NAMED(ENOEXEC),
    NAMED(EXDEV),
    NAMED(ELOOP),
    NAMED(ENOSPC),
    NAMED(ENFILE),
    NAMED(EDQUOT),
    NAMED(ENODATA),
    NAMED(ESTALE),
    NAMED(ENOTCONN),
    NAMED(ENOTEMPTY),
    NAMED(EUSERS),
};

const char *probe_errno_name(int error)
{
    static char text[16];
    for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
        if (errors[i].number == error)
            return errors[i].name;
    }
    snprintf(text, sizeof(text), "errno %d", error);
    return text;
}

int probe_is_refusal(int error)
{
    for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
        if (errors[i].number == error)
            return errors[i].refusal;
    }
    return 0;
}

int probe_report(const char *what, int error, int64_t microseconds)
{
    char after[32] = "";
    if (microseconds >= 0)
        snprintf(after, sizeof(after), " in %d.%d ms", (int)(microseconds / 1000),
                 (int)(microseconds / 100 % 10));
    if (error == 0) {
        printf("%s: worked%s\n", what, after);
        return PROBE_WORKED;
    }
    if (error == ETIMEDOUT) {
        printf("%s: no answer%s\n", what, after);
        return PROBE_WORKED;
    }
    int refused = probe_is_refusal(error);
    printf("%s: %s (%s)%s\n", what, refused ? "refused" : "unclear", probe_errno_name(error),
           after);
    return refused ? PROBE_REFUSED : PROBE_UNCLEAR;
}

const char *probe_words(int argc, char **argv)
{
    static char text[512];
    size_t length = 0;
    for (int i = 0; i < argc && length < sizeof(text); i++)
        length +=
            (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", i ? " " : "", argv[i]);
    return text;
}

uint64_t probe_number(const char *text, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number > most)
        probe_die("'%s' is no number from 0 to %llu", text, (unsigned long long)most);
    return number;
}

int64_t probe_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

void probe_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("probe: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(PROBE_UNCLEAR);
}
