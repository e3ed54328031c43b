# Both ends of TLS between relay and broker.
FUZZ_TARGETS += tls
fuzz_tls_SRCS := test/fuzz/fuzz_tls.c host-broker/keys/tls.c $(COMMON_SRCS)
