# Unit tests of init/ that need no machine of their own: its pure parts, and the control channel over socket pairs.
INIT_UNIT_TESTS := format boot_config boot_config_check log_buffer restart stage control control_stdio server_io
UNIT_TESTS += $(INIT_UNIT_TESTS)
BOOT_CONFIG_SRCS := init/boot_config.c init/boot_config_check.c init/boot_config_relay.c init/schema.c init/stage.c
unit_format_SRCS := test/unit/test_format.c common/format.c
unit_boot_config_SRCS := test/unit/test_boot_config.c $(BOOT_CONFIG_SRCS) $(COMMON_SRCS)
unit_boot_config_check_SRCS := test/unit/test_boot_config_check.c $(BOOT_CONFIG_SRCS) $(COMMON_SRCS)
unit_log_buffer_SRCS := test/unit/test_log_buffer.c init/log_buffer.c
unit_restart_SRCS := test/unit/test_restart.c init/restart.c
unit_stage_SRCS := test/unit/test_stage.c init/stage.c common/failure.c common/io.c
CONTROL_SRCS := init/control.c init/control_dial.c init/control_stdio.c init/events.c $(COMMON_SRCS)
unit_control_SRCS := test/unit/test_control.c $(CONTROL_SRCS)
unit_control_stdio_SRCS := test/unit/test_control_stdio.c $(CONTROL_SRCS)
unit_server_io_SRCS := test/unit/test_server_io.c init/server_io.c init/log_buffer.c $(CONTROL_SRCS)
