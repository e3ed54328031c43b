# What a confined broker cannot do, and the memory of its libcurl.
UNIT_TESTS += broker_confine
unit_broker_confine_SRCS := test/unit/host-broker/confine/test_broker_confine.c \
	host-broker/confine/confine_linux.c $(COMMON_SRCS)
UNIT_TESTS += broker_curl_memory
unit_broker_curl_memory_SRCS := test/unit/host-broker/keys/test_broker_curl_memory.c \
	host-broker/keys/curl_memory.c $(COMMON_SRCS)
