/* Makes and sets up libcurl's handle for a request: URL, method, fields, body.
 *
 * Everything that libcurl would do by itself is turned off: redirects, proxies and settings from
 * the environment, default fields, Expect, decoding, normalising of paths, and a second try of a
 * request that may have had its effect.
 */
#include "host-broker/serve/exchange_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/secret.h"

#define CURL_BUFFER (16 * 1024L) /* libcurl's own, for the answer */
/* libcurl's own for the request. The whole head must fit: libcurl 7.88 never sends the end of a
 * head that is larger than three buffers. */
#define CURL_HEAD (96 * 1024L)
#define CURL_SMALL_HEAD (16 * 1024L) /* fits nearly all heads; libcurl's minimum */
#define READ_MAX (16 * 1024)         /* of a body at once */
/* Maximum idle time of a kept connection that may carry a request that cannot be sent twice. */
#define KEPT_FOR_UNSAFE_SECONDS 2L
#define METHOD_MAX 64
#define URL_SIZE (UPSTREAM_ORIGIN_MAX + UPSTREAM_PATH_MAX + REQUEST_HEAD_MAX)
#define LINE_SIZE (REQUEST_HEAD_MAX + TOKEN_LINE_EXTRA)
#define HEAD_ADDED_MAX (4 * 1024) /* request line, Host, a proxy's login */
#define TOKEN_LINE_EXTRA 512      /* the name of the field that holds the gateway's token */

/* CURLOPT_READFUNCTION: the next bytes of the body. */
static size_t on_read(char *out, size_t size, size_t count, void *user)
{
    struct exchange *exchange = user;
    struct exchange_client *client = exchange->client;
    struct buffer *in = &client->in;
    size_t room = size * count < READ_MAX ? size * count : READ_MAX, filled = 0;
    while (buffer_length(in) > 0 && filled < room && !body_decoder_done(&exchange->body)) {
        size_t offered = buffer_length(in) < room - filled ? buffer_length(in) : room - filled;
        struct slice content = {0};
        ssize_t taken = body_decoder_take(&exchange->body, buffer_front(in), offered, &content);
        if (taken < 0) {
            exchange->fault = EXCHANGE_BAD_BODY;
            return CURL_READFUNC_ABORT;
        }
        if (taken == 0)
            break;
        if (content.length > 0)
            memcpy(out + filled, content.bytes, content.length);
        filled += content.length;
        buffer_consume(in, (size_t)taken);
    }
    client->record.bytes_in += filled;
    client->sink->moved(client);
    client->sink->mark(client); /* `in` has room again */
    if (filled > 0 || body_decoder_done(&exchange->body))
        return filled;
    exchange->upload_paused = true;
    return CURL_READFUNC_PAUSE;
}

/* CURLOPT_OPENSOCKETFUNCTION: called when no kept connection can carry the request. */
static curl_socket_t on_open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct exchange *exchange = user;
    (void)purpose;
    exchange->fresh = true;
    return upstream_pool_open_socket(exchange->pool, address);
}

/* CURLOPT_PREREQFUNCTION: called before the request is sent on a connection. It is sent only on a
 * new connection or on a kept one without unread bytes, which would be taken for its answer, and
 * without an end. A second call means that libcurl has found the connection closed and would try
 * again (lib/transfer.c, Curl_retry_request): that is refused if the request must not be sent
 * twice. */
static int on_send(void *user, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct exchange *exchange = user;
    (void)remote_ip, (void)local_ip, (void)remote_port;
    exchange->attempts++;
    if (exchange->proxy_login) { /* the attempt before ended at a proxy that wanted a login */
        exchange->proxy_login = false;
        exchange->attempts = 1;
    }
    if (exchange->once && exchange->attempts > 1)
        exchange->fault = EXCHANGE_NOT_SENT_TWICE;
    else if (!exchange->fresh && (upstream_pool_has_unread_tls(exchange->easy) ||
                                  upstream_pool_is_stale(exchange->pool, local_port)))
        exchange->fault = EXCHANGE_STALE;
    return exchange->fault == EXCHANGE_SOUND ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static int add_line(struct exchange *exchange, const char *line)
{
    struct curl_slist *longer = curl_slist_append(exchange->fields, line);
    if (!longer)
        return -ENOMEM;
    exchange->fields = longer;
    return 0;
}

/* In libcurl's notation "Name;" is a field with an empty value; "Name:" removes a default field. */
static int add_field(struct exchange *exchange, const struct field *field)
{
    static char line[LINE_SIZE];
    struct slice name = field->name, value = field->value;
    int length = value.length == 0
                     ? snprintf(line, sizeof(line), "%.*s;", (int)name.length, name.bytes)
                     : snprintf(line, sizeof(line), "%.*s: %.*s", (int)name.length, name.bytes,
                                (int)value.length, value.bytes);
    return (size_t)length >= sizeof(line) ? -EMSGSIZE : add_line(exchange, line);
}

static int add_credential(struct exchange *exchange, const struct broker *broker)
{
    static char line[LINE_SIZE];
    const struct slice name = broker->options.gateway_header;
    int length = snprintf(line, sizeof(line), "%.*s: %s%s", (int)name.length, name.bytes,
                          broker->options.gateway_auth == GATEWAY_AUTH_BEARER ? "Bearer " : "",
                          broker->credential.token);
    int result = (size_t)length >= sizeof(line) ? -EMSGSIZE : add_line(exchange, line);
    secret_wipe(line, strlen(line));
    if (result < 0)
        return result;
    struct curl_slist *last = exchange->fields;
    while (last->next)
        last = last->next;
    exchange->secret = last->data;
    return 0;
}

static int add_fields(struct exchange *exchange, const struct broker *broker,
                      const struct request_head *head)
{
    bool has_accept = false, has_encoding = false;
    int result = 0;
    for (size_t i = 0; i < head->field_count && result == 0; i++) {
        struct field field = head->fields[i];
        if (!header_policy_request(exchange->kind, broker->options.gateway_header, head, &field) ||
            !exchange_rewrite_request_field(exchange, &field))
            continue;
        has_accept = has_accept || slice_equal_nocase(field.name, SLICE_LITERAL("Accept"));
        has_encoding =
            has_encoding || slice_equal_nocase(field.name, SLICE_LITERAL("Accept-Encoding"));
        result = add_field(exchange, &field);
    }
    if (result == 0 && exchange->candidates != 0 && !has_encoding)
        result = add_line(exchange, "Accept-Encoding: identity");
    if (result == 0 && exchange->kind == ROUTE_GATEWAY)
        result = add_credential(exchange, broker);
    if (result == 0)
        result = add_line(exchange, "Expect:");
    if (result == 0 && !has_accept)
        result = add_line(exchange, "Accept:");
    return result;
}

static int set_url(struct exchange *exchange, const struct route *route)
{
    static char url[URL_SIZE];
    int origin = upstream_url_origin(route->url, url, sizeof(url));
    if (origin < 0)
        return -EMSGSIZE;
    exchange->origin_length = (size_t)origin;
    if (upstream_url_join(route->url, &route->target, url + origin, sizeof(url) - (size_t)origin) <
        0)
        return -EMSGSIZE;
    exchange->url = strdup(url);
    if (!exchange->url)
        return -ENOMEM;
    return curl_easy_setopt(exchange->easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

static bool wants_length(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0 ||
           strcmp(method, "PATCH") == 0;
}

/* The safe methods, which may be sent again (RFC 9110 section 9.2.1; TRACE is refused). */
static bool is_safe(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
           strcmp(method, "OPTIONS") == 0;
}

static int set_method_and_body(struct exchange *exchange, const struct request_head *head)
{
    char method[METHOD_MAX];
    CURL *easy = exchange->easy;
    if (head->method.length >= sizeof(method))
        return -EMSGSIZE;
    log_record_text(method, sizeof(method), head->method);
    exchange->head_request = strcmp(method, "HEAD") == 0;
    if (exchange->head_request && (head->framing == BODY_CHUNKED || head->content_length > 0))
        return -EINVAL; /* libcurl would wait for a body of the answer */
    exchange->once = !is_safe(method) || head->framing != BODY_NONE;
    body_decoder_start(&exchange->body, head->framing, head->content_length);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    if (exchange->head_request) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (head->framing != BODY_NONE || wants_length(method)) {
        curl_off_t length = head->framing == BODY_CHUNKED  ? -1
                            : head->framing == BODY_LENGTH ? (curl_off_t)head->content_length
                                                           : 0;
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, length);
    }
    if (exchange->once)
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, KEPT_FOR_UNSAFE_SECONDS);
    return 0;
}

static void set_callbacks(struct exchange *exchange)
{
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error_text);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    curl_easy_setopt(easy, CURLOPT_READDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, exchange_on_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, exchange_on_content);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, exchange);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, exchange);
    /* called with the pool: the connection may outlive the exchange */
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, upstream_pool_close_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, exchange->pool);
}

static void set_transport(struct exchange *exchange, const struct broker *broker)
{
    CURL *easy = exchange->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
                     1L); /* a cancel does not wait for a name to resolve */
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(easy, CURLOPT_CAINFO, broker->trust.path);
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, broker->trust.path);
    curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
    curl_easy_setopt(easy, CURLOPT_SHARE, exchange->pool->share);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, CURL_BUFFER);
}

/* Large enough for the head of the request and the little that libcurl adds. */
static void set_head_buffer(struct exchange *exchange)
{
    size_t length = strlen(exchange->url);
    for (const struct curl_slist *field = exchange->fields; field; field = field->next)
        length += strlen(field->data) + 2;
    bool small = length <= CURL_SMALL_HEAD - HEAD_ADDED_MAX;
    curl_easy_setopt(exchange->easy, CURLOPT_UPLOAD_BUFFERSIZE,
                     small ? CURL_SMALL_HEAD : CURL_HEAD);
}

int exchange_set_request(struct exchange *exchange, const struct route *route,
                         const struct request_head *head)
{
    const struct broker *broker = exchange->broker;
    if (!exchange->easy) /* memory was short when the last request ended */
        exchange->easy = curl_easy_init();
    if (!exchange->easy)
        return -ENOMEM;
    set_callbacks(exchange);
    set_transport(exchange, broker);
    int result = set_url(exchange, route);
    if (result == 0)
        result = set_method_and_body(exchange, head);
    exchange_rewrite_prepare(exchange, route, head);
    if (result == 0)
        result = add_fields(exchange, broker, head);
    if (result == 0)
        curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->fields);
    if (result == 0)
        set_head_buffer(exchange);
    return result;
}

void exchange_drop_request(struct exchange *exchange)
{
    /* The next request gets a handle that was never used, made in advance. */
    curl_easy_cleanup(exchange->easy);
    exchange->easy = curl_easy_init();
    if (exchange->secret)
        secret_wipe(exchange->secret, strlen(exchange->secret));
    exchange->secret = NULL;
    curl_slist_free_all(exchange->fields);
    exchange->fields = NULL;
    free(exchange->url);
    exchange->url = NULL;
}
