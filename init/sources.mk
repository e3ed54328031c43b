# PID 1 of the guest. First the stages and the server's life, then the walls: what each stage builds.
INIT_MAIN := init/main.c
INIT_SRCS := init/stage.c init/start.c init/control.c init/control_dial.c init/control_stdio.c init/events.c init/log_buffer.c \
	init/command.c init/schema.c init/boot_config.c init/boot_config_check.c init/boot_config_relay.c \
	init/relay_start.c init/relay_listen.c init/child_execute.c init/restart.c init/server.c init/server_io.c init/server_stdio.c init/supervise.c \
	init/shutdown.c init/fixed_heap.c init/libmnl_shim.c
INIT_SRCS += init/base.c init/sysctl.c init/machine.c init/hostname.c init/account.c init/account_files.c \
	init/mounts.c init/mount_types.c init/mount_target.c init/mount_api.c init/gitconfig.c init/network.c init/network_hardware.c \
	init/cgroups.c init/drop.c init/drop_verify.c init/empty_root.c init/seccomp.c init/child_wait.c \
	init/dropped_child.c init/environment.c init/upstream_url.c init/tool_files.c init/sandbox_file.c \
	init/permissions.c init/permissions_text.c init/self_test.c init/self_test_privilege.c \
	init/self_test_network.c init/self_test_relay.c
# WSL: the process outside the sandbox, and what differs inside it.
INIT_SRCS += init/wsl.c init/wsl_link.c init/wsl_outside.c init/wsl_witness.c init/wsl_room.c init/wsl_mount.c \
	init/wsl_cgroups.c init/start_wsl.c init/self_test_wsl.c
