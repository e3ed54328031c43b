# Unit tests of common/. Each is linked with all of it; what a test does not use costs nothing.
COMMON_UNIT_TESTS := child_linux encoding endpoint endpoint_socket escape failure guest_path io \
    json json_string json_suite json_writer line_buffer number piece preface \
    seccomp_filter_linux secret utf8
UNIT_TESTS += $(COMMON_UNIT_TESTS)
$(foreach test,$(COMMON_UNIT_TESTS),\
    $(eval unit_$(test)_SRCS := $(call unit_source,$(test)) $(COMMON_SRCS)))
