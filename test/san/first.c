/* /sbin/codev-init of the image for sanitizers (test/san/image.py): AddressSanitizer reads
 * /proc/self/maps before main, and nothing is mounted yet when the kernel starts PID 1. So this
 * program mounts /proc and executes the instrumented codev-init. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define INSTRUMENTED "/usr/sbin/codev-init.san"

int main(int argc, char **argv)
{
    (void)argc;
    /* fails when a test's own first process has mounted it already */
    mount("proc", "/proc", "proc", 0, NULL);
    execv(INSTRUMENTED, argv);
    const char *reason = strerror(errno);
    (void)!write(STDERR_FILENO, INSTRUMENTED ": ", sizeof(INSTRUMENTED ": ") - 1);
    (void)!write(STDERR_FILENO, reason, strlen(reason));
    return 1;
}
