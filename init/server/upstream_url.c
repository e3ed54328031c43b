/* URLs of allowed upstreams: all are paths on the relay's own port on loopback. */
#include "init/server/upstream_url.h"

#include <stdio.h>
#include <string.h>

bool upstream_is_allowed(const struct boot_config *config, const char *name)
{
    for (unsigned i = 0; config->relay.present && i < config->egress_count; i++) {
        if (strcmp(config->egress[i], name) == 0)
            return true;
    }
    return false;
}

void upstream_url(char out[UPSTREAM_URL_MAX], const struct boot_config *config, const char *name)
{
    snprintf(out, UPSTREAM_URL_MAX, "http://127.0.0.1:%u/%.*s", config->relay.listen, RULE_NAME_MAX,
             name);
}
