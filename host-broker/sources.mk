# Parsers, policy and configuration: pure code, no event loop. Unit tests and fuzz targets link this list.
BROKER_PARSER_SRCS := \
	host-broker/body_decoder.c \
	host-broker/broker_error.c \
	host-broker/chunk_encoder.c \
	host-broker/field.c \
	host-broker/header_policy.c \
	host-broker/link_field.c \
	host-broker/location.c \
	host-broker/no_proxy.c \
	host-broker/options.c \
	host-broker/options_value.c \
	host-broker/pac_script.c \
	host-broker/proxy_list.c \
	host-broker/proxy_settings.c \
	host-broker/request_head.c \
	host-broker/request_scan.c \
	host-broker/response_head.c \
	host-broker/rewrite.c \
	host-broker/rewrite_etag.c \
	host-broker/rewrite_html.c \
	host-broker/rewrite_json.c \
	host-broker/rewrite_json_place.c \
	host-broker/rewrite_link.c \
	host-broker/rewrite_notation.c \
	host-broker/rewrite_route.c \
	host-broker/rules.c \
	host-broker/rules_file.c \
	host-broker/rules_index.c \
	host-broker/target.c \
	host-broker/token_text.c \
	host-broker/upstream_url.c \
	host-broker/url_reference.c
BROKER_SRCS += $(BROKER_PARSER_SRCS)

# The engine: event loop, connections, exchanges with upstreams, and what they stand on.
BROKER_SRCS += \
	host-broker/access_log.c \
	host-broker/broker.c \
	host-broker/buffer.c \
	host-broker/confine_files_linux.c \
	host-broker/confine_linux.c \
	host-broker/connection.c \
	host-broker/connection_io.c \
	host-broker/credential.c \
	host-broker/curl_memory_linux.c \
	host-broker/engine.c \
	host-broker/event_loop.c \
	host-broker/exchange.c \
	host-broker/exchange_proxy.c \
	host-broker/exchange_request.c \
	host-broker/exchange_response.c \
	host-broker/exchange_rewrite.c \
	host-broker/line_sink.c \
	host-broker/listener_linux.c \
	host-broker/pac_fetch.c \
	host-broker/pac_filter_linux.c \
	host-broker/pac_resolver_linux.c \
	host-broker/pac_worker.c \
	host-broker/process_linux.c \
	host-broker/proxy_table.c \
	host-broker/resolver_linux.c \
	host-broker/rewrite_gzip.c \
	host-broker/route.c \
	host-broker/tls.c \
	host-broker/trust.c \
	host-broker/upstream_pool.c
BROKER_MAIN := host-broker/main.c
