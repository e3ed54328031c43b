/* Routing: which upstream a request is for, or why it is refused. */
#ifndef HOST_BROKER_SERVE_ROUTE_INTERNAL_H
#define HOST_BROKER_SERVE_ROUTE_INTERNAL_H

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
    char text[BROKER_ERROR_MESSAGE_MAX]; /* holds a `message` that was put together */
};

/* 0, or -EACCES and *refusal. Name and rest of *out are set as far as they are known, for the log.
 * Checked in this order: the target, the name, an upgrade, the login, --gateway-allow. */
int route_find(struct route *out, struct broker *broker, const struct request_head *head,
               struct refusal *refusal);

#endif
