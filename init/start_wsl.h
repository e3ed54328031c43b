/* The functions of the stages that differ in WSL. */
#ifndef INIT_START_WSL_H
#define INIT_START_WSL_H

#include "init/stage.h"

stage_function start_wsl_base, start_wsl_mounts, start_wsl_network, start_wsl_cgroups,
    start_wsl_relay, start_wsl_self_test;

#endif
