# Unit tests of host-broker/'s parsers, policy and configuration. Each is linked with all of them
# and common/.
BROKER_UNIT_TESTS := body_decoder broker_error field header_policy http_suite location options \
	request_head \
    response_head rules rules_file rules_index rules_suite target token_text upstream_url \
	url_reference
UNIT_TESTS += $(BROKER_UNIT_TESTS)
$(foreach test,$(BROKER_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(BROKER_PARSER_SRCS) \
    $(COMMON_SRCS)))
