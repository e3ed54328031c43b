# rig: the guest side of the WSL rig (rig.h).
RIG_MAIN := qemu-harness/wsl-rig/main.c
RIG_SRCS := \
    qemu-harness/wsl-rig/channel.c \
    qemu-harness/wsl-rig/distribution.c \
    qemu-harness/wsl-rig/drvfs.c \
    qemu-harness/wsl-rig/execution.c \
    qemu-harness/wsl-rig/processes.c \
    qemu-harness/wsl-rig/rules.c \
    qemu-harness/wsl-rig/stand_ins.c \
    qemu-harness/wsl-rig/unrule.c \
    qemu-harness/wsl-rig/windows_executable.c
# codev-sandbox-wsl: the launcher's own sources with the rig as the machine, for tests.
SANDBOX_WSL_MAIN := qemu-harness/wsl-rig/launcher/main.c
SANDBOX_WSL_SRCS := qemu-harness/wsl-rig/launcher/wsl_machine.c
