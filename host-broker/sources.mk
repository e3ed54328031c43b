# Parsers, policy and configuration: pure code, no event loop. Unit tests and fuzz targets link this
# list.
BROKER_PARSER_SRCS := \
	host-broker/http/body_decoder.c \
	host-broker/http/broker_error.c \
	host-broker/http/chunk_encoder.c \
	host-broker/http/field.c \
	host-broker/http/header_policy.c \
	host-broker/rules/link_field.c \
	host-broker/rules/location.c \
	host-broker/proxy/no_proxy.c \
	host-broker/config/options.c \
	host-broker/proxy/pac_script.c \
	host-broker/proxy/proxy_list.c \
	host-broker/proxy/proxy_settings.c \
	host-broker/http/request_head.c \
	host-broker/http/response_head.c \
	host-broker/rewrite/rewrite.c \
	host-broker/rewrite/rewrite_etag.c \
	host-broker/rewrite/rewrite_html.c \
	host-broker/rewrite/rewrite_json.c \
	host-broker/rewrite/rewrite_link.c \
	host-broker/rewrite/rewrite_route.c \
	host-broker/rewrite/rewrite_stream.c \
	host-broker/rules/rules.c \
	host-broker/rules/rules_file.c \
	host-broker/rules/rules_index.c \
	host-broker/http/target.c \
	host-broker/keys/token_text.c \
	host-broker/http/upstream_url.c \
	host-broker/http/url_reference.c
BROKER_SRCS += $(BROKER_PARSER_SRCS)

# The engine: event loop, connections, exchanges with upstreams, and what they stand on.
BROKER_SRCS += \
	host-broker/serve/access_log.c \
	host-broker/serve/broker.c \
	host-broker/base/buffer.c \
	host-broker/confine/confine_linux.c \
	host-broker/serve/connection.c \
	host-broker/keys/credential.c \
	host-broker/keys/curl_memory.c \
	host-broker/serve/engine.c \
	host-broker/base/event_loop_linux.c \
	host-broker/serve/exchange.c \
	host-broker/serve/exchange_proxy.c \
	host-broker/serve/exchange_request.c \
	host-broker/serve/exchange_response.c \
	host-broker/serve/exchange_rewrite.c \
	host-broker/base/line_sink.c \
	host-broker/serve/listener_linux.c \
	host-broker/proxy/pac_fetch.c \
	host-broker/proxy/pac_filter_linux.c \
	host-broker/proxy/pac_resolver_linux.c \
	host-broker/proxy/pac_worker.c \
	host-broker/base/process_linux.c \
	host-broker/proxy/proxy_table.c \
	host-broker/proxy/resolver_linux.c \
	host-broker/rewrite/rewrite_gzip.c \
	host-broker/serve/route.c \
	host-broker/keys/tls.c \
	host-broker/keys/trust.c \
	host-broker/serve/upstream_pool.c
BROKER_MAIN := host-broker/main.c
