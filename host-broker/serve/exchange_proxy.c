/* The way of an exchange to its upstream: direct or through a proxy (proxy_table.h).
 *
 * The ways of the list are tried in order. The next one follows only when no connection could be
 * made: the proxy (or, for a direct way, the upstream) could not be reached or did not speak its
 * protocol. Once a proxy has answered, its answer is final: a refusal is passed on to the client.
 * No way outside the list is ever tried.
 *
 * Credentials: user and password of a proxy's URL are sent to that proxy by the strongest of
 * Digest, NTLM and Basic that it offers, or by Negotiate if it offers nothing else. Without a
 * password, a proxy that the user configured may get Negotiate. A proxy that a script chose gets
 * Negotiate only if --proxy-auth-host names it.
 */
#include "host-broker/serve/exchange_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CONNECT_TIMEOUT_MS 10000L            /* name, connection and TLS together */
#define CONNECT_TIMEOUT_BEFORE_NEXT_MS 4000L /* if another way follows */

static const struct proxy *present(const struct exchange *exchange)
{
    return &exchange->way.list.proxies[exchange->way_index];
}

static bool may_negotiate(const struct exchange *exchange, const struct proxy *proxy)
{
    const struct proxy_options *options = &exchange->broker->options.proxy;
    if (!exchange->way.by_script)
        return true;
    for (size_t i = 0; i < options->auth_host_count; i++)
        if (strcasecmp(options->auth_hosts[i], proxy->host) == 0)
            return true;
    return false;
}

/* With several methods libcurl waits for the proxy's 407 and then repeats the request; with one it
 * sends the credentials at once. A request that the proxy reads itself and that cannot be sent
 * twice gets Basic. */
static long choose_authentication(const struct exchange *exchange, const struct proxy *proxy)
{
    if (proxy->user[0] != '\0' && exchange->forwarded && exchange->once)
        return CURLAUTH_BASIC;
    if (proxy->user[0] != '\0' && !exchange->negotiates)
        return CURLAUTH_BASIC | CURLAUTH_DIGEST | CURLAUTH_NTLM;
    /* libcurl has no Bearer for proxies: it only makes the methods two, so that libcurl waits */
    return may_negotiate(exchange, proxy) ? (long)(CURLAUTH_NEGOTIATE | CURLAUTH_BEARER)
                                          : (long)CURLAUTH_NONE;
}

static void set_authentication(struct exchange *exchange, const struct proxy *proxy)
{
    CURL *easy = exchange->easy;
    bool negotiate = may_negotiate(exchange, proxy);
    /* an empty user makes libcurl use the system's Kerberos ticket */
    const char *user = proxy->user[0] == '\0' && negotiate ? ":" : NULL;
    curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, user);
    curl_easy_setopt(easy, CURLOPT_PROXYAUTH, choose_authentication(exchange, proxy));
    curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH,
                     negotiate ? (long)(CURLAUTH_BASIC | CURLAUTH_GSSAPI) : (long)CURLAUTH_BASIC);
}

static size_t upstream_of(const struct exchange *exchange)
{
    const struct rules *rules = &exchange->broker->rules;
    return exchange->rule ? (size_t)(exchange->rule - rules->rules) + 1 : 0;
}

/* Sends exactly the target that was checked; libcurl takes only the address from the URL. A plain
 * request that a proxy forwards has the whole URL as its target. */
static void set_target(struct exchange *exchange)
{
    const char *target = exchange->url + exchange->origin_length;
    CURLU *origin = exchange->broker->origins[upstream_of(exchange)];
    curl_easy_setopt(exchange->easy, CURLOPT_REQUEST_TARGET, exchange->forwarded ? NULL : target);
    curl_easy_setopt(exchange->easy, CURLOPT_CURLU, exchange->forwarded ? NULL : origin);
    if (exchange->forwarded) /* libcurl 8.21 forgets the URL when CURLOPT_CURLU changes */
        curl_easy_setopt(exchange->easy, CURLOPT_URL, exchange->url);
}

static void set_way(struct exchange *exchange)
{
    const struct proxy *proxy = present(exchange);
    struct log_record *record = &exchange->client->record;
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
    /* always set: otherwise libcurl reads the environment */
    curl_easy_setopt(exchange->easy, CURLOPT_PROXY, url);
    curl_easy_setopt(exchange->easy, CURLOPT_NOPROXY, "");
    curl_easy_setopt(exchange->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     last ? CONNECT_TIMEOUT_MS : CONNECT_TIMEOUT_BEFORE_NEXT_MS);
    set_authentication(exchange, proxy);
    set_target(exchange);
}

/* Replaces the handle of an ended transfer by a new one with the same options. libcurl 7.88.1 keeps
 * a pointer into the fields of the last answer in a handle that is used again, also after
 * curl_easy_reset: an answer whose first field line begins with a blank makes it write to freed
 * memory (lib/headers.c, unfold_value). */
static bool renew_handle(struct exchange *exchange)
{
    CURL *easy = curl_easy_duphandle(exchange->easy);
    if (!easy)
        return false;
    curl_easy_setopt(easy, CURLOPT_SHARE, exchange->pool->share); /* is not duplicated */
    curl_easy_cleanup(exchange->easy);
    exchange->easy = easy;
    return true;
}

bool exchange_start_transfer(struct exchange *exchange)
{
    if (exchange->transferred && !renew_handle(exchange))
        return false;
    exchange->transferred = true;
    set_way(exchange);
    return curl_multi_add_handle(exchange->pool->multi, exchange->easy) == CURLM_OK;
}

int exchange_begin(struct exchange *exchange, struct refusal *refusal)
{
    struct broker *broker = exchange->broker;
    struct failure why;
    exchange->waiting = false;
    exchange->way_index = 0;
    switch (proxy_table_find(&broker->proxies, upstream_of(exchange), exchange->origin,
                             &exchange->way, &why)) {
    case PROXY_KNOWN:
        if (exchange_start_transfer(exchange))
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

/* True when there never was a connection for the request, and no proxy has answered. */
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
    case CURLE_PROXY: /* a SOCKS proxy's refusal is final; one in another version is not */
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

/* The proxy offers Negotiate, which was not tried yet, and has refused the password. */
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
    struct proxy_table *table = &exchange->broker->proxies;
    if (result == CURLE_OK)
        return false;
    if (wants_negotiate(exchange)) {
        exchange->negotiates = true;
        return exchange_start_transfer(exchange);
    }
    if (!was_not_reached(exchange, result))
        return false;
    proxy_table_note_bad(table, upstream_of(exchange), present(exchange));
    exchange->negotiates = false;
    if (exchange->way_index + 1 < exchange->way.list.count) {
        exchange->way_index++;
        return exchange_start_transfer(exchange);
    }
    if (exchange->proxied || exchange->way.list.count > 1)
        proxy_table_forget(table, upstream_of(exchange));
    return false;
}

/* To the app as an event, to the user on standard error. */
static void report(struct broker *broker, enum pac_verdict verdict, const char *text)
{
    bool trouble = verdict == PAC_UNAVAILABLE || verdict == PAC_FAILED;
    if (verdict == PAC_UNAVAILABLE)
        broker_warn(broker, "the PAC script is unavailable, so %s: %s",
                    broker->options.proxy.pac_mandatory ? "requests are refused"
                                                        : "connections are direct",
                    text);
    else if (verdict == PAC_FAILED)
        broker_warn(broker, "no proxy could be found for an upstream: %s", text);
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
            if (!exchange->client || !exchange->waiting ||
                upstream_of(exchange) != (size_t)upstream)
                continue;
            if (exchange_begin(exchange, &refusal) < 0)
                exchange_fail(exchange, &refusal);
        }
    }
}
