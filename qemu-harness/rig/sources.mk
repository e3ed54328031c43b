# rig: the guest side of the WSL rig (rig.h).
RIG_MAIN := qemu-harness/rig/main.c
RIG_SRCS := \
    qemu-harness/rig/channel.c \
    qemu-harness/rig/distribution.c \
    qemu-harness/rig/drvfs.c \
    qemu-harness/rig/execution.c \
    qemu-harness/rig/processes.c \
    qemu-harness/rig/rules.c \
    qemu-harness/rig/stand_ins.c \
    qemu-harness/rig/unrule.c \
    qemu-harness/rig/windows_executable.c
