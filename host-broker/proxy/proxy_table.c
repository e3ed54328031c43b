/* Questions to the proxy resolver, its answers, and how long they are kept. */
#include "host-broker/proxy/proxy_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *get_variable(const char *name)
{
    return getenv(name);
}

int proxy_table_open(struct proxy_table *table, const struct proxy_options *options,
                     const char *const *ca_files, size_t ca_file_count, struct failure *why)
{
    table->options = options;
    table->ca_files = ca_files;
    table->ca_file_count = ca_file_count;
    table->resolver.fd = -1;
    table->deadline = NEVER;
    proxy_settings_read(&table->settings, options, get_variable);
    if (!proxy_settings_need_resolver(&table->settings))
        return 0;
    return resolver_start(&table->resolver, ca_files, ca_file_count, why);
}

int proxy_table_watch(struct proxy_table *table, struct event_loop *loop)
{
    struct event_ref ref = {.source = EVENT_RESOLVER};
    table->loop = loop;
    return table->resolver.fd < 0 ? 0
                                  : event_loop_add(loop, table->resolver.fd, EVENT_READABLE, ref);
}

static void stop_resolver(struct proxy_table *table)
{
    if (table->resolver.fd >= 0 && table->loop)
        event_loop_remove(table->loop, table->resolver.fd);
    resolver_stop(&table->resolver);
}

static void refuse(struct proxy_table *table, struct proxy_entry *entry, const char *reason)
{
    entry->state = PROXY_REFUSED;
    entry->until = table->loop->now + PROXY_FAILED_KEPT;
    failure_set(&entry->why, 0, "%s", reason);
}

/* Sends a question. If the resolver has died, a new one is started. */
static int send_question(struct proxy_table *table, const struct pac_question *question,
                         struct failure *why)
{
    int result = 0;
    if (table->resolver.fd < 0) {
        result = resolver_start(&table->resolver, table->ca_files, table->ca_file_count, why);
        if (result == 0)
            result = proxy_table_watch(table, table->loop);
        if (result < 0)
            return result;
    }
    result = resolver_ask(&table->resolver, question);
    return result < 0 ? failure_errno(why, -result, "ask the proxy resolver") : 0;
}

static void ask(struct proxy_table *table, struct proxy_entry *entry,
                const struct upstream_url *url, const char *script)
{
    struct pac_question question = {.number = ++table->next_number};
    struct failure why;
    snprintf(question.url, sizeof(question.url), "%s://%s%s%s:%u/", url->https ? "https" : "http",
             url->ipv6 ? "[" : "", url->host, url->ipv6 ? "]" : "", url->port);
    snprintf(question.script, sizeof(question.script), "%s", script);
    int result = send_question(table, &question, &why);
    if (result < 0) {
        refuse(table, entry, why.text);
        return;
    }
    entry->state = PROXY_ASKED;
    entry->outdated = false;
    entry->number = question.number;
    entry->until = table->loop->now + PROXY_RESOLVER_TIMEOUT;
    if (entry->until < table->deadline)
        table->deadline = entry->until;
}

static void know(struct proxy_table *table, struct proxy_entry *entry, int64_t kept)
{
    entry->state = PROXY_KNOWN;
    entry->until = table->loop->now + kept;
    memset(entry->bad_until, 0, sizeof(entry->bad_until));
}

/* Sets the entry's ways if the settings state them; else asks the resolver. */
static void look_up(struct proxy_table *table, struct proxy_entry *entry,
                    const struct upstream_url *url)
{
    const struct proxy_choice *choice = proxy_settings_find(&table->settings, url);
    entry->way = (struct proxy_way){.list.count = 1}; /* direct */
    switch (choice->answer) {
    case PROXY_ANSWER_LIST:
        entry->way.list = choice->list;
        know(table, entry, PROXY_KEPT);
        break;
    case PROXY_ANSWER_SCRIPT:
        ask(table, entry, url, choice->script);
        break;
    case PROXY_ANSWER_SYSTEM:
        ask(table, entry, url, "");
        break;
    case PROXY_ANSWER_BROKEN:
        refuse(table, entry, choice->broken.text);
        break;
    case PROXY_ANSWER_DIRECT:
    case PROXY_ANSWER_COUNT:
        know(table, entry, PROXY_KEPT);
        break;
    }
}

/* Copies the entry's list, with proxies that did not answer at the end. */
static void order(const struct proxy_entry *entry, int64_t now, struct proxy_way *way)
{
    size_t count = 0;
    way->by_script = entry->way.by_script;
    way->unavailable = entry->way.unavailable;
    way->list.count = entry->way.list.count;
    for (int bad = 0; bad < 2; bad++)
        for (size_t i = 0; i < entry->way.list.count; i++)
            if ((entry->bad_until[i] > now) == bad)
                way->list.proxies[count++] = entry->way.list.proxies[i];
}

enum proxy_state proxy_table_find(struct proxy_table *table, size_t upstream,
                                  const struct upstream_url *url, struct proxy_way *way,
                                  struct failure *why)
{
    struct proxy_entry *entry = &table->entries[upstream];
    if (entry->state == PROXY_UNKNOWN ||
        (entry->state != PROXY_ASKED && entry->until <= table->loop->now))
        look_up(table, entry, url);
    if (entry->state == PROXY_KNOWN)
        order(entry, table->loop->now, way);
    if (entry->state == PROXY_REFUSED)
        *why = entry->why;
    return entry->state;
}

/* Parses the URLs of the desktop's settings, one a line. Malformed ones are left out; -EINVAL when
 * none is left. */
static int read_urls(struct proxy_list *list, char *text, struct failure *why)
{
    char *rest = NULL;
    list->count = 0;
    failure_set(why, 0, "the desktop's settings contain no proxy");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        (void)proxy_list_add_url(list, line, why);
    return list->count > 0 ? 0 : -EINVAL;
}

static void settle_unavailable(struct proxy_table *table, struct proxy_entry *entry,
                               const char *reason)
{
    char text[FAILURE_TEXT_MAX];
    if (!table->options->pac_mandatory) {
        entry->way = (struct proxy_way){.list.count = 1, .unavailable = true};
        know(table, entry, PROXY_UNAVAILABLE_KEPT);
        return;
    }
    snprintf(text, sizeof(text),
             "the PAC script is unavailable, and --pac-mandatory is set: %.300s", reason);
    refuse(table, entry, text);
}

static void settle(struct proxy_table *table, struct proxy_entry *entry, struct pac_reply *reply)
{
    char text[FAILURE_TEXT_MAX], copy[PROXY_RESULT_MAX + 1];
    struct failure why;
    switch ((enum pac_verdict)reply->verdict) {
    case PAC_RESULT:
        entry->way.by_script = true;
        if (proxy_list_parse_result(&entry->way.list, slice_of(reply->text)) == 0)
            know(table, entry, PROXY_KEPT);
        else
            refuse(table, entry, "the PAC script returned no proxy of a known kind");
        break;
    case PAC_PROXIES:
        memcpy(copy, reply->text,
               sizeof(copy)); /* strtok_r changes it, and the reply goes to the log */
        if (read_urls(&entry->way.list, copy, &why) == 0)
            know(table, entry, PROXY_KEPT);
        else
            refuse(table, entry, why.text);
        break;
    case PAC_UNAVAILABLE:
        settle_unavailable(table, entry, reply->text);
        break;
    case PAC_FAILED:
    case PAC_VERDICT_COUNT:
        snprintf(text, sizeof(text), "finding the proxy failed: %.300s", reply->text);
        refuse(table, entry, text);
        break;
    }
}

static int find_number(const struct proxy_table *table, uint32_t number)
{
    for (int i = 0; i < PROXY_UPSTREAMS_MAX; i++)
        if (table->entries[i].state == PROXY_ASKED && table->entries[i].number == number)
            return i;
    return -1;
}

/* The upstream of a question that stays without an answer, because the resolver has died or hangs;
 * -1 when there is none. */
static int find_overdue(struct proxy_table *table)
{
    int64_t earliest = NEVER;
    for (int i = 0; i < PROXY_UPSTREAMS_MAX; i++) {
        struct proxy_entry *entry = &table->entries[i];
        if (entry->state != PROXY_ASKED)
            continue;
        if (table->resolver.fd < 0 || entry->until <= table->loop->now)
            return i;
        if (entry->until < earliest)
            earliest = entry->until;
    }
    table->deadline = earliest;
    return -1;
}

/* Receives a reply: its upstream, or -1 when there is none. Stops a resolver that has ended. */
static int take_reply(struct proxy_table *table, struct pac_reply *reply)
{
    int result = 1, upstream = -1;
    while (upstream < 0 && result > 0 && table->resolver.fd >= 0) {
        result = resolver_hear(&table->resolver, reply);
        if (result > 0)
            upstream = find_number(table, reply->number);
    }
    if (result < 0)
        stop_resolver(table);
    return upstream;
}

int proxy_table_hear(struct proxy_table *table, enum pac_verdict *verdict, const char **text)
{
    static struct pac_reply reply;
    int upstream = take_reply(table, &reply);
    if (upstream < 0) {
        upstream = find_overdue(table);
        if (upstream < 0)
            return -1;
        stop_resolver(table);
        reply = (struct pac_reply){.verdict = PAC_FAILED,
                                   .text = "the proxy resolver died or did not answer"};
    }
    struct proxy_entry *entry = &table->entries[upstream];
    settle(table, entry, &reply);
    if (entry->outdated)
        entry->until = table->loop->now + 1;
    *verdict = (enum pac_verdict)reply.verdict;
    *text = reply.text;
    return upstream;
}

static bool same_proxy(const struct proxy *a, const struct proxy *b)
{
    return a->kind == b->kind && a->port == b->port && strcmp(a->host, b->host) == 0;
}

void proxy_table_note_bad(struct proxy_table *table, size_t upstream, const struct proxy *proxy)
{
    struct proxy_entry *entry = &table->entries[upstream];
    if (entry->state != PROXY_KNOWN)
        return;
    for (size_t i = 0; i < entry->way.list.count; i++)
        if (same_proxy(&entry->way.list.proxies[i], proxy))
            entry->bad_until[i] = table->loop->now + PROXY_BAD;
}

void proxy_table_forget(struct proxy_table *table, size_t upstream)
{
    if (table->entries[upstream].state != PROXY_ASKED)
        table->entries[upstream].state = PROXY_UNKNOWN;
}

void proxy_table_forget_all(struct proxy_table *table)
{
    for (int i = 0; i < PROXY_UPSTREAMS_MAX; i++)
        if (table->entries[i].state == PROXY_ASKED)
            table->entries[i].outdated = true;
        else if (table->entries[i].state != PROXY_UNKNOWN)
            table->entries[i].state = PROXY_UNKNOWN;
}

void proxy_table_close(struct proxy_table *table)
{
    stop_resolver(table);
}
