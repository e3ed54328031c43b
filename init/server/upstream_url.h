/* The URLs under which the guest reaches allowed upstreams. */
#ifndef INIT_SERVER_UPSTREAM_URL_H
#define INIT_SERVER_UPSTREAM_URL_H

#include "init/config/boot_config.h"

#define UPSTREAM_URL_MAX (RULE_NAME_MAX + 32)

/* True when there is a relay and the name is among its egress names. */
bool upstream_is_allowed(const struct boot_config *config, const char *name);

/* http://127.0.0.1:PORT/NAME, without a slash at the end. */
void upstream_url(char out[UPSTREAM_URL_MAX], const struct boot_config *config, const char *name);

#endif
