# Fuzz targets of codev-sandbox: what a guest says, what a user writes.
FUZZ_TARGETS += sandbox_control sandbox_merge sandbox_mount
fuzz_sandbox_control_SRCS := test/fuzz/fuzz_sandbox_control.c \
	qemu-harness/launcher/guest/control.c qemu-harness/launcher/guest/output.c \
	qemu-harness/launcher/host/descriptors_linux.c $(COMMON_SRCS)
fuzz_sandbox_merge_SRCS := test/fuzz/fuzz_sandbox_merge.c \
	qemu-harness/launcher/guest/json_overlay.c $(COMMON_SRCS)
fuzz_sandbox_mount_SRCS := test/fuzz/fuzz_sandbox_mount.c \
	qemu-harness/launcher/folders/mount_spec.c $(COMMON_SRCS)
