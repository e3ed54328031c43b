/* Parses the text of sandbox-egress.json: syntax, names, URLs, warnings. */
#include "host-broker/rules/rules.h"

#include <errno.h>
#include <stdio.h>

#include "common/json/json.h"
#include "host-broker/http/target.h"

#define URL_TEXT_MAX 2048
#define NUMBER_TEXT_OF(number) #number
#define NUMBER_TEXT(number) NUMBER_TEXT_OF(number)

/* The text that is parsed, for the positions of errors. */
struct parse {
    const char *file;
    const char *text;
    size_t length;
    struct json document;
    struct failure *why;
};

static int refuse(const struct parse *parse, size_t offset, const char *reason)
{
    struct json_position where;
    json_locate(parse->text, parse->length, offset, &where);
    return failure_set(parse->why, EINVAL, "%s:%u:%u: %s", parse->file, where.line, where.column,
                       reason);
}

/* The position of a string is that of its opening quote. */
static int refuse_value(const struct parse *parse, uint32_t index, const char *format,
                        const char *detail)
{
    const struct json_token *token = &parse->document.tokens[index];
    char reason[FAILURE_TEXT_MAX / 2];
    snprintf(reason, sizeof(reason), format, detail);
    return refuse(parse, token->type == JSON_STRING ? token->start - 1 : token->start, reason);
}

const char *rules_check_name(struct slice name)
{
    if (name.length == 0)
        return "a rule's name is empty";
    if (name.length > RULE_NAME_MAX)
        return "a rule's name is longer than 64 characters";
    for (size_t i = 0; i < name.length; i++) {
        char byte = name.bytes[i];
        if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9'))
            continue;
        if (i == 0)
            return "a rule's name must begin with a-z or 0-9";
        if (byte != '.' && byte != '_' && byte != '-')
            return "a rule's name may contain only a-z, 0-9, '.', '_' and '-'";
    }
    if (slice_equal(name, SLICE_LITERAL(TARGET_GATEWAY)))
        return "the name gateway is reserved for the model gateway";
    return NULL;
}

static int parse_name(const struct parse *parse, uint32_t index, struct rule *rule)
{
    char name[4 * RULE_NAME_MAX]; /* a longer name is refused as too long */
    int length = json_string(&parse->document, index, name, sizeof(name));
    if (length == -ENAMETOOLONG)
        length = RULE_NAME_MAX + 1;
    if (length < 0)
        return refuse_value(parse, index, "%s", "a rule's name contains a NUL or a lone surrogate");
    const char *wrong = rules_check_name((struct slice){name, (size_t)length});
    if (wrong)
        return refuse_value(parse, index, "%s", wrong);
    memcpy(rule->name, name, (size_t)length + 1);
    return 0;
}

static int parse_url(const struct parse *parse, uint32_t index, struct rule *rule)
{
    char url[URL_TEXT_MAX];
    struct failure reason;
    enum json_type type = parse->document.tokens[index].type;
    if (type != JSON_STRING)
        return refuse_value(parse, index, "the URL must be a string, not %s",
                            json_type_names[type]);
    int length = json_string(&parse->document, index, url, sizeof(url));
    if (length == -ENAMETOOLONG)
        return refuse_value(parse, index, "%s", "the URL is longer than 2047 bytes");
    if (length < 0)
        return refuse_value(parse, index, "%s", "the URL contains a NUL or a lone surrogate");
    if (upstream_url_parse(&rule->url, url, (size_t)length, &reason) < 0)
        return refuse_value(parse, index, "%s", reason.text);
    return 0;
}

static int parse_members(struct rules *out, const struct parse *parse)
{
    const struct json *document = &parse->document;
    if (document->tokens[0].type != JSON_OBJECT)
        return refuse_value(parse, 0, "expected an object of name to URL, not %s",
                            json_type_names[document->tokens[0].type]);
    uint32_t twice = json_find_duplicate(document, 0);
    if (twice != 0)
        return refuse_value(parse, twice, "%s", "this name is used twice");

    for (uint32_t index = json_first(document, 0); index != 0;
         index = json_next(document, 0, index)) {
        if (out->count == RULES_MAX)
            return refuse_value(parse, index, "%s", "more than " NUMBER_TEXT(RULES_MAX) " rules");
        struct rule *rule = &out->rules[out->count];
        int result = parse_name(parse, index, rule);
        if (result == 0)
            result = parse_url(parse, index + 1, rule);
        if (result < 0)
            return result;
        out->count++;
    }
    return 0;
}

int rules_parse(struct rules *out, const char *file, const char *text, size_t length,
                struct failure *why)
{
    static struct json_token tokens[RULES_TOKENS_MAX]; /* the broker has one thread */
    size_t mark = json_skip_bom(text, length);
    struct parse parse = {.file = file, .text = text + mark, .length = length - mark, .why = why};
    struct json_position where;

    out->count = 0;
    int result =
        json_parse(&parse.document, parse.text, parse.length, tokens, RULES_TOKENS_MAX, &where);
    if (result < 0)
        return refuse(&parse, where.offset, where.reason);
    result = parse_members(out, &parse);
    if (result < 0)
        out->count = 0;
    rules_sort(out);
    return result;
}

static bool has_host(const struct rules *rules, const char *host)
{
    for (size_t i = 0; i < rules->count; i++)
        if (strcmp(rules->rules[i].url.host, host) == 0)
            return true;
    return false;
}

/* Hosts whose pages link to another host, which needs a rule too. */
static const struct {
    const char *host, *companion;
} companions[] = {
    {"pypi.org", "files.pythonhosted.org"},
};

static bool warn_of_http(const struct rule *rule, char *out, size_t size)
{
    if (rule->url.https)
        return false;
    snprintf(out, size,
             "rule %s: http, not https: requests to %s can be read and changed on the way",
             rule->name, rule->url.host);
    return true;
}

static bool warn_of_companion(const struct rules *rules, const struct rule *rule, char *out,
                              size_t size)
{
    for (size_t i = 0; i < sizeof(companions) / sizeof(companions[0]); i++) {
        if (strcmp(rule->url.host, companions[i].host) != 0 ||
            has_host(rules, companions[i].companion))
            continue;
        snprintf(out, size, "rule %s: %s links to %s: downloads need a rule for https://%s too",
                 rule->name, companions[i].host, companions[i].companion, companions[i].companion);
        return true;
    }
    return false;
}

bool rules_warning(const struct rules *rules, size_t *cursor, char *out, size_t size)
{
    while (*cursor < 2 * rules->count) { /* two kinds for each rule */
        const struct rule *rule = &rules->rules[*cursor / 2];
        bool companion = (*cursor)++ % 2 != 0;
        if (companion ? warn_of_companion(rules, rule, out, size) : warn_of_http(rule, out, size))
            return true;
    }
    return false;
}
