/* Which way an exchange takes: see exchange.h and proxy_table.h.
 *
 * The ways are tried in order, each for a connection only: the next one follows when a proxy (or, where
 * the list says direct, the upstream) could not be reached or did not speak its protocol. A proxy that
 * answers has decided, whatever it says: its refusal is the client's answer. There is never a way that the
 * list does not name.
 *
 * Credentials: user and password of a proxy's URL go to that proxy, by the strongest of Digest, NTLM and
 * Basic that it offers, then by Negotiate if it offers nothing else; without a password a proxy that the
 * user configured may get Negotiate. One that a script chose gets Negotiate if --proxy-auth-host names it,
 * else nothing.
 */
#include "host-broker/serve/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONNECT_TIMEOUT_BEFORE_NEXT_MS 4000L /* where another way follows */

static const struct proxy *present(const struct exchange *exchange)
{
    return &exchange->way.list.proxies[exchange->way_index];
}

static bool may_negotiate(const struct exchange *exchange, const struct proxy *proxy)
{
    const struct proxy_options *options = &exchange->connection->broker->options.proxy;
    if (!exchange->way.by_script)
        return true;
    for (size_t i = 0; i < options->auth_host_count; i++)
        if (strcasecmp(options->auth_hosts[i], proxy->host) == 0)
            return true;
    return false;
}

/* libcurl waits for the proxy's 407 when it may choose among several, and speaks at once when there is
 * one. A body that the proxy reads itself (http to the upstream) cannot be sent twice: then Basic. */
static long choose_authentication(const struct exchange *exchange, const struct proxy *proxy)
{
    if (proxy->user[0] != '\0' && exchange->forwarded && exchange->once)
        return CURLAUTH_BASIC;
    if (proxy->user[0] != '\0' && !exchange->negotiates)
        return CURLAUTH_BASIC | CURLAUTH_DIGEST | CURLAUTH_NTLM;
    /* Bearer is nothing that libcurl does with proxies: it makes two to choose from */
    return may_negotiate(exchange, proxy) ? (long)(CURLAUTH_NEGOTIATE | CURLAUTH_BEARER)
                                          : (long)CURLAUTH_NONE;
}

static void set_authentication(struct exchange *exchange, const struct proxy *proxy)
{
    CURL *easy = exchange->easy;
    bool negotiate = may_negotiate(exchange, proxy);
    /* an empty user is how libcurl is told to use the system's ticket */
    const char *user = proxy->user[0] == '\0' && negotiate ? ":" : NULL;
    curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, user);
    curl_easy_setopt(easy, CURLOPT_PROXYAUTH, choose_authentication(exchange, proxy));
    curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH,
                     negotiate ? (long)(CURLAUTH_BASIC | CURLAUTH_GSSAPI) : (long)CURLAUTH_BASIC);
}

static size_t upstream_of(const struct exchange *exchange)
{
    const struct rules *rules = &exchange->connection->broker->rules;
    return exchange->rule == NULL ? 0 : (size_t)(exchange->rule - rules->rules) + 1;
}

/* What was checked is what is sent; of the URL libcurl then needs no more than where to connect to. A plain request that a
 * proxy forwards names the whole URL instead. */
static void set_target(struct exchange *exchange)
{
    const char *target = exchange->url + exchange->origin_length;
    CURLU *origin = exchange->connection->broker->origins[upstream_of(exchange)];
    curl_easy_setopt(exchange->easy, CURLOPT_REQUEST_TARGET, exchange->forwarded ? NULL : target);
    curl_easy_setopt(exchange->easy, CURLOPT_CURLU, exchange->forwarded ? NULL : origin);
}

static void set_way(struct exchange *exchange)
{
    const struct proxy *proxy = present(exchange);
    struct log_record *record = &exchange->connection->record;
    char url[PROXY_URL_MAX];
    bool last = exchange->way_index + 1 == exchange->way.list.count;
    exchange->proxied = proxy->kind != PROXY_DIRECT;
    exchange->forwarded =
        !exchange->origin->https && (proxy->kind == PROXY_HTTP || proxy->kind == PROXY_HTTPS);
    exchange->error_text[0] = '\0';
    proxy_format_label(proxy, record->proxy);
    if (exchange->way.unavailable)
        snprintf(record->proxy, sizeof(record->proxy), "pac-unavailable");
    proxy_format_url(proxy, true, url);
    /* both, always: else libcurl looks into the environment */
    curl_easy_setopt(exchange->easy, CURLOPT_PROXY, url);
    curl_easy_setopt(exchange->easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(exchange->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     last ? CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_BEFORE_NEXT_MS);
    set_authentication(exchange, proxy);
    set_target(exchange);
}

static bool start_transfer(struct exchange *exchange)
{
    set_way(exchange);
    return curl_multi_add_handle(exchange->pool->multi, exchange->easy) == CURLM_OK;
}

int exchange_begin(struct exchange *exchange, struct refusal *refusal)
{
    struct broker *broker = exchange->connection->broker;
    struct failure why;
    exchange->waiting = false;
    exchange->way_index = 0;
    switch (proxy_table_find(&broker->proxies, upstream_of(exchange), exchange->origin,
                             &exchange->way, &why)) {
    case PROXY_KNOWN:
        if (start_transfer(exchange))
            return 0;
        *refusal = (struct refusal){.error = BROKER_ERROR_INTERNAL, .rule = exchange->name};
        return -ENOMEM;
    case PROXY_REFUSED:
        *refusal = (struct refusal){.error = BROKER_ERROR_PROXY, .rule = exchange->name};
        snprintf(refusal->text, sizeof(refusal->text), "%s", why.text);
        refusal->message = refusal->text;
        return -EHOSTUNREACH;
    case PROXY_ASKED:
    case PROXY_UNKNOWN:
    case PROXY_STATE_COUNT:
        break;
    }
    exchange->waiting = true;
    return 0;
}

/* True when a connection was never there to send the request on, and no proxy has answered either. */
static bool was_not_reached(const struct exchange *exchange, CURLcode result)
{
    long status = 0, socks = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    curl_easy_getinfo(exchange->easy, CURLINFO_PROXY_ERROR, &socks);
    if (exchange->attempts > 0 || exchange->fault != EXCHANGE_SOUND ||
        exchange->phase != EXCHANGE_AWAITING || status != 0)
        return false;
    switch ((int)result) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_OPERATION_TIMEDOUT:
        return true;
    case CURLE_PROXY: /* a SOCKS proxy's refusal is its answer; another version's is not */
        return socks < CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED || socks > CURLPX_REPLY_UNASSIGNED ||
               socks == CURLPX_BAD_VERSION;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return present(exchange)->kind == PROXY_HTTPS;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
        return exchange->proxied;
    default:
        return false;
    }
}

/* The proxy wants a login that only Negotiate can give, and it was not tried yet. */
static bool wants_negotiate(const struct exchange *exchange)
{
    const struct proxy *proxy = present(exchange);
    long status = 0, offered = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_HTTP_CONNECTCODE, &status);
    curl_easy_getinfo(exchange->easy, CURLINFO_PROXYAUTH_AVAIL, &offered);
    return status == 407 && (offered & (long)CURLAUTH_NEGOTIATE) != 0 && !exchange->negotiates &&
           proxy->user[0] != '\0' && exchange->attempts == 0;
}

bool exchange_try_next(struct exchange *exchange, CURLcode result)
{
    struct proxy_table *table = &exchange->connection->broker->proxies;
    if (result == CURLE_OK)
        return false;
    if (wants_negotiate(exchange)) {
        exchange->negotiates = true;
        return start_transfer(exchange);
    }
    if (!was_not_reached(exchange, result))
        return false;
    proxy_table_note_bad(table, upstream_of(exchange), present(exchange));
    exchange->negotiates = false;
    if (exchange->way_index + 1 < exchange->way.list.count) {
        exchange->way_index++;
        return start_transfer(exchange);
    }
    if (exchange->proxied || exchange->way.list.count > 1)
        proxy_table_forget(table, upstream_of(exchange));
    return false;
}

/* For the app and whoever reads standard error. */
static void report(struct broker *broker, enum pac_verdict verdict, const char *text)
{
    bool trouble = verdict == PAC_UNAVAILABLE || verdict == PAC_FAILED;
    if (verdict == PAC_UNAVAILABLE)
        broker_warn(broker, "the PAC script is unavailable, so %s: %s",
                    broker->options.proxy.pac_mandatory ? "requests are refused"
                                                        : "connections are direct",
                    text);
    else if (verdict == PAC_FAILED)
        broker_warn(broker, "no way through the proxies could be found: %s", text);
    if (trouble || broker->proxy_trouble)
        access_log_event(&broker->log, "proxy", "state",
                         !trouble                     ? "available"
                         : verdict == PAC_UNAVAILABLE ? "pac-unavailable"
                                                      : "pac-failed");
    broker->proxy_trouble = trouble;
}

void exchange_hear_proxies(struct broker *broker)
{
    enum pac_verdict verdict;
    const char *text;
    struct refusal refusal;
    for (int upstream; (upstream = proxy_table_hear(&broker->proxies, &verdict, &text)) >= 0;) {
        report(broker, verdict, text);
        for (unsigned i = 0; i < broker->options.max_requests; i++) {
            struct exchange *exchange = &broker->exchanges[i];
            if (exchange->connection == NULL || !exchange->waiting ||
                upstream_of(exchange) != (size_t)upstream)
                continue;
            if (exchange_begin(exchange, &refusal) < 0)
                exchange_fail(exchange, &refusal);
        }
    }
}
