# Unit tests of the agent's parts that need no event loop.
AGENT_UNIT_TESTS := agent_canned agent_config_check agent_confine agent_connection \
	agent_dns agent_flow
UNIT_TESTS += $(AGENT_UNIT_TESTS)
$(foreach test,$(AGENT_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call unit_source,$(test)) \
	$(test:agent_%=agent/%.c) $(COMMON_SRCS)))
unit_agent_connection_SRCS += agent/flow.c
unit_agent_config_check_SRCS += agent/connection.c agent/flow.c
