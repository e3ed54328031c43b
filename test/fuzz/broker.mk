# Fuzz targets of host-broker/'s parsers and policy; seeds in test/fuzz/corpus/NAME.
BROKER_FUZZ_TARGETS := body_decoder header_policy location request_head rules target
FUZZ_TARGETS += $(BROKER_FUZZ_TARGETS)
$(foreach target,$(BROKER_FUZZ_TARGETS),$(eval fuzz_$(target)_SRCS := test/fuzz/fuzz_$(target).c \
    $(BROKER_PARSER_SRCS) $(COMMON_SRCS)))
# What decides about requests is fuzzed longer than the rest.
FUZZ_LONG += $(BROKER_FUZZ_TARGETS)
