/* Deliberate faults, selected by `codev.san=NAME` on the kernel's command line, so that a test can
 * check that a report of each kind from each program reaches the host. Only in programs that are
 * built with sanitizers. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static volatile int number = 0x7fffffff;

static void overflow(void)
{
    char bytes[8];
    volatile unsigned length = sizeof(bytes) + 1;
    memset(bytes, 0, length);
    number = (unsigned char)bytes[0];
}

static void undefined(void)
{
    number = number + 1;
}

static bool wanted(const char *line, const char *fault)
{
    char name[64] = " codev.san=";
    strcat(name, program_invocation_short_name);
    strcat(name, fault);
    return strstr(line, name);
}

__attribute__((constructor)) static void plant(void)
{
    char line[2048] = "";
    int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, line, sizeof(line) - 1) > 0) {
        if (wanted(line, "-overflow"))
            overflow();
        if (wanted(line, "-undefined"))
            undefined();
    }
    close(fd);
}
