/* Pipes and terminals between init and the server. */
#ifndef INIT_SERVER_SERVER_STDIO_H
#define INIT_SERVER_SERVER_STDIO_H

#include "init/config/boot_config.h"
#include "init/machine/account.h"

struct server_stdio_pair {
    int ours[3];   /* input, output, error; -1 where there is none. Non-blocking */
    int theirs[3]; /* become descriptors 0 to 2 */
};

/* Makes both ends. Theirs belong to the account, so that /dev/stdin, /dev/stdout and /dev/stderr
 * can be opened again by name. Mode `log` reads from /dev/null. 0 or a negative errno; then nothing
 * is open. */
int server_stdio_make(struct server_stdio_pair *pair, const struct boot_server *server,
                      const struct account *account, struct failure *why);

void server_stdio_close(int fds[3]);

#endif
