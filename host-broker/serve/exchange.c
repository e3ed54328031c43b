/* Begin, pauses and end of an exchange, and the table of exchanges. */
#include "host-broker/serve/exchange_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/cleanup.h"
#include "common/os/secret.h"
#include "host-broker/http/chunk_encoder.h"

#define RESULT_TOO_LARGE 100 /* CURLE_TOO_LARGE, which older headers of libcurl lack */

/* Parsed once: libcurl would parse and rebuild the URL for every request. */
static CURLU *parse_origin(const struct upstream_url *url)
{
    char text[UPSTREAM_ORIGIN_MAX];
    CURLU *origin = curl_url();
    if (origin && upstream_url_origin(url, text, sizeof(text)) > 0 &&
        curl_url_set(origin, CURLUPART_URL, text, 0) == CURLUE_OK)
        return origin;
    curl_url_cleanup(origin);
    return NULL;
}

static int open_origins(struct broker *broker, struct failure *why)
{
    size_t count = broker->rules.count + 1;
    broker->origins = calloc(count, sizeof(CURLU *));
    if (!broker->origins)
        return failure_set(why, ENOMEM, "reserve %zu upstreams", count);
    for (size_t i = 0; i < count; i++) {
        broker->origins[i] =
            parse_origin(i == 0 ? &broker->options.gateway : &broker->rules.rules[i - 1].url);
        if (!broker->origins[i])
            return failure_set(why, EINVAL, "tell libcurl the URL of upstream %zu", i);
    }
    return 0;
}

int exchange_open_table(struct broker *broker, struct failure *why)
{
    int result = open_origins(broker, why);
    if (result < 0)
        return result;
    unsigned count = broker->options.max_requests;
    broker->exchanges = calloc(count, sizeof(*broker->exchanges));
    if (!broker->exchanges)
        return failure_set(why, ENOMEM, "reserve %u exchanges", count);
    struct rewriter *rewriters = calloc(count, sizeof(*rewriters));
    if (!rewriters)
        return failure_set(why, ENOMEM, "reserve %u exchanges", count);
    for (unsigned i = count; i-- > 0;) {
        struct exchange *exchange = &broker->exchanges[i];
        exchange->broker = broker;
        exchange->rewriter = &rewriters[i];
        exchange->easy = curl_easy_init();
        if (!exchange->easy)
            return failure_set(why, ENOMEM, "reserve %u exchanges", count);
        exchange->next = broker->unused_exchanges;
        broker->unused_exchanges = exchange;
    }
    return 0;
}

void exchange_close_table(struct broker *broker)
{
    for (unsigned i = 0; i < broker->options.max_requests; i++) {
        exchange_drop_request(&broker->exchanges[i]);
        curl_easy_cleanup(broker->exchanges[i].easy);
    }
    for (size_t i = 0; i <= broker->rules.count; i++)
        curl_url_cleanup(broker->origins[i]);
    free(broker->origins);
    free(broker->exchanges[0].rewriter);
    free(broker->exchanges);
}

/* Returns the place to the table. What lies before `client` stays; `way` is cleared as far as it
 * was used because it may hold passwords. */
static void release(struct exchange *exchange)
{
    struct broker *broker = exchange->broker;
    struct proxy_list *ways = &exchange->way.list;
    const size_t first = offsetof(struct exchange, client), last = offsetof(struct exchange, way);
    exchange_drop_request(exchange);
    buffer_give_back(&exchange->lines, &broker->buffers);
    secret_wipe(ways->proxies, ways->count * sizeof(ways->proxies[0]));
    ways->count = 0;
    memset((char *)exchange + first, 0, last - first);
    exchange->next = broker->unused_exchanges;
    broker->unused_exchanges = exchange;
}

static struct exchange *refuse_start(struct refusal *refusal, int result, const struct route *route)
{
    *refusal = (struct refusal){.error = BROKER_ERROR_INTERNAL, .rule = route->name};
    if (result == -EBUSY)
        refusal->error = BROKER_ERROR_BUSY;
    if (result == -EMSGSIZE)
        refusal->error = BROKER_ERROR_HEAD_TOO_LARGE;
    if (result == -EINVAL) {
        refusal->error = BROKER_ERROR_BAD_REQUEST;
        refusal->message = "a HEAD request with a body";
    }
    return NULL;
}

struct exchange *exchange_start(struct broker *broker, struct exchange_client *client,
                                const struct route *route, const struct request_head *head,
                                struct refusal *refusal)
{
    struct exchange *exchange = broker->unused_exchanges;
    if (!exchange)
        return refuse_start(refusal, -EBUSY, route);
    broker->unused_exchanges = exchange->next;
    exchange->client = client;
    exchange->pool = &broker->pools[route->kind];
    exchange->kind = route->kind;
    exchange->origin = route->url;
    exchange->rule = route->rule;
    exchange->name = route->name;
    exchange->minor_version = head->minor_version;
    exchange->keep_alive = head->keep_alive;
    int result = exchange_set_request(exchange, route, head);
    if (result < 0) {
        release(exchange);
        return refuse_start(refusal, result, route);
    }
    if (exchange_begin(exchange, refusal) < 0) {
        release(exchange);
        return NULL;
    }
    client->record.end = REQUEST_CANCELLED; /* until another end is known */
    return exchange;
}

bool exchange_body_is_done(const struct exchange *exchange)
{
    return body_decoder_done(&exchange->body);
}

static bool is_tls(CURLcode result)
{
    switch ((int)result) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return true;
    default:
        return false;
    }
}

/* Until an https proxy has opened the tunnel, TLS is spoken with the proxy. */
static bool is_proxys_tls(const struct exchange *exchange, long connect_status)
{
    return exchange->way.list.proxies[exchange->way_index].kind == PROXY_HTTPS &&
           (exchange->forwarded || connect_status == 0);
}

static bool is_socks_login(const struct exchange *exchange)
{
    long error = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_PROXY_ERROR, &error);
    return error == CURLPX_NO_AUTH || error == CURLPX_USER_REJECTED || error == CURLPX_GSSAPI ||
           error == CURLPX_REQUEST_FAILED;
}

static bool has_connected(const struct exchange *exchange)
{
    curl_off_t time = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_CONNECT_TIME_T, &time);
    return time > 0;
}

/* Maps a result of libcurl to a row of the table of errors. Unlisted codes mean that the upstream's
 * connection failed. */
static enum broker_error error_of(const struct exchange *exchange, CURLcode result)
{
    long connect_status = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_HTTP_CONNECTCODE, &connect_status);
    if (connect_status == 407 || exchange->proxy_login || is_socks_login(exchange))
        return BROKER_ERROR_PROXY_AUTHENTICATION;
    if (connect_status >= 300 || (is_tls(result) && is_proxys_tls(exchange, connect_status)))
        return BROKER_ERROR_PROXY;
    if (is_tls(result))
        return BROKER_ERROR_UPSTREAM_TLS;
    switch ((int)result) {
    case CURLE_COULDNT_RESOLVE_HOST:
        return BROKER_ERROR_UPSTREAM_NAME;
    case CURLE_COULDNT_CONNECT:
        return exchange->proxied ? BROKER_ERROR_PROXY : BROKER_ERROR_UPSTREAM_CONNECT;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
        return BROKER_ERROR_PROXY;
    case CURLE_OPERATION_TIMEDOUT:
        return exchange->proxied && !has_connected(exchange) ? BROKER_ERROR_PROXY
                                                             : BROKER_ERROR_UPSTREAM_TIMEOUT;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING: /* from the proxy, as long as there is no tunnel */
        return exchange->proxied && exchange->attempts == 0 && connect_status == 0
                   ? BROKER_ERROR_PROXY
                   : BROKER_ERROR_UPSTREAM_BROKEN;
    case CURLE_OUT_OF_MEMORY:
        return BROKER_ERROR_INTERNAL;
    default:
        return BROKER_ERROR_UPSTREAM_BROKEN;
    }
}

/* Appends libcurl's message to that of the table: it names the port, or what is wrong with the
 * certificate. */
static void explain(struct refusal *refusal, const struct exchange *exchange, CURLcode result)
{
    refusal->error = error_of(exchange, result);
    const char *words = exchange->error_text[0] ? exchange->error_text : curl_easy_strerror(result);
    char label[PROXY_LABEL_MAX] = "";
    if (exchange->proxied)
        proxy_format_label(&exchange->way.list.proxies[exchange->way_index], label);
    snprintf(refusal->text, sizeof(refusal->text), "%s%s%s: %s",
             broker_error_kinds[refusal->error].message, label[0] != '\0' ? ", by proxy " : "",
             label, words);
    refusal->message = refusal->text;
}

/* The broker's answer to each fault. EXCHANGE_STALE and EXCHANGE_PART reach the client only when
 * the upstream could not be asked again. */
static const struct {
    enum broker_error error;
    const char *message;
} fault_answers[] = {
    [EXCHANGE_SOUND] = {BROKER_ERROR_INTERNAL, NULL},
    [EXCHANGE_BAD_BODY] = {BROKER_ERROR_BAD_REQUEST, NULL},
    [EXCHANGE_BAD_HEAD] = {BROKER_ERROR_UPSTREAM_BROKEN, "the upstream's answer is no valid HTTP"},
    [EXCHANGE_BAD_GZIP] = {BROKER_ERROR_UPSTREAM_BROKEN, "the upstream's answer is no valid gzip"},
    [EXCHANGE_HEAD_TOO_LARGE] = {BROKER_ERROR_UPSTREAM_BROKEN,
                                 "the head of the upstream's answer is too large"},
    [EXCHANGE_STALE] = {BROKER_ERROR_INTERNAL, NULL},
    [EXCHANGE_PART] = {BROKER_ERROR_INTERNAL, NULL},
    [EXCHANGE_NOT_SENT_TWICE] = {BROKER_ERROR_UPSTREAM_BROKEN,
                                 "the upstream closed the connection before it answered; the "
                                 "request is not sent again, since it may have had its effect"},
};
static_assert(ARRAY_LENGTH(fault_answers) == EXCHANGE_FAULT_COUNT, "an answer for each");

/* libcurl gathers the lines of a head up to 100 KiB each. It reports a longer one as out of memory;
 * from 8.6 on as too large. */
static bool is_line_too_long(const struct exchange *exchange, CURLcode result)
{
    return exchange->attempts > 0 && exchange->phase != EXCHANGE_IN_BODY &&
           (result == CURLE_OUT_OF_MEMORY || (int)result == RESULT_TOO_LARGE);
}

static void explain_end(struct refusal *refusal, const struct exchange *exchange, CURLcode result)
{
    enum exchange_fault fault = exchange->fault;
    refusal->rule = exchange->name;
    if (fault == EXCHANGE_SOUND && is_line_too_long(exchange, result))
        fault = EXCHANGE_HEAD_TOO_LARGE;
    if (fault == EXCHANGE_SOUND) {
        explain(refusal, exchange, result);
        return;
    }
    refusal->error = fault_answers[fault].error;
    refusal->message = fault_answers[fault].message;
    if (fault == EXCHANGE_BAD_BODY)
        refusal->message = body_fault_reasons[exchange->body.fault];
}

/* The content is whole: ends the answer as its head announced. */
static void complete(struct exchange *exchange)
{
    struct exchange_client *client = exchange->client;
    const struct exchange_outcome outcome = {
        .end = EXCHANGE_ANSWERED,
        .keep_alive = !exchange->closes && exchange_body_is_done(exchange),
    };
    if (exchange->rewriting)
        exchange_rewrite_finish(exchange);
    if (exchange->framing == RESPONSE_CHUNKED) {
        buffer_take(&client->out, &exchange->broker->buffers);
        buffer_append(&client->out, CHUNK_LAST, sizeof(CHUNK_LAST) - 1);
    }
    client->record.end = REQUEST_COMPLETE;
    release(exchange);
    client->sink->end(client, &outcome);
}

void exchange_fail(struct exchange *exchange, const struct refusal *refusal)
{
    struct exchange_client *client = exchange->client;
    const struct exchange_outcome outcome = {
        .end = exchange->phase == EXCHANGE_IN_BODY ? EXCHANGE_BROKEN_OFF : EXCHANGE_REFUSED,
        .keep_alive = exchange->keep_alive && exchange_body_is_done(exchange),
        .refusal = refusal,
    };
    client->record.end =
        exchange->fault == EXCHANGE_BAD_BODY ? REQUEST_REFUSED : REQUEST_UPSTREAM_ERROR;
    release(exchange);
    client->sink->end(client, &outcome);
}

/* The kept connection proved closed before anything was sent on it: asks on a new one. */
static bool ask_again(struct exchange *exchange)
{
    exchange->fault = EXCHANGE_SOUND;
    exchange->attempts = 0;
    curl_easy_setopt(exchange->easy, CURLOPT_FRESH_CONNECT, 1L);
    if (exchange_start_transfer(exchange))
        return true;
    exchange->fault = EXCHANGE_STALE;
    return false;
}

/* The transfer has ended with `result`; its handle is no longer in libcurl's pool. */
static void end(struct exchange *exchange, CURLcode result)
{
    if (exchange->fault == EXCHANGE_STALE && ask_again(exchange))
        return;
    if (exchange->fault == EXCHANGE_PART && exchange_rewrite_ask_whole(exchange))
        return;
    if (exchange_try_next(exchange, result))
        return;
    bool whole = exchange->phase == EXCHANGE_IN_BODY &&
                 (exchange->framing != RESPONSE_LENGTH || exchange->left == 0) &&
                 exchange_rewrite_is_whole(exchange);
    if (result == CURLE_OK && whole && exchange->fault == EXCHANGE_SOUND) {
        complete(exchange);
        return;
    }
    struct refusal refusal = {0};
    explain_end(&refusal, exchange, result == CURLE_OK ? CURLE_PARTIAL_FILE : result);
    exchange_fail(exchange, &refusal);
}

bool exchange_resume(struct exchange *exchange)
{
    bool upload = exchange->upload_paused && buffer_length(&exchange->client->in) > 0;
    bool download = exchange->download_paused && exchange_has_room(exchange);
    if (!upload && !download)
        return false;
    /* set before the call, which may run a callback that pauses again */
    exchange->upload_paused = exchange->upload_paused && !upload;
    exchange->download_paused = exchange->download_paused && !download;
    int pause = (exchange->upload_paused ? CURLPAUSE_SEND : 0) |
                (exchange->download_paused ? CURLPAUSE_RECV : 0);
    CURLcode code = curl_easy_pause(exchange->easy, pause);
    if (code != CURLE_OK && !exchange->client->left) {
        curl_multi_remove_handle(exchange->pool->multi, exchange->easy);
        end(exchange, code);
    }
    return true;
}

void exchange_finished(CURL *easy, CURLcode result)
{
    struct exchange *exchange = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&exchange);
    struct exchange_client *client = exchange->client;
    if (client->left) {
        release(exchange);
        client->sink->end(client, &(struct exchange_outcome){.end = EXCHANGE_ABANDONED});
        return;
    }
    end(exchange, result);
}

void exchange_expire(struct exchange *exchange)
{
    bool client_owes = exchange->upload_paused && !exchange_body_is_done(exchange);
    struct refusal refusal = {
        .error = client_owes ? BROKER_ERROR_REQUEST_TIMEOUT : BROKER_ERROR_UPSTREAM_TIMEOUT,
        .rule = exchange->name,
    };
    curl_multi_remove_handle(exchange->pool->multi, exchange->easy);
    exchange_fail(exchange, &refusal);
}

void exchange_cancel(struct exchange *exchange)
{
    curl_multi_remove_handle(exchange->pool->multi, exchange->easy);
    release(exchange);
}
