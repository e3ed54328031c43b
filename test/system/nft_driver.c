/* Loads the firewall in the network namespace it is started in and tells what happens, one line an event,
 * so that a test can play the other programs. Commands come as lines on standard input:
 *
 *     check   waits up to 10 s for the watch to be readable, then looks: intact, restored: WHY, lost: WHY
 *     look    looks at once
 *     state   owner=0|1 reject=0|1
 *
 * End of input closes the firewall. Exit status: 0, or 1 when it could not be loaded ("failed: WHY").
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "nft/firewall.h"

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
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (strcmp(line, "check\n") == 0)
            wait_and_look(&firewall);
        else if (strcmp(line, "look\n") == 0)
            look(&firewall);
        else if (strcmp(line, "state\n") == 0)
            printf("owner=%d reject=%d\n", firewall.has_owner, firewall.has_reject);
    }
    nft_firewall_close(&firewall);
    return 0;
}
