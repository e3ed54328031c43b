# Fuzz targets of what scripts, environment and desktop say about proxies; seeds in
# test/fuzz/corpus/NAME.
BROKER_PROXY_FUZZ_TARGETS := no_proxy pac_script proxy_list
FUZZ_TARGETS += $(BROKER_PROXY_FUZZ_TARGETS)
$(foreach target,$(BROKER_PROXY_FUZZ_TARGETS),$(eval fuzz_$(target)_SRCS := \
	test/fuzz/fuzz_$(target).c \
    $(BROKER_PARSER_SRCS) $(COMMON_SRCS)))
