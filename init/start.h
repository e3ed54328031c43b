/* The functions of the stages. */
#ifndef INIT_START_H
#define INIT_START_H

#include "init/stage.h"

stage_function start_base, start_config, start_clock, start_hostname, start_account, start_mounts,
    start_network, start_firewall, start_cgroups, start_relay, start_self_test, start_server;

#endif
