# codev-agent, the relay; and for tests one that turns its sockets against the host
AGENT_MAIN := agent/main.c
AGENT_SRCS := \
    agent/canned.c \
    agent/config_check.c \
    agent/confine.c \
    agent/connection.c \
    agent/connection_events.c \
    agent/connection_state.c \
    agent/dial.c \
    agent/dns.c \
    agent/dns_server.c \
    agent/event_set.c \
    agent/flow.c \
    agent/loop.c \
    agent/relay.c \
    agent/tls.c \
    agent/transfer.c

# For tests: the same, turned against the host by what it holds.
AGENT_RECONNECT_SRCS := $(AGENT_SRCS) test/harness/agent_reconnect.c
