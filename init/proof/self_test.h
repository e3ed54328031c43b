/* Stage `self-test`: a child with the rights of the server tries to get out. */
#ifndef INIT_PROOF_SELF_TEST_H
#define INIT_PROOF_SELF_TEST_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/host/events.h"
#include "init/machine/account.h"
#include "init/wsl/wsl_link.h"

/* Runs all checks that apply to this sandbox. The memory and environment of agent_pid must be out
 * of reach. With a relay, port 8788 must give an answer of the broker within 15 s: GET / gives 404,
 * or 503 without a login, with a codev_ error that is not the relay's own 502. -EPERM with the
 * first failed check in `why`; the report is complete either way. Blocks for a limited time. */
int self_test_run(const struct boot_config *config, const struct account *account, int cgroup_fd,
                  pid_t agent_pid, const struct wsl_witness *witnesses, unsigned witness_count,
                  struct check_report *report, struct failure *why);

#endif
