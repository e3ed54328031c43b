# Unit tests of codev-sandbox's parts that need no process and no virtual machine.
SANDBOX_UNIT_TESTS := sandbox_accelerator_linux sandbox_console sandbox_control_event \
	sandbox_json_merge \
	sandbox_mount_check sandbox_mount_spec sandbox_options sandbox_output_linux sandbox_run_folder \
	sandbox_set_uid_filter_linux sandbox_tick_rate sandbox_timeline sandbox_way_in_connection sandbox_wsl
UNIT_TESTS += $(SANDBOX_UNIT_TESTS)
$(foreach test,$(SANDBOX_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(filter %/$(test:sandbox_%=%).c,$(SANDBOX_SRCS)) $(COMMON_SRCS)))
unit_sandbox_control_event_SRCS += qemu-harness/launcher/guest/control.c
unit_sandbox_wsl_SRCS += qemu-harness/launcher/host/processes_linux.c \
	qemu-harness/launcher/host/programs_linux.c
unit_sandbox_mount_check_SRCS += qemu-harness/launcher/folders/mount_spec.c

UNIT_TESTS += network_hardware
unit_network_hardware_SRCS := test/unit/init/machine/test_network_hardware.c \
	init/machine/network_hardware.c $(COMMON_SRCS)
