# codev-agent, the relay
AGENT_MAIN := agent/main.c
AGENT_SRCS := \
    agent/canned.c \
    agent/config_check.c \
    agent/confine.c \
    agent/connection.c \
    agent/connection_rules.c \
    agent/dial.c \
    agent/dns.c \
    agent/dns_server.c \
    agent/flow.c \
    agent/relay.c \
    agent/tls.c \
    agent/transfer.c
