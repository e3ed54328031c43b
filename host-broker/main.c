/* codev-broker: passes a sandbox's requests to its gateway and named upstreams, and holds the
 * gateway's credential.
 *
 * The table of steps lists what a start does, each step with the exit status of its failure; then
 * the engine runs. doc/broker-protocol.md describes the broker from outside.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/json/json_writer.h"
#include "common/os/cleanup.h"
#include "common/os/io.h"
#include "common/wire/protocol.h"
#include "host-broker/base/process.h"
#include "host-broker/confine/confine.h"
#include "host-broker/keys/curl_memory.h"
#include "host-broker/serve/broker.h"
#include "host-broker/serve/engine.h"

#define READY_LINE_MAX (EGRESS_MAX * (RULE_NAME_MAX + 3) + 16 * 1024) /* names, and the rest */
#define PATH_MAX_BYTES 4096

static struct broker broker; /* too large for the stack */

/* Until the ready line, standard error is the only place for messages. */
static void notice(const char *kind, const char *text)
{
    fprintf(stderr, "codev-broker: %s%s\n", kind, text);
}

static int start_libcurl(struct failure *why)
{
    int result = curl_memory_start();
    return result < 0 ? failure_errno(why, -result, "start libcurl") : 0;
}

static int read_rules(struct failure *why)
{
    char path[PATH_MAX_BYTES], warning[FAILURE_TEXT_MAX];
    bool may_be_absent = false;
    int result = options_rules_path(&broker.options, path, sizeof(path), &may_be_absent);
    if (result < 0)
        return failure_set(why, -result, "the path of the rules file is too long");
    if (path[0] == '\0')
        return 0;
    result = rules_load(&broker.rules, path, why);
    if (result == -ENOENT && may_be_absent)
        return 0;
    for (size_t cursor = 0;
         result == 0 && rules_warning(&broker.rules, &cursor, warning, sizeof(warning));)
        notice("warning: ", warning);
    return result;
}

/* Runs before any secret is read. */
static int start_resolver(struct failure *why)
{
    return broker.options.check
               ? 0
               : proxy_table_open(&broker.proxies, &broker.options.proxy, broker.options.ca_files,
                                  broker.options.ca_file_count, why);
}

static int read_credential(struct failure *why)
{
    if (!broker.options.gateway_token_file)
        return 0; /* --check without a login */
    broker.logged_in = true;
    return credential_open(&broker.credential, broker.options.gateway_token_file, why);
}

static int read_trust(struct failure *why)
{
    struct failure warning;
    trust_init(&broker.trust);
    int result = trust_load(&broker.trust, broker.options.ca_files, broker.options.ca_file_count,
                            &warning, why);
    if (result == 0 && warning.text[0] != '\0')
        notice("warning: ", warning.text);
    return result;
}

static int tell_notices(struct failure *why)
{
    (void)why;
    if (broker.options.gateway_v1_removed)
        notice("notice: ",
               "--gateway-url: /v1 at the end was removed, because requests contain it");
    if (broker.options.gateway_token_file && options_gateway_is_open(&broker.options))
        notice("warning: ",
               "the sandbox can reach the gateway's key management: give --gateway-url a path, or "
               "use --gateway-allow");
    return 0;
}

/* A name and its upstream, for --check. */
static void print_upstream(const char *name, const struct upstream_url *url)
{
    char origin[UPSTREAM_HOST_MAX + 32];
    if (upstream_url_origin(url, origin, sizeof(origin)) >= 0)
        printf("%-16s %s%s\n", name, origin, url->path);
}

static int end_check(struct failure *why)
{
    (void)why;
    if (broker.options.check) {
        printf("configuration is valid: %zu rules, %zu certificate authorities\n",
               broker.rules.count, broker.trust.certificates);
        if (broker.options.gateway_token_file)
            print_upstream("gateway", &broker.options.gateway);
        for (size_t i = 0; i < broker.rules.count; i++)
            print_upstream(broker.rules.rules[i].name, &broker.rules.rules[i].url);
        fflush(stdout);
        _exit(BROKER_EXIT_OK);
    }
    return 0;
}

static int open_log(struct failure *why)
{
    return access_log_open(&broker.log, broker.options.log, why);
}

static int start_engine(struct failure *why)
{
    return engine_open(&broker, why);
}

/* Needed for listeners over TCP only. */
static int start_tls(struct failure *why)
{
    for (size_t i = 0; i < broker.options.listener_count; i++)
        if (endpoint_is_tcp(&broker.options.listeners[i]))
            return tls_server_open(&broker.tls, broker.options.max_connections, why);
    return 0;
}

static int mint_token(struct failure *why)
{
    int result = secret_make_hex(broker.token);
    return result < 0 ? failure_errno(why, -result, "make a token") : 0;
}

static int listen_everywhere(struct failure *why)
{
    umask(077);
    for (size_t i = 0; i < broker.options.listener_count; i++) {
        int result = listener_open(&broker.listeners[i], &broker.options.listeners[i],
                                   broker.options.peer_cid, why);
        if (result < 0)
            return result;
        broker.listener_count++;
    }
    return 0;
}

static int confine(struct failure *why)
{
    static_assert(CONFINE_SOCKETS_MAX >= OPTIONS_LISTENERS_MAX, "room for each listener");
    struct confine_needs needs = {
        .token_file = broker.options.gateway_token_file,
        .ca_files = broker.options.ca_files,
        .ca_file_count = broker.options.ca_file_count,
        .log = broker.log.path,
        .kerberos = broker.options.proxy.mode != PROXY_MODE_NONE,
    };
    for (size_t i = 0; i < broker.listener_count; i++)
        if (broker.listeners[i].endpoint.kind == ENDPOINT_UNIX)
            needs.sockets[needs.socket_count++] = broker.listeners[i].endpoint.path;
    return confine_process(&needs, why);
}

static int announce(struct failure *why)
{
    static char line[READY_LINE_MAX];
    char text[ENDPOINT_TEXT_MAX];
    struct json_writer writer;
    json_writer_start(&writer, line, sizeof(line));
    json_write_object_begin(&writer);
    json_member_string(&writer, "event", "ready");
    json_write_name(&writer, "listen");
    json_write_array_begin(&writer);
    for (size_t i = 0; i < broker.listener_count; i++) {
        endpoint_format(&broker.listeners[i].endpoint, text);
        json_write_string(&writer, text);
    }
    json_write_array_end(&writer);
    json_member_string(&writer, "token", broker.token);
    if (broker.tls.pin[0] != '\0') {
        json_member_string(&writer, "pin", broker.tls.pin);
    } else {
        json_write_name(&writer, "pin");
        json_write_null(&writer);
    }
    json_write_name(&writer, "egress");
    json_write_array_begin(&writer);
    json_write_string(&writer, "gateway");
    for (size_t i = 0; i < broker.rules.count; i++)
        json_write_string(&writer, broker.rules.rules[i].name);
    json_write_array_end(&writer);
    json_write_object_end(&writer);
    int length = json_writer_finish(&writer, true);
    int result = length < 0 ? length : io_write_full(STDOUT_FILENO, line, (size_t)length);
    secret_wipe(line, sizeof(line));
    return result < 0 ? failure_errno(why, -result, "write the ready line to standard output") : 0;
}

static const struct step {
    int (*run)(struct failure *why);
    enum broker_exit status; /* when it fails */
} steps[] = {
    {start_libcurl, BROKER_EXIT_INTERNAL},
    {read_rules, BROKER_EXIT_CONFIGURATION},
    {start_resolver, BROKER_EXIT_INTERNAL},
    {read_credential, BROKER_EXIT_CREDENTIAL},
    {read_trust, BROKER_EXIT_CONFIGURATION},
    {tell_notices, BROKER_EXIT_OK},
    {end_check, BROKER_EXIT_OK},
    {open_log, BROKER_EXIT_CONFIGURATION},
    {start_engine, BROKER_EXIT_INTERNAL},
    {start_tls, BROKER_EXIT_INTERNAL},
    {mint_token, BROKER_EXIT_INTERNAL},
    {listen_everywhere, BROKER_EXIT_UNAVAILABLE},
    {confine, BROKER_EXIT_INTERNAL},
    {announce, BROKER_EXIT_UNAVAILABLE},
};

static void clean_up(void)
{
    proxy_table_close(&broker.proxies);
    engine_close(&broker);
    access_log_close(&broker.log);
    credential_close(&broker.credential);
    trust_close(&broker.trust);
    secret_wipe(broker.token, sizeof(broker.token));
    curl_global_cleanup();
}

/* Returns an exit status when there is nothing more to do, or -1. */
static int read_options(int argc, char **argv)
{
    struct failure why;
    switch (options_parse(&broker.options, argc, argv, &why)) {
    case OPTIONS_RUN:
        return -1;
    case OPTIONS_HELP:
        options_print_help(stdout);
        return BROKER_EXIT_OK;
    case OPTIONS_VERSION:
        printf("codev-broker %s\n", CODEV_VERSION);
        return BROKER_EXIT_OK;
    }
    notice("", why.text);
    notice("", "try --help");
    return BROKER_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct failure why;
    if (argc > 1 && strcmp(argv[1], PAC_RESOLVER_ARGUMENT) == 0)
        return pac_resolver_main(argc, argv);
    process_harden();
    broker.proxies.resolver.fd = -1;
    int status = read_options(argc, argv);
    if (status >= 0)
        return status;
    for (size_t i = 0; i < ARRAY_LENGTH(steps); i++) {
        if (steps[i].run(&why) < 0) {
            notice("", why.text);
            credential_close(&broker.credential);
            proxy_table_close(&broker.proxies);
            for (size_t j = 0; j < broker.listener_count; j++)
                listener_close(&broker.listeners[j]);
            return steps[i].status;
        }
    }
    engine_run(&broker);
    clean_up();
    return BROKER_EXIT_OK;
}
