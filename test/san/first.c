/* /sbin/codev-init of the image for sanitizers (test/san/image.py): AddressSanitizer reads
 * /proc/self/maps before main, and nothing is mounted yet when the kernel starts PID 1. So this
 * mounts /proc and becomes the instrumented one. */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define INSTRUMENTED "/usr/sbin/codev-init.san"

int main(int argc, char **argv)
{
    (void)argc;
    mount("proc", "/proc", "proc", 0, NULL); /* there already after a test's own first process */
    execv(INSTRUMENTED, argv);
    const char *reason = strerror(errno);
    (void)!write(STDERR_FILENO, INSTRUMENTED ": ", sizeof(INSTRUMENTED ": ") - 1);
    (void)!write(STDERR_FILENO, reason, strlen(reason));
    return 1;
}
