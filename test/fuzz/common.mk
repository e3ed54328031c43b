# Fuzz targets of common/; seeds in test/fuzz/corpus/NAME.
COMMON_FUZZ_TARGETS := encoding endpoint escape json line_buffer preface
FUZZ_TARGETS += $(COMMON_FUZZ_TARGETS)
$(foreach target,$(COMMON_FUZZ_TARGETS),$(eval fuzz_$(target)_SRCS := test/fuzz/fuzz_$(target).c \
	$(COMMON_SRCS)))
