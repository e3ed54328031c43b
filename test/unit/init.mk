# Unit tests of init/ that need no machine of their own: its pure parts, and the control channel
# over socket pairs.
INIT_UNIT_TESTS := boot_config log_buffer restart stage control control_stdio server_io clock
UNIT_TESTS += $(INIT_UNIT_TESTS)
BOOT_CONFIG_SRCS := init/config/boot_config.c init/config/schema.c
unit_boot_config_SRCS := test/unit/init/config/test_boot_config.c $(BOOT_CONFIG_SRCS) $(COMMON_SRCS)
unit_log_buffer_SRCS := test/unit/init/server/test_log_buffer.c init/server/log_buffer.c
unit_restart_SRCS := test/unit/init/system/test_restart.c init/system/restart.c
unit_stage_SRCS := test/unit/init/test_stage.c init/stage.c common/os/failure.c common/os/io.c
CONTROL_SRCS := init/host/control.c init/host/control_dial.c init/host/control_stdio.c \
	init/host/events.c $(COMMON_SRCS)
unit_clock_SRCS := test/unit/init/machine/test_clock.c init/machine/machine.c \
	init/machine/hostname.c $(COMMON_SRCS)
unit_control_SRCS := test/unit/init/host/test_control.c $(CONTROL_SRCS)
unit_control_stdio_SRCS := test/unit/init/host/test_control_stdio.c $(CONTROL_SRCS)
unit_server_io_SRCS := test/unit/init/server/test_server_io.c init/server/server_io.c \
	init/server/log_buffer.c $(CONTROL_SRCS)

UNIT_TESTS += network_hardware
unit_network_hardware_SRCS := test/unit/init/machine/test_network_hardware.c \
	init/machine/network_hardware.c $(COMMON_SRCS)
