# The agent's only parser.
FUZZ_TARGETS += dns
fuzz_dns_SRCS := test/fuzz/fuzz_dns.c agent/dns.c
