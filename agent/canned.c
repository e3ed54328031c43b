/* Canned answers: a JSON body in the shape of the broker's errors (doc/broker-protocol.md). */
#include "agent/canned.h"

#include <stdio.h>

#include "common/json/json_writer.h"
#include "common/wire/relay_config.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

/* `fields` are complete header lines. */
static size_t answer_write(char out[CANNED_MAX], const char *status, const char *fields,
                           const char *type, const char *message)
{
    char body[CANNED_MAX / 2];
    struct json_writer writer;
    json_writer_start(&writer, body, sizeof(body));
    json_write_object_begin(&writer);
    json_member_string(&writer, "type", "error");
    json_write_name(&writer, "error");
    json_write_object_begin(&writer);
    json_member_string(&writer, "type", type);
    json_member_string(&writer, "message", message);
    json_write_object_end(&writer);
    json_write_object_end(&writer);
    int body_length = json_writer_finish(&writer, false);
    if (body_length < 0)
        body_length = 0;
    int length =
        snprintf(out, CANNED_MAX,
                 "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s"
                 "Connection: close\r\n\r\n%.*s",
                 status, body_length, fields, body_length, body);
    return length < 0 ? 0 : length < CANNED_MAX ? (size_t)length : CANNED_MAX - 1;
}

size_t canned_unreachable(char out[CANNED_MAX], const char *reason)
{
    char message[192];
    snprintf(message, sizeof(message), "the sandbox's broker on the host cannot be reached: %s",
             reason);
    return answer_write(out, "502 Bad Gateway", "", "codev_broker_unreachable", message);
}

size_t canned_full(char out[CANNED_MAX])
{
    return answer_write(
        out, "503 Service Unavailable", "Retry-After: 1\r\n", "codev_relay_full",
        "the sandbox's relay already has " TEXT(RELAY_CONNECTIONS_MAX) " connections");
}
