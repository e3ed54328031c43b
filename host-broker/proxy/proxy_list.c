/* Parses proxies from URLs and from results of PAC scripts, and writes them. */
#include "host-broker/proxy/proxy_list.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/os/cleanup.h"

#define SPACE " \t\r\n"

const char *const proxy_kind_schemes[] = {
    [PROXY_DIRECT] = "direct",   [PROXY_HTTP] = "http",       [PROXY_HTTPS] = "https",
    [PROXY_SOCKS4] = "socks4",   [PROXY_SOCKS4A] = "socks4a", [PROXY_SOCKS5] = "socks5",
    [PROXY_SOCKS5H] = "socks5h",
};
static_assert(ARRAY_LENGTH(proxy_kind_schemes) == PROXY_KIND_COUNT, "a scheme for each");

static const uint16_t default_ports[PROXY_KIND_COUNT] = {
    [PROXY_HTTP] = 80,      [PROXY_HTTPS] = 443,   [PROXY_SOCKS4] = 1080,
    [PROXY_SOCKS4A] = 1080, [PROXY_SOCKS5] = 1080, [PROXY_SOCKS5H] = 1080,
};

/* SOCKS in a script, socks:// in a URL: any version. */
#define SOCKS_ANY PROXY_KIND_COUNT

static int add(struct proxy_list *list, const struct proxy *proxy, enum proxy_kind kind)
{
    if (list->count == PROXY_LIST_MAX)
        return 0;
    list->proxies[list->count] = *proxy;
    list->proxies[list->count].kind = kind;
    list->count++;
    return 0;
}

/* Encodes characters that would end the user for libcurl. Escapes stay as they are. */
static int encode_user(char out[PROXY_USER_MAX + 1], struct slice user)
{
    static const char special[] = "@/?#[]\\\"<>";
    size_t length = 0;
    for (size_t i = 0; i < user.length; i++) {
        char byte = user.bytes[i];
        bool encode = strchr(special, byte) || (unsigned char)byte > 0x7e;
        if (length + (encode ? 3 : 1) > PROXY_USER_MAX)
            return -EMSGSIZE;
        if (encode)
            length += (size_t)snprintf(out + length, 4, "%%%02X", (unsigned char)byte);
        else
            out[length++] = byte;
    }
    out[length] = '\0';
    return 0;
}

/* Adds host[:port] with its kind; SOCKS_ANY adds two. */
static int add_server(struct proxy_list *list, enum proxy_kind kind, struct slice server,
                      struct slice user, struct failure *why)
{
    struct upstream_url url = {.port = kind == SOCKS_ANY ? 1080 : default_ports[kind]};
    struct proxy proxy = {0};
    int result = upstream_url_parse_authority(&url, server, why);
    if (result < 0)
        return result;
    proxy.port = url.port;
    proxy.ipv6 = url.ipv6;
    memcpy(proxy.host, url.host, sizeof(proxy.host));
    if (encode_user(proxy.user, user) < 0)
        return failure_set(why, EINVAL, "user and password are longer than %d characters",
                           PROXY_USER_MAX);
    if (kind != SOCKS_ANY)
        return add(list, &proxy, kind);
    add(list, &proxy, PROXY_SOCKS5H);
    return add(list, &proxy, PROXY_SOCKS4A);
}

/* Cuts "scheme://" off. False when the scheme is unknown. */
static bool take_scheme(struct slice *text, enum proxy_kind *kind)
{
    const char *end = memmem(text->bytes, text->length, "://", 3);
    *kind = PROXY_HTTP;
    if (!end)
        return true;
    struct slice scheme = {text->bytes, (size_t)(end - text->bytes)};
    *text = (struct slice){end + 3, text->length - scheme.length - 3};
    for (int i = 0; i < PROXY_KIND_COUNT; i++) {
        *kind = (enum proxy_kind)i;
        if (slice_equal_nocase(scheme, slice_of(proxy_kind_schemes[i])))
            return true;
    }
    *kind = SOCKS_ANY;
    return slice_equal_nocase(scheme, SLICE_LITERAL("socks"));
}

static bool is_printable(struct slice text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)text.bytes[i] <= ' ' || text.bytes[i] == 0x7f)
            return false;
    return true;
}

int proxy_list_add_url(struct proxy_list *list, const char *url, struct failure *why)
{
    struct slice text = slice_of(url), user = {0};
    enum proxy_kind kind;
    if (!is_printable(text))
        return failure_set(why, EINVAL, "white space or a control character in the proxy's URL");
    if (!take_scheme(&text, &kind))
        return failure_set(why, EINVAL,
                           "the proxy's scheme must be http, https, socks4, socks4a, socks5, "
                           "socks5h or socks");
    if (kind == PROXY_DIRECT)
        return add(list, &(struct proxy){0}, kind);
    /* the last @ counts: a password may contain an @ or a slash that should have been encoded */
    const char *at = text.length > 0 ? memrchr(text.bytes, '@', text.length) : NULL;
    if (at) {
        user = (struct slice){text.bytes, (size_t)(at - text.bytes)};
        text = (struct slice){at + 1, text.length - user.length - 1};
    }
    if (text.length > 0 && text.bytes[text.length - 1] == '/')
        text.length--;
    if (text.length > 0 &&
        (memchr(text.bytes, '/', text.length) || memchr(text.bytes, '?', text.length)))
        return failure_set(why, EINVAL, "the proxy's URL has a path");
    return failure_prefix(why, add_server(list, kind, text, user, why), "the proxy's URL");
}

static const struct {
    const char *word;
    enum proxy_kind kind;
} result_words[] = {
    {"DIRECT", PROXY_DIRECT},   {"PROXY", PROXY_HTTP},     {"HTTP", PROXY_HTTP},
    {"HTTPS", PROXY_HTTPS},     {"SOCKS", SOCKS_ANY},      {"SOCKS4", PROXY_SOCKS4},
    {"SOCKS4A", PROXY_SOCKS4A}, {"SOCKS5", PROXY_SOCKS5H}, /* as browsers do */
};

static struct slice trim(struct slice text)
{
    while (text.length > 0 && memchr(SPACE, text.bytes[0], sizeof(SPACE) - 1))
        text = (struct slice){text.bytes + 1, text.length - 1};
    while (text.length > 0 && memchr(SPACE, text.bytes[text.length - 1], sizeof(SPACE) - 1))
        text.length--;
    return text;
}

static void add_entry(struct proxy_list *list, struct slice entry)
{
    size_t length = 0;
    while (length < entry.length && !memchr(SPACE, entry.bytes[length], sizeof(SPACE) - 1))
        length++;
    struct slice word = {entry.bytes, length};
    struct slice server = trim((struct slice){entry.bytes + length, entry.length - length});
    for (size_t i = 0; i < ARRAY_LENGTH(result_words); i++) {
        if (!slice_equal_nocase(word, slice_of(result_words[i].word)))
            continue;
        if (result_words[i].kind != PROXY_DIRECT)
            (void)add_server(list, result_words[i].kind, server, (struct slice){0}, NULL);
        else if (server.length == 0)
            add(list, &(struct proxy){0}, PROXY_DIRECT);
    }
}

int proxy_list_parse_result(struct proxy_list *list, struct slice result)
{
    list->count = 0;
    result = trim(result);
    if (result.length == 0)
        return add(list, &(struct proxy){0}, PROXY_DIRECT);
    while (result.length > 0) {
        const char *end = memchr(result.bytes, ';', result.length);
        size_t length = end ? (size_t)(end - result.bytes) : result.length;
        add_entry(list, trim((struct slice){result.bytes, length}));
        length += end ? 1 : 0;
        result = (struct slice){result.bytes + length, result.length - length};
    }
    return list->count > 0 ? 0 : -EINVAL;
}

void proxy_format_label(const struct proxy *proxy, char out[PROXY_LABEL_MAX])
{
    if (proxy->kind == PROXY_DIRECT)
        snprintf(out, PROXY_LABEL_MAX, "direct");
    else
        snprintf(out, PROXY_LABEL_MAX, "%s%s%s:%u", proxy->ipv6 ? "[" : "", proxy->host,
                 proxy->ipv6 ? "]" : "", proxy->port);
}

void proxy_format_url(const struct proxy *proxy, bool with_user, char out[PROXY_URL_MAX])
{
    char label[PROXY_LABEL_MAX];
    bool user = with_user && proxy->user[0] != '\0';
    out[0] = '\0';
    if (proxy->kind == PROXY_DIRECT)
        return;
    proxy_format_label(proxy, label);
    snprintf(out, PROXY_URL_MAX, "%s://%s%s%s", proxy_kind_schemes[proxy->kind],
             user ? proxy->user : "", user ? "@" : "", label);
}
