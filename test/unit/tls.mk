# Unit tests of TLS between relay and broker: pins, and the two real ends against each other.
UNIT_TESTS += tls_pin tls_link
unit_tls_pin_SRCS := test/unit/common/net/test_tls_pin.c $(COMMON_SRCS)
unit_tls_link_SRCS := test/unit/common/net/test_tls_link.c test/harness/tls_pair.c agent/tls.c \
	host-broker/keys/tls.c $(COMMON_SRCS)
