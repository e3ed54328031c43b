/* Matches the entries of NO_PROXY with an upstream. */
#include "host-broker/proxy/no_proxy_internal.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#define SEPARATORS ", \t\r\n"

static bool parse_number(struct slice text, unsigned maximum, unsigned *out)
{
    unsigned number = 0;
    if (text.length == 0 || text.length > 5)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        number = number * 10 + (unsigned)(text.bytes[i] - '0');
    }
    *out = number;
    return number <= maximum;
}

/* Parses an address: its length in bytes (4, 16), or 0 when the text is no address. */
static unsigned parse_address(struct slice text, unsigned char out[16])
{
    char literal[INET6_ADDRSTRLEN];
    if (text.length >= 2 && text.bytes[0] == '[' && text.bytes[text.length - 1] == ']')
        text = (struct slice){text.bytes + 1, text.length - 2};
    if (text.length == 0 || text.length >= sizeof(literal))
        return 0;
    memcpy(literal, text.bytes, text.length);
    literal[text.length] = '\0';
    if (inet_pton(AF_INET, literal, out) == 1)
        return 4;
    return inet_pton(AF_INET6, literal, out) == 1 ? 16 : 0;
}

static bool same_bits(const unsigned char *a, const unsigned char *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

/* ADDRESS or ADDRESS/BITS, for an upstream that is an address. */
static bool matches_address(struct slice entry, const struct upstream_url *url)
{
    unsigned char wanted[16], host[16];
    const char *slash = memchr(entry.bytes, '/', entry.length);
    struct slice address = entry;
    if (slash)
        address.length = (size_t)(slash - entry.bytes);
    unsigned length = parse_address(address, wanted), bits = length * 8;
    if (length == 0 || parse_address(slice_of(url->host), host) != length)
        return false;
    struct slice digits = {slash ? slash + 1 : NULL, entry.length - address.length};
    if (slash && !parse_number((struct slice){digits.bytes, digits.length - 1}, bits, &bits))
        return false;
    return same_bits(wanted, host, bits);
}

/* NAME, .NAME or *.NAME, for an upstream that is a name. */
static bool matches_name(struct slice entry, const struct upstream_url *url)
{
    struct slice host = slice_of(url->host);
    bool below_only = entry.length > 2 && entry.bytes[0] == '*' && entry.bytes[1] == '.';
    size_t skipped = below_only ? 2 : entry.bytes[0] == '.';
    entry = (struct slice){entry.bytes + skipped, entry.length - skipped};
    if (entry.length > 0 && entry.bytes[entry.length - 1] == '.')
        entry.length--;
    if (entry.length == 0 || entry.length > host.length)
        return false;
    size_t before = host.length - entry.length;
    if (!slice_equal_nocase((struct slice){host.bytes + before, entry.length}, entry))
        return false;
    return before == 0 ? !below_only : host.bytes[before - 1] == '.';
}

/* Cuts :PORT off an entry. False when it is another port than the upstream's. An IPv6 address
 * without brackets has no port. */
static bool take_port(struct slice *entry, const struct upstream_url *url)
{
    const char *end = entry->bytes + entry->length;
    const char *colon = memchr(entry->bytes, ':', entry->length);
    unsigned port;
    if (entry->bytes[0] == '[') {
        const char *bracket = memchr(entry->bytes, ']', entry->length);
        colon = bracket && bracket + 1 < end && bracket[1] == ':' ? bracket + 1 : NULL;
    } else if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1))) {
        colon = NULL;
    }
    if (!colon)
        return true;
    struct slice digits = {colon + 1, (size_t)(end - colon - 1)};
    entry->length = (size_t)(colon - entry->bytes);
    return entry->length > 0 && parse_number(digits, UINT16_MAX, &port) && port == url->port;
}

static bool matches_entry(struct slice entry, const struct upstream_url *url)
{
    if (slice_equal(entry, SLICE_LITERAL("*")))
        return true;
    if (!take_port(&entry, url))
        return false;
    return url->ipv4 || url->ipv6 ? matches_address(entry, url) : matches_name(entry, url);
}

bool no_proxy_matches(const char *list, const struct upstream_url *url)
{
    while (list && *list != '\0') {
        list += strspn(list, SEPARATORS);
        size_t length = strcspn(list, SEPARATORS);
        if (length > 0 && matches_entry((struct slice){list, length}, url))
            return true;
        list += length;
    }
    return false;
}
