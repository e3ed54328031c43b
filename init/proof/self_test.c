/* Stage `self-test`: a child with the rights of the server tries to get out.
 *
 * Parent and child share one table of checks; a result is an index of the table, a verdict and a
 * text, and the parent takes them in the table's order only. A missing result is a failed check: a
 * child that crashes, hangs or cannot drop fails the start.
 *
 * A machine has no second machine within reach where init could listen. In WSL the process outside
 * opened listeners in the shared network (wsl_witness.h). The checks also try addresses
 * (documentation networks, the metadata service, QEMU's host, each TCP transport) and sockets below
 * the IP layer. All must be refused at once; no answer counts as a way out.
 */
#include "init/proof/self_test.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "init/proof/self_test_internal.h"
#include "init/walls/dropped_child.h"

#define SELF_TEST_TIMEOUT_MS 20000

typedef bool applies_function(const struct boot_config *config);

static bool has_relay(const struct boot_config *config)
{
    return config->relay.present;
}

static bool has_no_relay(const struct boot_config *config)
{
    return !config->relay.present;
}

static bool is_in_wsl(const struct boot_config *config)
{
    return config->place == PLACE_WSL;
}

static bool has_no_user_namespaces(const struct boot_config *config)
{
    return !config->user_namespaces;
}

/* The check that waits for the host is the last one. */
static const struct {
    const char *name;
    self_test_function *run;
    applies_function *applies; /* NULL: always */
} checks[] = {
    {"no-network-device", check_no_network_device, NULL},
    {"drop-identity", check_drop_identity, NULL},
    {"no-root-again", check_no_root_again, NULL},
    {"no-new-namespace", check_no_new_namespace, has_no_user_namespaces},
    {"no-mount", check_no_mount, NULL},
    {"no-io-uring", check_no_io_uring, NULL},
    {"no-device-node", check_no_device_node, NULL},
    {"system-not-writable", check_system_not_writable, NULL},
    {"cgroup-locked", check_cgroup_locked, NULL},
    {"agent-memory", check_agent_memory, NULL},
    {"no-vsock", check_no_vsock, NULL},
    {"no-packet-socket", check_no_packet_socket, NULL},
    {"no-raw-socket", check_no_raw_socket, NULL},
    {"no-netfilter-socket", check_no_netfilter_socket, NULL},
    {"no-tcp-outside", check_no_tcp_outside, NULL},
    {"no-udp-outside", check_no_udp_outside, NULL},
    {"no-live-listener", check_no_live_listener, is_in_wsl},
    {"windows-hidden", check_windows_hidden, is_in_wsl},
    {"no-windows-executable", check_no_windows_executable, is_in_wsl},
    {"dns-answers-nxdomain", check_dns_answers_nxdomain, NULL},
    {"no-egress-without-login", check_no_egress_without_login, has_no_relay},
    {"broker-answers", check_broker_answers, has_relay},
};

static_assert(ARRAY_LENGTH(checks) <= CHECKS_MAX, "room in the report");

#define DROP_FAILED UINT32_MAX

struct result_record {
    uint32_t index; /* in the table, or DROP_FAILED */
    uint32_t ok;
    struct self_test_detail detail;
};

bool self_test_say(struct self_test_detail *detail, bool ok, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail->text, sizeof(detail->text), format, arguments);
    va_end(arguments);
    return ok;
}

bool self_test_refused(struct self_test_detail *detail, long result, const char *what)
{
    if (result >= 0)
        return self_test_say(detail, false, "%s works", what);
    return self_test_say(detail, true, "%s: %s", what, strerror(errno));
}

static bool applies(size_t index, const struct boot_config *config)
{
    return !checks[index].applies || checks[index].applies(config);
}

static void run_checks(int out, const struct failure *why, void *argument)
{
    struct self_test_context context = *(const struct self_test_context *)argument;
    struct result_record record = {.index = DROP_FAILED};
    struct drop_plan plan;

    if (why) {
        self_test_say(&record.detail, false, "%s", why->text);
        (void)io_write_full(out, &record, sizeof(record));
        return;
    }
    drop_plan_server(&plan, context.config, context.plan->account, -1);
    context.plan = &plan;
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        if (!applies(i, context.config))
            continue;
        memset(&record, 0, sizeof(record));
        record.index = (uint32_t)i;
        record.ok = checks[i].run(&context, &record.detail);
        if (io_write_full(out, &record, sizeof(record)) < 0)
            return;
    }
}

/* The text comes from a process without rights: it is terminated and made printable. */
static void copy_detail(char *out, const struct self_test_detail *detail)
{
    size_t i = 0;

    for (; i + 1 < sizeof(detail->text) && detail->text[i] != '\0'; i++)
        out[i] = detail->text[i] >= ' ' && detail->text[i] <= '~' ? detail->text[i] : '?';
    out[i] = '\0';
}

/* Fills in the result of the next check. False when none came, or that of another check. */
static bool take_result(struct dropped_child *child, size_t index, struct check_result *check,
                        int64_t deadline)
{
    struct result_record record;

    snprintf(check->name, sizeof(check->name), "%s", checks[index].name);
    check->ok = false;
    strcpy(check->detail, "the self-test ended or timed out before this check");
    if (!dropped_child_receive(child, &record, sizeof(record), deadline))
        return false;
    copy_detail(check->detail, &record.detail);
    check->ok = record.index == index && record.ok == 1;
    return record.index == index;
}

int self_test_run(const struct boot_config *config, const struct account *account, int cgroup_fd,
                  pid_t agent_pid, const struct wsl_witness *witnesses, unsigned witness_count,
                  struct check_report *report, struct failure *why)
{
    const struct drop_plan plan = {.account = account};
    struct self_test_context context = {.config = config,
                                        .plan = &plan,
                                        .agent_pid = agent_pid,
                                        .init_pid = getpid(),
                                        .witnesses = witnesses,
                                        .witness_count = witness_count};
    int64_t deadline = io_monotonic_ns() + SELF_TEST_TIMEOUT_MS * MILLISECONDS;
    const struct check_result *wrong = NULL;
    struct dropped_child child;

    memset(report, 0, sizeof(*report));
    int result = dropped_child_start(&child, config, account, cgroup_fd, run_checks, &context, why);
    if (result < 0)
        return result;
    for (size_t i = 0; i < ARRAY_LENGTH(checks); i++) {
        if (!applies(i, config))
            continue;
        struct check_result *check = &report->checks[report->count++];
        bool came = take_result(&child, i, check, deadline);
        if (!wrong && !check->ok)
            wrong = check;
        if (!came)
            deadline = 0; /* the remaining checks fail without waiting */
    }
    dropped_child_end(&child);
    if (wrong)
        return failure_set(why, EPERM, "%s: %s", wrong->name, wrong->detail);
    return 0;
}
