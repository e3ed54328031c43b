/* Loads the firewall in the network namespace in which it is started and prints a line for each
 * event, for tests in which other programs change the rules. Commands are lines of standard input:
 *
 *     check   waits up to 10 s for the watch to be readable, then looks: intact, restored: WHY,
 *             lost: WHY
 *     look    looks at once
 *     state   owner=0|1 reject=0|1
 *     disown  gives up owning the table, as on a kernel before 5.12: removes it, then looks
 *
 * End of input closes the firewall. Exit status: 0, or 1 when it could not be loaded
 * ("failed: WHY").
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <linux/netfilter/nf_tables.h>

#include "nft/batch.h"
#include "nft/commit.h"
#include "nft/firewall.h"
#include "nft/policy.h"

#define CHECK_TIMEOUT_MS 10000

static void look(struct firewall *firewall)
{
    struct failure why = {""};
    enum firewall_event event;
    int result = nft_firewall_check(firewall, &event, &why);
    if (event == FIREWALL_INTACT)
        printf("intact\n");
    else
        printf("%s: %s\n", firewall_event_names[event], why.text);
    if ((result < 0) != (event == FIREWALL_LOST))
        printf("result %d contradicts the event\n", result);
}

static void wait_and_look(struct firewall *firewall)
{
    struct pollfd watch = {.fd = nft_firewall_watch_fd(firewall), .events = POLLIN};
    if (poll(&watch, 1, CHECK_TIMEOUT_MS) == 1)
        look(firewall);
    else
        printf("no notification\n");
}

/* Only the owner may remove the table, and to the kernel the owner is the socket. */
static void disown(struct firewall *firewall)
{
    struct batch batch;
    struct commit_refusal refusal;
    batch_begin(&batch, firewall->sequence);
    batch_message(&batch, NFT_MSG_DELTABLE, 0, "the table", FEATURE_NONE);
    batch_put_string(&batch, NFTA_TABLE_NAME, POLICY_TABLE);
    if (batch_end(&batch) < 0 || commit_batch(firewall->owner, &batch, &refusal) < 0)
        printf("cannot remove the table: %d\n", refusal.error);
    firewall->sequence += batch.count;
    firewall->has_owner = false;
    look(firewall);
}

int main(void)
{
    struct firewall firewall;
    struct failure why = {""};
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (nft_firewall_load(&firewall, &why) < 0) {
        printf("failed: %s\n", why.text);
        return 1;
    }
    printf("loaded\n");
    while (fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "check\n") == 0)
            wait_and_look(&firewall);
        else if (strcmp(line, "look\n") == 0)
            look(&firewall);
        else if (strcmp(line, "disown\n") == 0)
            disown(&firewall);
        else if (strcmp(line, "state\n") == 0)
            printf("owner=%d reject=%d\n", firewall.has_owner, firewall.has_reject);
    }
    nft_firewall_close(&firewall);
    return 0;
}
