# codev-sandbox: the reference for what an app on the host does, and what the tests drive.
SANDBOX_MAIN := qemu-harness/main.c
SANDBOX_SRCS := \
    qemu-harness/accelerator_linux.c \
    qemu-harness/boot_config.c \
    qemu-harness/broker.c \
    qemu-harness/console.c \
    qemu-harness/control.c \
    qemu-harness/control_event.c \
    qemu-harness/events.c \
    qemu-harness/file_server_linux.c \
    qemu-harness/guest_memory_linux.c \
    qemu-harness/identity_linux.c \
    qemu-harness/json_merge.c \
    qemu-harness/mount_check.c \
    qemu-harness/mount_spec.c \
    qemu-harness/options.c \
    qemu-harness/output_linux.c \
    qemu-harness/processes_linux.c \
    qemu-harness/programs_linux.c \
    qemu-harness/qemu.c \
    qemu-harness/run_folder.c \
    qemu-harness/sandbox.c \
    qemu-harness/sandbox_control.c \
    qemu-harness/sandbox_loop.c \
    qemu-harness/sandbox_signals_linux.c \
    qemu-harness/sandbox_start.c \
    qemu-harness/set_uid_filter_linux.c \
    qemu-harness/terminal.c \
    qemu-harness/tick_rate.c \
    qemu-harness/timeline.c \
    qemu-harness/vsock.c \
    qemu-harness/vsock_linux.c \
    qemu-harness/way_in.c \
    qemu-harness/way_in_connection.c \
    qemu-harness/wsl.c
# loaded into vhost-device-vsock
VSOCK_FIXES_SRCS := qemu-harness/vsock_device_fixes_linux.c
SANDBOX_LIBS :=
