# codev-sandbox: the reference for what an app on the host does, and what the tests drive.
SANDBOX_MAIN := qemu-harness/launcher/main.c
SANDBOX_SRCS := \
    qemu-harness/launcher/broker/broker.c \
    qemu-harness/launcher/folders/file_server_linux.c \
    qemu-harness/launcher/folders/identity_linux.c \
    qemu-harness/launcher/folders/mount_check.c \
    qemu-harness/launcher/folders/mount_spec.c \
    qemu-harness/launcher/folders/set_uid_filter_linux.c \
    qemu-harness/launcher/guest/boot_config.c \
    qemu-harness/launcher/guest/control.c \
    qemu-harness/launcher/guest/events.c \
    qemu-harness/launcher/guest/json_overlay.c \
    qemu-harness/launcher/guest/output.c \
    qemu-harness/launcher/guest/terminal.c \
    qemu-harness/launcher/guest/timeline.c \
    qemu-harness/launcher/guest/way_in.c \
    qemu-harness/launcher/guest/way_in_connection.c \
    qemu-harness/launcher/host/descriptors_linux.c \
    qemu-harness/launcher/host/options.c \
    qemu-harness/launcher/host/processes_linux.c \
    qemu-harness/launcher/host/programs_linux.c \
    qemu-harness/launcher/host/run_folder.c \
    qemu-harness/launcher/machine/accelerator_linux.c \
    qemu-harness/launcher/machine/console.c \
    qemu-harness/launcher/machine/guest_memory_linux.c \
    qemu-harness/launcher/machine/qemu.c \
    qemu-harness/launcher/machine/tick_rate.c \
    qemu-harness/launcher/machine/vsock.c \
    qemu-harness/launcher/machine/vsock_linux.c \
    qemu-harness/launcher/run/launcher.c \
    qemu-harness/launcher/run/loop.c \
    qemu-harness/launcher/run/sandbox.c \
    qemu-harness/launcher/run/signals_linux.c \
    qemu-harness/launcher/run/start.c
# loaded into vhost-device-vsock
VSOCK_FIXES_SRCS := qemu-harness/launcher/machine/vsock_device_fixes_linux.c
SANDBOX_LIBS :=
