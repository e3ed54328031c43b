# load: the client and the server of measurements; in the guest without TLS.
BENCH_SRCS := \
    test/bench/load/client.c \
    test/bench/load/copy.c \
    test/bench/load/hold.c \
    test/bench/load/main.c \
    test/bench/load/server.c
BENCH_HOST_SRCS := test/bench/load/channel_tls.c
BENCH_GUEST_SRCS := test/bench/load/channel_plain.c
BENCH_LIBS := -lssl -lcrypto

# count: QEMU's plugin that counts a guest's instructions.
BENCH_COUNT_SRCS := test/bench/count/count.c
