/* Routes a request by the first segment of its path. */
#include "host-broker/serve/route_internal.h"

#include <errno.h>
#include <stdio.h>

#include "host-broker/http/url_reference.h"

static int refuse(struct refusal *refusal, enum broker_error error, const char *message,
                  const char *rule)
{
    refusal->error = error;
    refusal->message = message;
    refusal->rule = rule;
    return -EACCES;
}

/* A redirect to a host without a rule is rewritten to /_undeclared/HOST: the answer names the
 * missing rule. */
static int refuse_undeclared(const struct target *target, struct refusal *refusal)
{
    char host[UPSTREAM_ORIGIN_MAX];
    if (url_reference_undeclared_host(target, host, sizeof(host)) < 0)
        return refuse(refusal, BROKER_ERROR_NO_RULE, NULL, NULL);
    snprintf(refusal->text, sizeof(refusal->text), "no rule for https://%s: add one", host);
    return refuse(refusal, BROKER_ERROR_NO_RULE, refusal->text, NULL);
}

static int find_by_name(struct route *out, struct broker *broker, struct refusal *refusal)
{
    struct slice name = out->target.name;
    if (slice_equal(name, SLICE_LITERAL(TARGET_UNDECLARED)))
        return refuse_undeclared(&out->target, refusal);
    if (slice_equal(name, SLICE_LITERAL(TARGET_GATEWAY))) {
        out->kind = ROUTE_GATEWAY;
        out->name = TARGET_GATEWAY;
        out->url = &broker->options.gateway;
        return 0;
    }
    out->rule = rules_find(&broker->rules, name);
    if (!out->rule)
        return refuse(refusal, BROKER_ERROR_UNKNOWN_NAME, NULL, NULL);
    out->kind = ROUTE_NAMED;
    out->name = out->rule->name;
    out->url = &out->rule->url;
    return 0;
}

/* True when only paths below a prefix may be reached, that of the upstream's URL or those of
 * --gateway-allow. */
static bool is_held(const struct route *route, const struct broker_options *options)
{
    return route->url->prefix_length > 0 ||
           (route->kind == ROUTE_GATEWAY && options->gateway_allow_count > 0);
}

int route_find(struct route *out, struct broker *broker, const struct request_head *head,
               struct refusal *refusal)
{
    enum target_fault fault = TARGET_FAULT_NONE;
    *out = (struct route){.name = ""};
    if (target_parse(&out->target, head->method, head->target, &fault) < 0)
        return refuse(refusal, target_fault_kinds[fault].error, target_fault_kinds[fault].reason,
                      NULL);
    int result = find_by_name(out, broker, refusal);
    if (result < 0)
        return result;
    if (is_held(out, &broker->options)) {
        fault = target_check_held_path(out->target.rest);
        if (fault != TARGET_FAULT_NONE)
            return refuse(refusal, target_fault_kinds[fault].error,
                          target_fault_kinds[fault].reason, out->name);
    }
    if (head->upgrade)
        return refuse(refusal, BROKER_ERROR_UPGRADE, NULL, out->name);
    if (!broker_logged_in(broker, false))
        return refuse(refusal, BROKER_ERROR_NO_LOGIN, NULL, out->name);
    if (out->kind == ROUTE_GATEWAY &&
        !options_gateway_allows(&broker->options, head->method, out->target.rest))
        return refuse(refusal, BROKER_ERROR_NOT_ALLOWED, NULL, out->name);
    return 0;
}
