/* codev-agent: the relay between a sandbox and its host. It does not interpret the bytes that it
 * forwards.
 *
 * codev-init starts it with the table of forwards on descriptor 0 and with inherited listeners (see
 * common/wire/relay_config.h); its only argument is --version. It ends with status 0 when
 * descriptor 0 ends; with 78 (EX_CONFIG) and a line on standard error when the table is invalid;
 * with 71 (EX_OSERR) and a line when a system call fails.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "agent/config_check.h"
#include "agent/confine.h"
#include "agent/loop.h"
#include "common/net/tls_profile.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"

/* Two sockets for each connection; listeners, the DNS stub, epoll and the standard descriptors. */
#define DESCRIPTORS_NEEDED (2 * BUFFERED_MAX + OVERFLOW_MAX + DNS_STREAMS_MAX + 32)

static struct relay relay; /* static, hence zero: unused slots take no memory */

static int complain(int status, const struct failure *why)
{
    char line[FAILURE_TEXT_MAX + 32];
    int length = snprintf(line, sizeof(line), "codev-agent: %s\n", why->text);
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)length);
    (void)ignored;
    return status;
}

static int raise_descriptor_limit(struct failure *why)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return failure_errno(why, errno, "RLIMIT_NOFILE");
    if (limit.rlim_cur >= DESCRIPTORS_NEEDED)
        return 0;
    if (limit.rlim_max < DESCRIPTORS_NEEDED)
        return failure_set(why, EMFILE, "RLIMIT_NOFILE is at most %llu, %d connections need %d",
                           (unsigned long long)limit.rlim_max, RELAY_CONNECTIONS_MAX,
                           DESCRIPTORS_NEEDED);
    limit.rlim_cur = DESCRIPTORS_NEEDED;
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? failure_errno(why, errno, "RLIMIT_NOFILE") : 0;
}

static int read_config(struct relay_config *config, struct failure *why)
{
    ssize_t got = io_read_full(STDIN_FILENO, config, sizeof(*config));
    if (got < 0)
        return failure_errno(why, (int)-got, "read the configuration from descriptor 0");
    if ((size_t)got < sizeof(*config))
        return failure_set(why, EINVAL,
                           "descriptor 0 ended after %zd of %zu bytes of configuration", got,
                           sizeof(*config));
    return config_check(config, why);
}

static int print_version(void)
{
    static const char text[] = "codev-agent " CODEV_VERSION "\n";

    return write(STDOUT_FILENO, text, sizeof(text) - 1) < 0 ? EX_IOERR : EX_OK;
}

int main(int argc, char **argv)
{
    struct failure why;
    struct relay_config config;

    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return print_version();
    signal(SIGPIPE, SIG_IGN);
    if (confine_process(&why) < 0)
        return complain(EX_OSERR, &why);
    if (read_config(&config, &why) < 0)
        return complain(EX_CONFIG, &why);
    int result = tls_profile_seed();
    if (result < 0) {
        failure_errno(&why, -result, "seed the generator");
        return complain(EX_OSERR, &why);
    }
    if (raise_descriptor_limit(&why) < 0 || loop_init(&relay, &config, STDIN_FILENO, &why) < 0)
        return complain(EX_OSERR, &why);
    secret_wipe(&config, sizeof(config));
    if (confine_system_calls(&why) < 0)
        return complain(EX_OSERR, &why);
    if (loop_run(&relay, &why) < 0)
        return complain(EX_OSERR, &why);
    return EX_OK;
}
