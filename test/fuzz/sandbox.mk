# Fuzz targets of codev-sandbox: what a guest says, what a user writes.
FUZZ_TARGETS += sandbox_control sandbox_merge sandbox_mount
fuzz_sandbox_control_SRCS := test/fuzz/fuzz_sandbox_control.c qemu-harness/control.c qemu-harness/control_event.c \
	qemu-harness/output_linux.c $(COMMON_SRCS)
fuzz_sandbox_merge_SRCS := test/fuzz/fuzz_sandbox_merge.c qemu-harness/json_merge.c $(COMMON_SRCS)
fuzz_sandbox_mount_SRCS := test/fuzz/fuzz_sandbox_mount.c qemu-harness/mount_spec.c $(COMMON_SRCS)
