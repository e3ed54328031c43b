# Unit tests of codev-sandbox's parts that need no process and no virtual machine.
SANDBOX_UNIT_TESTS := sandbox_accelerator_linux sandbox_console sandbox_control \
	sandbox_json_overlay \
	sandbox_mount_check sandbox_mount_spec sandbox_options sandbox_output sandbox_run_folder \
	sandbox_set_uid_filter_linux sandbox_tick_rate sandbox_timeline sandbox_way_in_connection
UNIT_TESTS += $(SANDBOX_UNIT_TESTS)
$(foreach test,$(SANDBOX_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(filter %/$(test:sandbox_%=%).c,$(SANDBOX_SRCS)) $(COMMON_SRCS)))
unit_sandbox_output_SRCS += qemu-harness/launcher/host/descriptors_linux.c
unit_sandbox_mount_check_SRCS += qemu-harness/launcher/folders/mount_spec.c

UNIT_TESTS += wsl_machine
unit_wsl_machine_SRCS := $(call unit_source,wsl_machine) $(SANDBOX_WSL_SRCS) $(COMMON_SRCS) \
	$(addprefix qemu-harness/launcher/host/,processes_linux.c programs_linux.c run_folder.c)
