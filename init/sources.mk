# PID 1 of the guest. First the stages and the server's life, then the walls: what each stage
# builds.
INIT_MAIN := init/main.c
INIT_SRCS := init/stage.c init/start.c init/phase.c init/host/control.c init/host/control_dial.c \
	init/host/control_stdio.c init/host/events.c init/server/log_buffer.c \
	init/command.c init/config/schema.c init/config/boot_config.c init/config/boot_config_check.c \
	init/config/boot_config_relay.c \
	init/relay/relay_start.c init/relay/relay_listen.c init/system/child_execute.c \
	init/system/restart.c init/system/signals.c init/server/server.c init/server/server_io.c \
	init/server/server_stdio.c init/supervise.c \
	init/shutdown.c init/system/fixed_heap.c init/system/libmnl_shim.c
INIT_SRCS += init/machine/base.c init/system/sysctl.c init/machine/machine.c \
	init/machine/hostname.c init/machine/account.c init/machine/account_files.c \
	init/folders/mounts.c init/folders/mount_types.c init/system/mount_target.c \
	init/system/mount_api.c init/folders/gitconfig.c init/machine/network.c \
	init/machine/network_hardware.c \
	init/machine/cgroups.c init/walls/drop.c init/walls/drop_verify.c init/system/empty_root.c \
	init/walls/seccomp.c init/system/child_wait.c \
	init/walls/dropped_child.c init/server/environment.c init/server/upstream_url.c \
	init/server/tool_files.c init/server/sandbox_file.c \
	init/server/permissions.c init/server/permissions_text.c init/proof/self_test.c \
	init/proof/self_test_privilege.c \
	init/proof/self_test_network.c init/proof/self_test_relay.c
# WSL: the process outside the sandbox, and what differs inside it.
INIT_SRCS += init/outside.c init/outside_serve.c init/wsl/wsl_link.c init/wsl/wsl_progress.c \
	init/wsl/wsl_mount.c \
	init/wsl/wsl_cgroups.c init/relay/relay_folder.c init/proof/wsl_witness.c init/start_wsl.c \
	init/proof/self_test_wsl.c
