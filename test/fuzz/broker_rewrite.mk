# Fuzz targets of what rewrites links in answers.
BROKER_REWRITE_FUZZ_TARGETS := link_field rewrite_html rewrite_json
FUZZ_TARGETS += $(BROKER_REWRITE_FUZZ_TARGETS)
$(foreach target,$(BROKER_REWRITE_FUZZ_TARGETS),$(eval fuzz_$(target)_SRCS := \
	test/fuzz/fuzz_$(target).c \
    $(BROKER_PARSER_SRCS) $(COMMON_SRCS)))
