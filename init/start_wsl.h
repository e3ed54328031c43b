/* What each stage of a start in WSL does where it differs from a machine's (start.h). */
#ifndef INIT_START_WSL_H
#define INIT_START_WSL_H

#include "init/stage.h"

stage_function start_wsl_base, start_wsl_mounts, start_wsl_network, start_wsl_cgroups,
    start_wsl_relay, start_wsl_self_test;

#endif
