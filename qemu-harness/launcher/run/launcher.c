/* Reads the command line, and starts, runs and stops one sandbox. */
#include "qemu-harness/launcher/run/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text/escape.h"
#include "common/wire/protocol.h"
#include "qemu-harness/launcher/run/loop.h"
#include "qemu-harness/launcher/run/start.h"

/* Opens /dev/null where descriptors 0 to 2 are closed, so that no other file gets these numbers. */
static void open_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static int report(const char *prefix, const struct failure *why)
{
    char shown[2 * FAILURE_TEXT_MAX];
    escape_text(shown, sizeof(shown), why->text, strlen(why->text), 0);
    fprintf(stderr, "codev-sandbox: %s%s\n", prefix, shown);
    return EXIT_CANNOT_START;
}

int launcher_run(int argc, char **argv, const struct machine *machine)
{
    static struct sandbox sandbox;
    struct failure why = {""};
    open_standard_descriptors();
    process_close_inherited();
    sandbox_init(&sandbox, machine);
    if (options_parse(&sandbox.options, argc, argv, &why))
        return report("usage: ", &why);
    if (sandbox.options.help) {
        options_print_help(stdout);
        return 0;
    }
    if (sandbox.options.version) {
        puts("codev-sandbox " CODEV_VERSION);
        return 0;
    }
    int result = sandbox_start(&sandbox, &why);
    int status = EXIT_CANNOT_START;
    if (result == 0 || result == -EINTR)
        status = sandbox_run(&sandbox);
    else
        sandbox_report_start(&sandbox, &why);
    sandbox_stop(&sandbox);
    return status;
}
