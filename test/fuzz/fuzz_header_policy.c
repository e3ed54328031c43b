/* The header policy: a field that passes to the gateway also passes to a rule, no spelling of a
 * credential or of a framing field passes, and a head made of the fields that pass parses to these
 * fields.
 */
#include <string.h>

#include "host-broker/http/header_policy.h"
#include "host-broker/http/response_head.h"
#include "test/fuzz/fuzz.h"

/* Independent of the policy's own tables: names in the form that a CGI program would see. */
static bool reads_as(struct slice name, const char *variable)
{
    if (name.length != strlen(variable))
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char byte = name.bytes[i];
        if (byte == '-')
            byte = '_';
        if (byte >= 'a' && byte <= 'z')
            byte = (char)(byte - 'a' + 'A');
        if (byte != variable[i])
            return false;
    }
    return true;
}

static bool reads_as_one_of(struct slice name, const char *const *variables)
{
    for (; *variables; variables++)
        if (reads_as(name, *variables))
            return true;
    return false;
}

static const char *const framing[] = {
    "HOST",    "CONTENT_LENGTH", "TRANSFER_ENCODING", "TE",      "CONNECTION", "EXPECT",
    "UPGRADE", "PROXY",          "KEEP_ALIVE",        "TRAILER", NULL};
static const char *const secret[] = {"AUTHORIZATION",   "X_API_KEY", "API_KEY",       "COOKIE",
                                     "X_FORWARDED_FOR", "X_KEY",     "X_REWRITE_URL", NULL};

static void check_request(const struct request_head *head)
{
    for (size_t i = 0; i < head->field_count; i++) {
        const struct field *field = &head->fields[i];
        bool gateway = header_policy_request(ROUTE_GATEWAY, SLICE_LITERAL("X-Key"), head, field);
        bool rule = header_policy_request(ROUTE_NAMED, SLICE_LITERAL("X-Key"), head, field);
        FUZZ_CHECK(!gateway || rule);
        FUZZ_CHECK(!rule || !reads_as_one_of(field->name, framing));
        FUZZ_CHECK(!gateway || !reads_as_one_of(field->name, secret));
    }
}

/* Writes what passes of an answer, and reads it back as a request's fields. */
static void check_answer(const struct request_head *head)
{
    static char text[RESPONSE_HEAD_MAX];
    static struct request_head again;
    struct response_head out;
    struct response_facts facts = {
        .request_minor_version = 1, .status = 200, .keep_alive = true, .length_known = true};
    size_t passed = 0;
    response_head_begin(&out, text, sizeof(text), 200);
    size_t start = out.length;
    for (size_t i = 0; i < head->field_count; i++) {
        if (!header_policy_response(ROUTE_GATEWAY, (struct slice){NULL, 0}, &head->fields[i]) ||
            reads_as_one_of(head->fields[i].name, framing))
            continue;
        response_head_field(&out, head->fields[i].name, head->fields[i].value);
        passed++;
    }
    int length = response_head_finish(&out, &facts);
    FUZZ_CHECK(length > 0);
    static const char line[] = "GET / HTTP/1.0\r\n";
    char *request = text + start - (sizeof(line) - 1);
    memcpy(request, line, sizeof(line) - 1);
    enum request_fault fault;
    size_t size = (size_t)(text + length - request);
    ssize_t read = request_head_parse(&again, request, size, &(struct request_scan){0}, &fault);
    if (passed < REQUEST_FIELDS_MAX)
        FUZZ_CHECK(read == (ssize_t)size && again.field_count == passed + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char start[] = "GET / HTTP/1.1\r\nHost: h\r\n", end[] = "\r\n\r\n";
    static char text[8192];
    static struct request_head head;
    enum request_fault fault;
    if (size > sizeof(text) - sizeof(start) - sizeof(end))
        return 0;
    memcpy(text, start, sizeof(start) - 1);
    memcpy(text + sizeof(start) - 1, data, size);
    memcpy(text + sizeof(start) - 1 + size, end, sizeof(end) - 1);
    size += sizeof(start) + sizeof(end) - 2;
    if (request_head_parse(&head, text, size, &(struct request_scan){0}, &fault) <= 0)
        return 0;
    check_request(&head);
    check_answer(&head);
    return 0;
}
