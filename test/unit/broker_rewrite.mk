# Unit tests of what rewrites links in answers.
BROKER_REWRITE_UNIT_TESTS := link_field rewrite_etag rewrite_html rewrite_json rewrite_link \
	rewrite_route
UNIT_TESTS += $(BROKER_REWRITE_UNIT_TESTS)
$(foreach test,$(BROKER_REWRITE_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call \
	unit_source,$(test)) \
    $(BROKER_PARSER_SRCS) $(COMMON_SRCS)))
UNIT_TESTS += rewrite_gzip
unit_rewrite_gzip_SRCS := test/unit/host-broker/rewrite/test_rewrite_gzip.c \
	host-broker/rewrite/rewrite_gzip.c
