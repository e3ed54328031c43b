/* Rules found by name, and by the address of a link. Both orders are lists of indices, made once, so that the rules
 * themselves stay in the file's order, which decides among equals and is what messages show.
 *
 *     by_name       bytes of the name
 *     by_address    host, port, scheme; then the path in its normal form, where nothing sorts before a slash; of equals the
 *                   file's first stands last
 *     above         for each place in by_address the place of the nearest rule under whose path this rule's own lies
 *
 * Where a slash sorts first, all that stands between a folder and what lies in it lies in that folder too. So of the rules above
 * a link the deepest is found from the last one that is not behind the link: either itself, or above it.
 */
#include <stdint.h>

#include "host-broker/rules/rules.h"

#define NOTHING_ABOVE UINT16_MAX

_Static_assert(RULES_MAX < UINT16_MAX, "an index is 16 bits");

/* One character of a path in its normal form: %7E is ~, %2f is %2F, neither is a slash. Encoded ones that stay encoded are
 * told apart by 256. */
static int next_normal(struct slice path, size_t *at)
{
    unsigned char byte = (unsigned char)path.bytes[(*at)++];
    if (byte != '%' || *at + 2 > path.length)
        return byte;
    int high = ascii_hex_value(path.bytes[*at]), low = ascii_hex_value(path.bytes[*at + 1]);
    if (high < 0 || low < 0)
        return byte;
    *at += 2;
    int value = high * 16 + low;
    return upstream_url_is_unreserved(value) ? value : 256 + value;
}

static int rank(int character)
{
    return character == '/' ? 0 : character;
}

/* How much of both is the same, byte for byte and without escapes: by far the most. */
static size_t skip_same(struct slice a, struct slice b)
{
    size_t shorter = a.length < b.length ? a.length : b.length, at = 0;
    while (at < shorter && a.bytes[at] == b.bytes[at] && a.bytes[at] != '%')
        at++;
    return at;
}

static int compare_paths(struct slice a, struct slice b)
{
    size_t at_a = skip_same(a, b), at_b = at_a;
    while (at_a < a.length && at_b < b.length) {
        int order = rank(next_normal(a, &at_a)) - rank(next_normal(b, &at_b));
        if (order != 0)
            return order;
    }
    return (at_a < a.length) - (at_b < b.length);
}

static bool path_lies_under(struct slice path, struct slice prefix, struct slice *rest)
{
    size_t at = skip_same(path, prefix);
    for (size_t i = at; i < prefix.length;) {
        if (at == path.length || next_normal(path, &at) != next_normal(prefix, &i))
            return false;
    }
    if (at < path.length && path.bytes[at] != '/')
        return false;
    *rest = (struct slice){path.bytes + at, path.length - at};
    return true;
}

static int compare_origins(const struct upstream_url *a, const struct upstream_url *b)
{
    int order = strcmp(a->host, b->host);
    if (order == 0)
        order = (int)a->port - (int)b->port;
    return order == 0 ? a->https - b->https : order;
}

static struct slice prefix_of(const struct rule *rule)
{
    return (struct slice){rule->url.path, rule->url.prefix_length};
}

struct address {
    const struct upstream_url *origin;
    struct slice path;
};

static struct address address_of(const struct rule *rule)
{
    return (struct address){&rule->url, prefix_of(rule)};
}

/* A rule against what is looked for: negative when it stands before. */
typedef int compare_function(const struct rule *rule, const void *wanted);

static int compare_name(const struct rule *rule, const void *wanted)
{
    const struct slice *name = wanted;
    struct slice own = slice_of(rule->name);
    int order =
        memcmp(own.bytes, name->bytes, own.length < name->length ? own.length : name->length);
    return order == 0 ? (own.length > name->length) - (own.length < name->length) : order;
}

static int compare_address(const struct rule *rule, const void *wanted)
{
    const struct address *address = wanted;
    int order = compare_origins(&rule->url, address->origin);
    return order == 0 ? compare_paths(prefix_of(rule), address->path) : order;
}

/* How many of the first `count` in the list stand before what is wanted; with `equal`, before or at it. */
static size_t bound(const struct rules *rules, const uint16_t *list, size_t count,
                    compare_function *compare, const void *wanted, bool equal)
{
    size_t first = 0, end = count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        int order = compare(&rules->rules[list[middle]], wanted);
        if (order < 0 || (equal && order == 0))
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Takes the rule behind the first `count` into the list of these: before all that are equal. */
static void insert(const struct rules *rules, uint16_t *list, size_t count,
                   compare_function *compare, const void *wanted)
{
    size_t at = bound(rules, list, count, compare, wanted, false);
    memmove(&list[at + 1], &list[at], (count - at) * sizeof(*list));
    list[at] = (uint16_t)count;
}

static const struct rule *rule_at(const struct rules *rules, size_t place)
{
    return &rules->rules[rules->by_address[place]];
}

/* From this place the nearest upwards under whose rule the address lies. */
static uint16_t climb(const struct rules *rules, uint16_t place, const struct address *address,
                      struct slice *rest)
{
    while (place != NOTHING_ABOVE &&
           (compare_origins(&rule_at(rules, place)->url, address->origin) != 0 ||
            !path_lies_under(address->path, prefix_of(rule_at(rules, place)), rest)))
        place = rules->above[place];
    return place;
}

/* What equals another lies under it, but not deeper: they share what is above. */
static void note_above(struct rules *rules, size_t place)
{
    struct address address = address_of(rule_at(rules, place));
    struct slice rest = {"", 0};
    uint16_t above = place == 0 ? NOTHING_ABOVE : (uint16_t)(place - 1);
    above = climb(rules, above, &address, &rest);
    rules->above[place] = above != NOTHING_ABOVE && rest.length == 0 ? rules->above[above] : above;
}

void rules_sort(struct rules *rules)
{
    for (size_t i = 0; i < rules->count; i++) {
        struct slice name = slice_of(rules->rules[i].name);
        struct address address = address_of(&rules->rules[i]);
        insert(rules, rules->by_name, i, compare_name, &name);
        insert(rules, rules->by_address, i, compare_address, &address);
    }
    for (size_t place = 0; place < rules->count; place++)
        note_above(rules, place);
}

const struct rule *rules_find(const struct rules *rules, struct slice name)
{
    if (name.length == 0)
        return NULL;
    size_t place = bound(rules, rules->by_name, rules->count, compare_name, &name, false);
    if (place == rules->count)
        return NULL;
    const struct rule *rule = &rules->rules[rules->by_name[place]];
    return compare_name(rule, &name) == 0 ? rule : NULL;
}

const struct rule *rules_find_address(const struct rules *rules, const struct rule *preferred,
                                      const struct upstream_url *origin, struct slice path,
                                      struct slice *rest)
{
    struct address address = {origin, path};
    size_t before = bound(rules, rules->by_address, rules->count, compare_address, &address, true);
    if (before == 0)
        return NULL;
    uint16_t place = climb(rules, (uint16_t)(before - 1), &address, rest);
    if (place == NOTHING_ABOVE)
        return NULL;
    const struct rule *rule = rule_at(rules, place);
    if (preferred && preferred != rule) {
        address = address_of(rule);
        rule = compare_address(preferred, &address) == 0 ? preferred : rule;
    }
    return rule;
}
