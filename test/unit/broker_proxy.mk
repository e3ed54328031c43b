# Unit tests of how the host's proxies are found: each is linked with all parsers and common/.
BROKER_PROXY_UNIT_TESTS := no_proxy no_proxy_suite pac_script proxy_list proxy_settings
UNIT_TESTS += $(BROKER_PROXY_UNIT_TESTS)
$(foreach test,$(BROKER_PROXY_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(BROKER_PARSER_SRCS) \
    $(COMMON_SRCS)))
