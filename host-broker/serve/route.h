/* Where a request goes, or why it goes nowhere. */
#ifndef HOST_BROKER_SERVE_ROUTE_H
#define HOST_BROKER_SERVE_ROUTE_H

#include "host-broker/http/broker_error.h"
#include "host-broker/http/request_head.h"
#include "host-broker/http/target.h"
#include "host-broker/serve/broker.h"

struct route {
    enum route_kind kind;
    const char *name;               /* "gateway" or the rule's */
    const struct rule *rule;        /* NULL for the gateway */
    const struct upstream_url *url; /* the upstream's base */
    struct target target;           /* slices into the request's head */
};

/* The broker's own answer to a request. */
struct refusal {
    enum broker_error error;
    const char *message;                 /* NULL: the table's */
    const char *rule;                    /* NULL: none known */
    char text[BROKER_ERROR_MESSAGE_MAX]; /* what `message` points to when it was made up */
};

/* 0, or -EACCES and *refusal. Name and rest of *out are set as far as they are known, for the log. The
 * order: what is refused on every route, then the name, then the login, then --gateway-allow. */
int route_find(struct route *out, struct broker *broker, const struct request_head *head,
               struct refusal *refusal);

#endif
