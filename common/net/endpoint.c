/* The text forms of endpoints. Parsing is strict: formatting gives the same text again, so a port
 * has no leading zero or sign, and an address is a literal, never a name to resolve.
 */
#include "common/net/endpoint.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/net/endpoint_internal.h"

#define PORT_TCP_MAX 65535u
#define PORT_VSOCK_MAX (ENDPOINT_VSOCK_ANY - 1)
#define CID_MAX (ENDPOINT_VSOCK_ANY - 1)

static const char *const kind_prefixes[] = {"vsock:", "tcp:", "tcp:[", "tcp:gateway", "unix:"};
static_assert(sizeof(kind_prefixes) / sizeof(kind_prefixes[0]) == ENDPOINT_KIND_COUNT,
              "a prefix for every kind");

static_assert(ENDPOINT_PATH_MAX == sizeof(((struct sockaddr_un *)0)->sun_path), "a path's limit");

bool endpoint_is_tcp(const struct endpoint *endpoint)
{
    switch (endpoint->kind) {
    case ENDPOINT_TCP4:
    case ENDPOINT_TCP6:
    case ENDPOINT_TCP_GATEWAY:
        return true;
    case ENDPOINT_VSOCK:
    case ENDPOINT_UNIX:
    case ENDPOINT_KIND_COUNT:
        break;
    }
    return false;
}

/* A decimal number without sign or leading zero, at most `max`. Returns the text behind it or
 * NULL. */
static const char *parse_number(const char *text, uint32_t max, uint32_t *out)
{
    if (text[0] < '0' || text[0] > '9' || (text[0] == '0' && text[1] >= '0' && text[1] <= '9'))
        return NULL;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > max)
            return NULL;
    }
    *out = (uint32_t)value;
    return text;
}

/* The number that ends an endpoint's text. */
static bool parse_port(const char *text, uint32_t max, bool listen, uint32_t *out)
{
    text = parse_number(text, max, out);
    return text && *text == '\0' && (listen || *out != 0);
}

static bool parse_vsock(struct endpoint *out, const char *text, bool listen)
{
    out->kind = ENDPOINT_VSOCK;
    out->cid = ENDPOINT_VSOCK_ANY;
    if (!listen) {
        text = parse_number(text, CID_MAX, &out->cid);
        if (!text || *text++ != ':')
            return false;
    }
    return parse_port(text, PORT_VSOCK_MAX, listen, &out->port);
}

static bool parse_tcp(struct endpoint *out, const char *text, bool listen)
{
    const char *colon = strrchr(text, ':');
    char host[INET6_ADDRSTRLEN + 2];
    size_t length = colon ? (size_t)(colon - text) : sizeof(host);
    if (length == 0 || length >= sizeof(host) ||
        !parse_port(colon + 1, PORT_TCP_MAX, listen, &out->port))
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (strcmp(host, "gateway") == 0) {
        out->kind = ENDPOINT_TCP_GATEWAY;
        return !listen;
    }
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        out->kind = ENDPOINT_TCP6;
        return inet_pton(AF_INET6, host + 1, out->address) == 1;
    }
    out->kind = ENDPOINT_TCP4;
    return inet_pton(AF_INET, host, out->address) == 1;
}

static bool parse_unix(struct endpoint *out, const char *path)
{
    size_t length = strlen(path);
    out->kind = ENDPOINT_UNIX;
    if (path[0] != '/' || length >= sizeof(out->path))
        return false;
    memcpy(out->path, path, length + 1);
    return true;
}

static int parse(struct endpoint *out, const char *text, bool listen, struct failure *why)
{
    struct endpoint parsed = {0};
    bool right = false;
    if (strncmp(text, "vsock:", 6) == 0)
        right = parse_vsock(&parsed, text + 6, listen);
    else if (strncmp(text, "tcp:", 4) == 0)
        right = parse_tcp(&parsed, text + 4, listen);
    else if (strncmp(text, "unix:", 5) == 0) {
        if (strlen(text + 5) >= ENDPOINT_PATH_MAX)
            return failure_set(why, EINVAL, "\"%s\": the path is longer than %d bytes", text,
                               ENDPOINT_PATH_MAX - 1);
        right = parse_unix(&parsed, text + 5);
    }
    if (!right)
        return failure_set(why, EINVAL, "\"%s\" is none of %s, tcp:ADDRESS:PORT, unix:/PATH", text,
                           listen ? "vsock:PORT" : "vsock:CID:PORT, tcp:gateway:PORT");
    *out = parsed;
    return 0;
}

int endpoint_parse_dial(struct endpoint *out, const char *text, struct failure *why)
{
    return parse(out, text, false, why);
}

int endpoint_parse_listen(struct endpoint *out, const char *text, struct failure *why)
{
    return parse(out, text, true, why);
}

void endpoint_format(const struct endpoint *endpoint, char out[ENDPOINT_TEXT_MAX])
{
    char address[INET6_ADDRSTRLEN] = "";
    const char *prefix = kind_prefixes[endpoint->kind];
    switch (endpoint->kind) {
    case ENDPOINT_VSOCK:
        if (endpoint->cid == ENDPOINT_VSOCK_ANY)
            snprintf(out, ENDPOINT_TEXT_MAX, "%s%u", prefix, endpoint->port);
        else
            snprintf(out, ENDPOINT_TEXT_MAX, "%s%u:%u", prefix, endpoint->cid, endpoint->port);
        return;
    case ENDPOINT_TCP4:
        inet_ntop(AF_INET, endpoint->address, address, sizeof(address));
        break;
    case ENDPOINT_TCP6:
        inet_ntop(AF_INET6, endpoint->address, address, sizeof(address));
        break;
    case ENDPOINT_TCP_GATEWAY:
        break;
    case ENDPOINT_UNIX:
        snprintf(out, ENDPOINT_TEXT_MAX, "%s%s", prefix, endpoint->path);
        return;
    case ENDPOINT_KIND_COUNT:
        break;
    }
    snprintf(out, ENDPOINT_TEXT_MAX, "%s%s%s:%u", prefix, address,
             endpoint->kind == ENDPOINT_TCP6 ? "]" : "", endpoint->port);
}

static int fill_inet(const struct endpoint *endpoint, struct sockaddr_storage *out)
{
    if (endpoint->kind == ENDPOINT_TCP4) {
        struct sockaddr_in *address = (struct sockaddr_in *)out;
        address->sin_family = AF_INET;
        address->sin_port = htons((uint16_t)endpoint->port);
        memcpy(&address->sin_addr, endpoint->address, 4);
        return sizeof(*address);
    }
    struct sockaddr_in6 *address = (struct sockaddr_in6 *)out;
    address->sin6_family = AF_INET6;
    address->sin6_port = htons((uint16_t)endpoint->port);
    memcpy(&address->sin6_addr, endpoint->address, 16);
    return sizeof(*address);
}

int endpoint_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    switch (endpoint->kind) {
    case ENDPOINT_VSOCK:
        return endpoint_vsock_sockaddr(endpoint, out);
    case ENDPOINT_TCP4:
    case ENDPOINT_TCP6:
        return fill_inet(endpoint, out);
    case ENDPOINT_UNIX: {
        struct sockaddr_un *address = (struct sockaddr_un *)out;
        address->sun_family = AF_UNIX;
        memcpy(address->sun_path, endpoint->path, sizeof(address->sun_path));
        return sizeof(*address);
    }
    case ENDPOINT_TCP_GATEWAY:
    case ENDPOINT_KIND_COUNT:
        break;
    }
    return -EINVAL;
}
