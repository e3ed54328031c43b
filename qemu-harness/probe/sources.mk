# probe: what tests and the tour run inside a sandbox.
PROBE_MAIN := qemu-harness/probe/main.c
PROBE_SRCS := \
    qemu-harness/probe/abstract.c \
    qemu-harness/probe/breakout.c \
    qemu-harness/probe/breakout_bombs.c \
    qemu-harness/probe/breakout_files.c \
    qemu-harness/probe/breakout_identity.c \
    qemu-harness/probe/breakout_mounts.c \
    qemu-harness/probe/breakout_processes.c \
    qemu-harness/probe/breakout_relay.c \
    qemu-harness/probe/breakout_sockets.c \
    qemu-harness/probe/deny.c \
    qemu-harness/probe/file_operations.c \
    qemu-harness/probe/file_tree.c \
    qemu-harness/probe/http.c \
    qemu-harness/probe/http_answer.c \
    qemu-harness/probe/kernel.c \
    qemu-harness/probe/network.c \
    qemu-harness/probe/others.c \
    qemu-harness/probe/privilege.c \
    qemu-harness/probe/process.c \
    qemu-harness/probe/report.c \
    qemu-harness/probe/round.c \
    qemu-harness/probe/server.c \
    qemu-harness/probe/spoil.c \
    qemu-harness/probe/traffic.c
