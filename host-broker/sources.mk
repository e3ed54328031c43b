# Parsers, policy and configuration: pure code, no event loop.
BROKER_SRCS += \
	host-broker/body_decoder.c \
	host-broker/broker_error.c \
	host-broker/chunk_encoder.c \
	host-broker/field.c \
	host-broker/header_policy.c \
	host-broker/location.c \
	host-broker/options.c \
	host-broker/options_value.c \
	host-broker/request_head.c \
	host-broker/request_scan.c \
	host-broker/response_head.c \
	host-broker/rules.c \
	host-broker/rules_file.c \
	host-broker/target.c \
	host-broker/token_text.c \
	host-broker/upstream_url.c
