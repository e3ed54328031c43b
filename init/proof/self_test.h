/* Stage `self-test`: a child that has dropped exactly as the server will tries to get out. */
#ifndef INIT_PROOF_SELF_TEST_H
#define INIT_PROOF_SELF_TEST_H

#include <sys/types.h>

#include "init/config/boot_config.h"
#include "init/host/events.h"
#include "init/machine/account.h"
#include "init/wsl/wsl_link.h"

/* Runs all checks of design section 4.9 that fit this sandbox; agent_pid's memory and environment
 * must be out of reach; with a relay, 8788 must answer with the broker's own answer within 15 s
 * (GET / gives 404, or 503 while the login is away, with a codev_ error that is not the agent's own
 * 502). -EPERM with the first wrong check in `why`; the report is complete either way. Blocks until
 * done (bounded). */
int self_test_run(const struct boot_config *config, const struct account *account, int cgroup_fd,
                  pid_t agent_pid, const struct wsl_witness *witnesses, unsigned witness_count,
                  struct check_report *report, struct failure *why);

#endif
