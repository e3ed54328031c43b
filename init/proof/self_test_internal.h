/* The checks of the self-test, which run in the child without rights.
 *
 * Each returns true when it passes, and writes what was tried and what the kernel answered.
 */
#ifndef INIT_PROOF_SELF_TEST_INTERNAL_H
#define INIT_PROOF_SELF_TEST_INTERNAL_H

#include <sys/socket.h>

#include "init/host/events.h"
#include "init/walls/drop.h"
#include "init/wsl/wsl_link.h"

#define SELF_TEST_DATAGRAM "codev self-test"

struct self_test_context {
    const struct boot_config *config;
    const struct drop_plan *plan;
    pid_t agent_pid, init_pid;
    const struct wsl_witness *witnesses; /* WSL: live listeners outside */
    unsigned witness_count;
};

struct self_test_detail {
    char text[sizeof(((struct check_result *)0)->detail)];
};

typedef bool self_test_function(const struct self_test_context *context,
                                struct self_test_detail *detail);

/* Helpers for the checks: set the text (cut to size) and return `ok`. */
bool self_test_say(struct self_test_detail *detail, bool ok, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* For a call that must fail: passes when `result` is negative, and names errno. */
bool self_test_refused(struct self_test_detail *detail, long result, const char *what);

/* The errno with which this address is refused; 0 when it was reached or did not answer in a
 * second. */
int self_test_reach(const struct sockaddr_storage *address, socklen_t length, int type);

/* self_test_privilege.c */
self_test_function check_drop_identity, check_no_root_again, check_no_new_namespace, check_no_mount,
    check_no_io_uring, check_no_device_node, check_system_not_writable, check_cgroup_locked,
    check_agent_memory;

/* self_test_network.c */
self_test_function check_no_network_device, check_no_vsock, check_no_packet_socket,
    check_no_raw_socket, check_no_netfilter_socket, check_no_tcp_outside, check_no_udp_outside;

/* self_test_wsl.c */
self_test_function check_no_live_listener, check_windows_hidden, check_no_windows_executable;

/* self_test_relay.c */
self_test_function check_no_egress_without_login, check_broker_answers, check_dns_answers_nxdomain;

#endif
