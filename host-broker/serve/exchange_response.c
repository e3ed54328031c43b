/* Passes the upstream's answer on to the client.
 *
 * Fields are filtered once the head is complete, because Connection may name any of them. No field
 * that frames the message is copied: the framing is chosen from facts and written again.
 */
#include "host-broker/serve/exchange_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#include <errno.h>
#include <string.h>

#include "host-broker/http/chunk_encoder.h"
#include "host-broker/rules/link_field.h"
#include "host-broker/rules/location.h"

#define CONNECTION_LIST_MAX 1024
/* A piece of up to this size that finds `out` empty is sent at once, not at the end of the wake-up:
 * streams of events consist of such pieces. */
#define EVENT_MAX 4096
#define CONTENT_ROOM (CURL_MAX_WRITE_SIZE + CHUNK_HEAD_MAX + sizeof(CHUNK_TAIL CHUNK_LAST))

/* The fields of the head that decide how the rest is treated. */
struct head_facts {
    char connection[CONNECTION_LIST_MAX]; /* values of all Connection fields */
    size_t connection_length;
    bool has_coding, has_length;
    enum exchange_coding coding;
    struct slice content_type;
    uint64_t length;
};

/* Content-Length: only digits, and several fields must agree (RFC 9110 section 8.6). */
static int read_length(struct head_facts *facts, struct slice value)
{
    uint64_t length = 0;
    if (value.length == 0 || value.length > 18)
        return -EBADMSG;
    for (size_t i = 0; i < value.length; i++) {
        if (value.bytes[i] < '0' || value.bytes[i] > '9')
            return -EBADMSG;
        length = length * 10 + (uint64_t)(value.bytes[i] - '0');
    }
    if (facts->has_length && facts->length != length)
        return -EBADMSG;
    facts->has_length = true;
    facts->length = length;
    return 0;
}

static int add_connection(struct head_facts *facts, struct slice value)
{
    if (facts->connection_length + value.length + 1 > sizeof(facts->connection))
        return -EBADMSG;
    if (value.length > 0)
        memcpy(facts->connection + facts->connection_length, value.bytes, value.length);
    facts->connection_length += value.length;
    facts->connection[facts->connection_length++] = ',';
    return 0;
}

/* Content-Encoding: gzip alone can be undone, several codings cannot. */
static void note_coding(struct head_facts *facts, struct slice value)
{
    struct slice coding;
    while (field_list_next(&value, &coding)) {
        if (slice_equal_nocase(coding, SLICE_LITERAL("identity")))
            continue;
        bool gzip = slice_equal_nocase(coding, SLICE_LITERAL("gzip")) ||
                    slice_equal_nocase(coding, SLICE_LITERAL("x-gzip"));
        facts->coding =
            gzip && facts->coding == EXCHANGE_PLAIN ? EXCHANGE_GZIP : EXCHANGE_OTHER_CODING;
    }
}

static int note_field(struct head_facts *facts, const struct field *field)
{
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Content-Length")))
        return read_length(facts, field->value);
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Connection")))
        return add_connection(facts, field->value);
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Transfer-Encoding")))
        facts->has_coding = true;
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Content-Type")))
        facts->content_type = field->value;
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Content-Encoding")))
        note_coding(facts, field->value);
    return 0;
}

/* Cuts the next line from the front of the collected head. */
static bool next_line(struct slice *rest, struct slice *line)
{
    const char *end = rest->length > 0 ? memchr(rest->bytes, '\n', rest->length) : NULL;
    if (!end)
        return false;
    *line = (struct slice){rest->bytes, (size_t)(end - rest->bytes) + 1};
    *rest = (struct slice){end + 1, rest->length - line->length};
    return true;
}

static int read_facts(const struct exchange *exchange, struct head_facts *facts)
{
    struct slice rest = {buffer_front(&exchange->lines), buffer_length(&exchange->lines)};
    struct slice line;
    *facts = (struct head_facts){0};
    while (next_line(&rest, &line)) {
        struct field field;
        int result = field_parse_line(line, &field);
        if (result == 0)
            result = note_field(facts, &field);
        if (result < 0)
            return -EBADMSG;
    }
    return 0;
}

struct location_context exchange_location_context(const struct exchange *exchange)
{
    const struct broker *broker = exchange->broker;
    return (struct location_context){
        .guest_url = broker->options.guest_url,
        .rules = &broker->rules,
        .rule = exchange->rule,
        .origin = exchange->origin,
        .path = slice_of(exchange->url + exchange->origin_length),
    };
}

static void write_location(struct exchange *exchange, struct response_head *head,
                           const struct field *field)
{
    static char value[LOCATION_MAX];
    struct location_context context = exchange_location_context(exchange);
    int length = location_rewrite(value, sizeof(value), field->value, &context);
    if (length >= 0) /* a value that is too long is dropped */
        response_head_field(head, field->name,
                            length == 0 ? field->value : (struct slice){value, (size_t)length});
}

static void write_link(struct exchange *exchange, struct response_head *head,
                       const struct field *field)
{
    static char value[BUFFER_BLOCK];
    struct location_context context = exchange_location_context(exchange);
    int length = link_field_rewrite(value, sizeof(value), field->value, &context);
    response_head_field(head, field->name,
                        length < 0 ? field->value : (struct slice){value, (size_t)length});
}

static void write_field(struct exchange *exchange, struct response_head *head,
                        const struct field *field)
{
    if (slice_equal_nocase(field->name, SLICE_LITERAL("Location")))
        write_location(exchange, head, field);
    else if (slice_equal_nocase(field->name, SLICE_LITERAL("Link")))
        write_link(exchange, head, field);
    else
        response_head_field(head, field->name, field->value);
}

static void write_fields(struct exchange *exchange, struct response_head *head,
                         const struct head_facts *facts, bool rewritten)
{
    struct slice rest = {buffer_front(&exchange->lines), buffer_length(&exchange->lines)};
    struct slice connection = {facts->connection, facts->connection_length}, line;
    while (next_line(&rest, &line)) {
        struct field field;
        if (field_parse_line(line, &field) < 0 ||
            !header_policy_response(exchange->kind, connection, &field) ||
            (rewritten && !exchange_rewrite_response_field(exchange, &field)))
            continue;
        write_field(exchange, head, &field);
    }
    if (rewritten) /* a cached copy must be revalidated: the rules may change */
        response_head_lines(head, "Cache-Control: no-cache\r\n");
}

/* The head of the upstream's answer is complete: writes ours. */
static int pass_head(struct exchange *exchange)
{
    struct exchange_client *client = exchange->client;
    struct buffer *out = &client->out;
    struct head_facts facts;
    struct response_head head;
    int result = read_facts(exchange, &facts);
    if (result < 0)
        return result;
    enum exchange_treatment treatment =
        exchange_rewrite_treat(exchange, facts.content_type, facts.coding);
    if (treatment == EXCHANGE_ASK_WHOLE)
        return -EAGAIN;
    struct response_facts framing = {
        .head_request = exchange->head_request,
        .request_minor_version = exchange->minor_version,
        .status = exchange->status,
        .length_known = facts.has_length && !facts.has_coding && treatment != EXCHANGE_REWRITTEN,
        .length = facts.length,
        .keep_alive = exchange->keep_alive && !broker_is_draining(exchange->broker),
    };
    buffer_take(out, &exchange->broker->buffers);
    buffer_compact(out);
    response_head_begin(&head, out->bytes + out->end, BUFFER_BLOCK - out->end, exchange->status);
    write_fields(exchange, &head, &facts, treatment == EXCHANGE_REWRITTEN);
    int length = response_head_finish(&head, &framing);
    if (length < 0)
        return -EMSGSIZE;
    out->end += (size_t)length;
    exchange->framing = response_framing_choose(&framing);
    exchange->left = facts.length;
    exchange->closes = !response_keeps_alive(&framing);
    exchange->phase = EXCHANGE_IN_BODY;
    client->record.status = exchange->status;
    buffer_give_back(&exchange->lines, &exchange->broker->buffers);
    client->sink->mark(client);
    return 0;
}

/* "HTTP/1.1 200 ..."; libcurl has checked the version. */
static int begin_head(struct exchange *exchange, const char *line, size_t length)
{
    const char *space = memchr(line, ' ', length);
    if (!space || (size_t)(line + length - space) < 4)
        return -EBADMSG;
    exchange->status = 0;
    for (int i = 1; i <= 3; i++) {
        if (space[i] < '0' || space[i] > '9')
            return -EBADMSG;
        exchange->status = exchange->status * 10 + (space[i] - '0');
    }
    if (exchange->status < 100 || exchange->status == 101) /* 101: no upgrade was asked for */
        return -EBADMSG;
    exchange->phase = EXCHANGE_IN_HEAD;
    buffer_take(&exchange->lines, &exchange->broker->buffers);
    return 0;
}

static int take_line(struct exchange *exchange, const char *line, size_t length)
{
    bool empty = line[0] == '\r' || line[0] == '\n';
    if (exchange->phase == EXCHANGE_AWAITING)
        return begin_head(exchange, line, length);
    if (!empty) {
        if (line[0] == ' ' || line[0] == '\t') /* folded: RFC 9112 section 5.2 allows 502 */
            return -EBADMSG;
        if (buffer_room(&exchange->lines) < length)
            return -EMSGSIZE;
        buffer_append(&exchange->lines, line, length);
        return 0;
    }
    /* a proxy that wants a login is answered by the broker, not by the client */
    exchange->proxy_login = exchange->forwarded && exchange->status == 407;
    if (exchange->status >= 200 && !exchange->proxy_login)
        return pass_head(exchange);
    exchange->phase = EXCHANGE_AWAITING; /* 1xx and such a 407 are not passed on */
    buffer_consume(&exchange->lines, buffer_length(&exchange->lines));
    return 0;
}

size_t exchange_on_header(char *line, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    size_t length = size * count;
    exchange->client->sink->moved(exchange->client);
    if (exchange->phase == EXCHANGE_IN_BODY)
        return length; /* trailers are dropped */
    int result = length == 0 ? 0 : take_line(exchange, line, length);
    if (result == 0)
        return length;
    exchange->fault = result == -EMSGSIZE ? EXCHANGE_HEAD_TOO_LARGE
                      : result == -EAGAIN ? EXCHANGE_PART
                                          : EXCHANGE_BAD_HEAD;
    return CURL_WRITEFUNC_ERROR;
}

bool exchange_has_room(struct exchange *exchange)
{
    struct exchange_client *client = exchange->client;
    buffer_take(&client->out, &exchange->broker->buffers);
    if (exchange->rewriting)
        return exchange_rewrite_has_room(exchange);
    return buffer_room(&client->out) >= CONTENT_ROOM;
}

static void append_chunk(struct buffer *out, const char *content, size_t length)
{
    char frame[CHUNK_HEAD_MAX];
    buffer_append(out, frame, chunk_head_write(frame, length));
    buffer_append(out, content, length);
    buffer_append(out, CHUNK_TAIL, sizeof(CHUNK_TAIL) - 1);
}

void exchange_pass_content(struct exchange *exchange, const char *content, size_t length)
{
    struct exchange_client *client = exchange->client;
    if (exchange->framing == RESPONSE_LENGTH) {
        length = exchange->left < length ? (size_t)exchange->left : length;
        exchange->left -= length;
    }
    if (exchange->framing == RESPONSE_CHUNKED && length > 0)
        append_chunk(&client->out, content, length);
    else
        buffer_append(&client->out, content, length);
    client->record.bytes_out += length;
}

size_t exchange_on_content(char *content, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    struct exchange_client *client = exchange->client;
    size_t length = size * count;
    if (length == 0 || exchange->phase != EXCHANGE_IN_BODY || exchange->framing == RESPONSE_EMPTY ||
        exchange->framing == RESPONSE_HEADERS)
        return length;
    if (!exchange_has_room(exchange))
        client->sink->send(client);
    if (client->left)
        return CURL_WRITEFUNC_ERROR;
    if (!exchange_has_room(exchange)) {
        exchange->download_paused = true;
        client->sink->mark(client);
        return CURL_WRITEFUNC_PAUSE;
    }
    bool event = buffer_length(&client->out) == 0 && length <= EVENT_MAX;
    if (exchange->rewriting)
        length = exchange_rewrite_content(exchange, content, length);
    else
        exchange_pass_content(exchange, content, length);
    if (event)
        client->sink->send(client);
    client->sink->moved(client);
    client->sink->mark(client);
    return length;
}
