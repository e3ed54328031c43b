# Unit tests of host-broker/'s parsers, policy and configuration. Each is linked with all of them and common/.
BROKER_PARSER_SRCS := host-broker/body_decoder.c host-broker/broker_error.c host-broker/chunk_encoder.c \
    host-broker/field.c host-broker/header_policy.c host-broker/location.c host-broker/options.c \
    host-broker/options_value.c host-broker/request_head.c host-broker/request_scan.c host-broker/response_head.c \
    host-broker/rules.c host-broker/rules_file.c host-broker/target.c host-broker/token_text.c \
    host-broker/upstream_url.c
BROKER_UNIT_TESTS := body_decoder broker_error field header_policy http_suite location options request_head \
    response_head rules rules_file rules_suite target token_text upstream_url
UNIT_TESTS += $(BROKER_UNIT_TESTS)
$(foreach test,$(BROKER_UNIT_TESTS),$(eval unit_$(test)_SRCS := test/unit/test_$(test).c $(BROKER_PARSER_SRCS) \
    $(COMMON_SRCS)))
