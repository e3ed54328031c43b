/* Inside options: one parser for each kind of value on the command line. Each stores into *options and
 * returns 0, or -EINVAL with a reason that does not name the option (options_parse does). */
#ifndef HOST_BROKER_CONFIG_OPTIONS_INTERNAL_H
#define HOST_BROKER_CONFIG_OPTIONS_INTERNAL_H

#include "host-broker/config/options.h"

int options_set_listen(struct broker_options *options, const char *value, struct failure *why);
int options_set_peer_cid(struct broker_options *options, const char *value, struct failure *why);
int options_set_gateway_url(struct broker_options *options, const char *value, struct failure *why);
int options_set_token_file(struct broker_options *options, const char *value, struct failure *why);
int options_set_gateway_auth(struct broker_options *options, const char *value,
                             struct failure *why);
int options_set_gateway_allow(struct broker_options *options, const char *value,
                              struct failure *why);
int options_set_rules(struct broker_options *options, const char *value, struct failure *why);
int options_set_app_data(struct broker_options *options, const char *value, struct failure *why);
int options_set_guest_url(struct broker_options *options, const char *value, struct failure *why);
int options_set_ca_file(struct broker_options *options, const char *value, struct failure *why);
int options_set_proxy(struct broker_options *options, const char *value, struct failure *why);
int options_set_pac_mandatory(struct broker_options *options, const char *value,
                              struct failure *why);
int options_set_proxy_auth_host(struct broker_options *options, const char *value,
                                struct failure *why);
int options_set_max_requests(struct broker_options *options, const char *value,
                             struct failure *why);
int options_set_max_connections(struct broker_options *options, const char *value,
                                struct failure *why);
int options_set_idle_timeout(struct broker_options *options, const char *value,
                             struct failure *why);
int options_set_log(struct broker_options *options, const char *value, struct failure *why);
int options_set_check(struct broker_options *options, const char *value, struct failure *why);

#endif
