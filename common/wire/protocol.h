/* Constants that codev-init, codev-sandbox and the broker share (doc/control-channel.md). */
#ifndef COMMON_WIRE_PROTOCOL_H
#define COMMON_WIRE_PROTOCOL_H

#define PROTOCOL_VERSION 1

/* The text of the file VERSION, which the Makefile passes as a bare number. */
#define CODEV_TEXT_OF(number) #number
#define CODEV_TEXT(number) CODEV_TEXT_OF(number)
#define CODEV_VERSION CODEV_TEXT(CODEV_VERSION_NUMBER)

#define CONTROL_LINE_MAX (1024 * 1024) /* one JSON object with its newline */
/* JSON tokens of one line: the sum of all limits of a boot configuration. */
#define CONTROL_TOKENS_MAX 10240
#define CONTROL_PORT_DEFAULT 1024 /* vsock, without codev.control= on the command line */
#define CONTROL_CREDIT_INITIAL (256 * 1024)
#define CONTROL_DATA_MAX (32 * 1024) /* bytes of output or input in one event or command, decoded */
#define CONTROL_CONFIG_TIMEOUT_MS 60000
#define CONTROL_ACK_TIMEOUT_MS 2000
#define SHUTDOWN_GRACE_MS 5000

#define RELAY_PORT 8788 /* the gateway in the sandbox: http://127.0.0.1:8788/gateway/ */
#define WAY_IN_VSOCK_PORT 4096
#define DNS_PORT 53

#define RULE_NAME_MAX 64 /* [a-z0-9][a-z0-9._-]{0,63} */
#define RULES_MAX 1024
#define EGRESS_MAX (RULES_MAX + 1) /* names that a guest is told: the gateway and the rules */

#endif
