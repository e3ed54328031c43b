# Unit tests of what the broker's engine stands on: buffers, sinks, credential, trust, log, routes.
BROKER_ENGINE_UNIT_TESTS := broker_access_log broker_buffer broker_connection broker_credential \
	broker_event_loop \
    broker_line_sink broker_route broker_trust
UNIT_TESTS += $(BROKER_ENGINE_UNIT_TESTS)
$(foreach test,$(BROKER_ENGINE_UNIT_TESTS),$(eval unit_$(test)_SRCS := $(call \
	unit_source,$(test)) $(BROKER_SRCS) \
    $(COMMON_SRCS)))
unit_broker_connection_LDFLAGS := \
	-Wl,--wrap=send,--wrap=exchange_resume,--wrap=exchange_body_is_done
