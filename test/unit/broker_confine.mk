# What a confined broker cannot do, and the memory of its libcurl.
UNIT_TESTS += broker_confine
unit_broker_confine_SRCS := test/unit/test_broker_confine.c host-broker/confine_linux.c \
    host-broker/confine_files_linux.c $(COMMON_SRCS)
UNIT_TESTS += broker_curl_memory
unit_broker_curl_memory_SRCS := test/unit/test_broker_curl_memory.c host-broker/curl_memory_linux.c $(COMMON_SRCS)
