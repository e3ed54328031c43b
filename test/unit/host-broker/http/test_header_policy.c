/* Which fields pass, as one table of name, direction and route. */
#include "test/harness/unit.h"

#include "host-broker/http/header_policy.h"

#define CREDENTIAL SLICE_LITERAL("X-Team-Key")

static bool request_passes(enum route_kind kind, const char *name, const char *connection)
{
    struct request_head head = {
        .field_count = 3,
        .fields = {{slice_of(name), SLICE_LITERAL("v")},
                   {SLICE_LITERAL("connection"), slice_of(connection)},
                   {SLICE_LITERAL("Connection"), SLICE_LITERAL("close, X-Second")}},
    };
    return header_policy_request(kind, CREDENTIAL, &head, &head.fields[0]);
}

static const struct {
    const char *name;
    bool gateway, rule;
} request_fields[] = {
    {"Accept", true, true},
    {"anthropic-version", true, true},
    {"anthropic-beta", true, true},
    {"Content-Type", true, true},
    {"Content-Encoding", true, true},
    {"Git-Protocol", true, true},
    {"Range", true, true},
    {"If-None-Match", true, true},
    {"User-Agent", true, true},
    {"X-Stainless-Lang", true, true},
    {"Authorizations", true, true},
    {"Authorization", false, true},
    {"AUTHORIZATION", false, true},
    {"x-api-key", false, true},
    {"X-Api-Key", false, true},
    {"x_api_key", false, true},
    {"api-key", false, true},
    {"Cookie", false, true},
    {"x-team-key", false, true},
    {"X_TEAM_KEY", false, true},
    {"Forwarded", false, true},
    {"X-Forwarded-For", false, true},
    {"X-Forwarded-Host", false, true},
    {"x-forwarded-anything", false, true},
    {"X_Forwarded_For", false, true},
    {"X-Real-IP", false, true},
    {"X-Original-URL", false, true},
    {"X-Rewrite-URL", false, true},
    {"X-HTTP-Method-Override", false, true},
    {"X-HTTP-Method", false, true},
    {"X-Method-Override", false, true},
    {"Proxy-Authorization", false, false},
    {"Proxy-Connection", false, false},
    {"Proxy", false, false},
    {"proxy_authorization", false, false},
    {"Connection", false, false},
    {"Keep-Alive", false, false},
    {"TE", false, false},
    {"Trailer", false, false},
    {"Transfer-Encoding", false, false},
    {"transfer_encoding", false, false},
    {"Upgrade", false, false},
    {"HTTP2-Settings", false, false},
    {"Host", false, false},
    {"Content-Length", false, false},
    {"Content_Length", false, false},
    {"Expect", false, false},
    {"X-Named", false, false},
    {"x_named", false, false},
    {"X-Second", false, false},
};

static void requests_are_filtered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(request_fields) / sizeof(request_fields[0]); i++) {
        const char *name = request_fields[i].name;
        if (request_passes(ROUTE_GATEWAY, name, "x-named") != request_fields[i].gateway ||
            request_passes(ROUTE_NAMED, name, "foo, X-NAMED") != request_fields[i].rule)
            fail_msg("%s", name);
    }
    assert_true(request_passes(ROUTE_NAMED, "X-Named", ""));
    assert_true(request_passes(ROUTE_GATEWAY, "X-Named", "X-Nam"));
}

static bool response_passes(enum route_kind kind, const char *name, const char *connection)
{
    struct field field = {slice_of(name), SLICE_LITERAL("v")};
    return header_policy_response(kind, slice_of(connection), &field);
}

static void answers_are_filtered(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool gateway, rule;
    } cases[] = {
        {"Content-Type", true, true},
        {"Content-Encoding", true, true},
        {"ETag", true, true},
        {"Location", true, true},
        {"Retry-After", true, true},
        {"WWW-Authenticate", true, true},
        {"request-id", true, true},
        {"Set-Cookie", false, true},
        {"set-cookie", false, true},
        {"Set-Cookie2", false, true},
        {"Set_Cookie", false, true},
        {"Connection", false, false},
        {"Keep-Alive", false, false},
        {"Transfer-Encoding", false, false},
        {"Content-Length", false, false},
        {"Trailer", false, false},
        {"Upgrade", false, false},
        {"Proxy-Authenticate", false, false},
        {"Proxy-Connection", false, false},
        {"X-Named", false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (response_passes(ROUTE_GATEWAY, cases[i].name, "X-Named") != cases[i].gateway ||
            response_passes(ROUTE_NAMED, cases[i].name, "close,x-named") != cases[i].rule)
            fail_msg("%s", cases[i].name);
    assert_true(response_passes(ROUTE_GATEWAY, "X-Named", ""));
}

static void rewritten_answers_keep_what_is_true(void **state)
{
    (void)state;
    static const char *const kept[] = {"Content-Type", "Cache-Control", "Vary",    "Date",
                                       "X-Other",      "Link",          "Expires", "Age"};
    static const char *const gone[] = {
        "ETag",           "last-modified", "Accept-Ranges",   "Content-MD5", "Digest",
        "Content-Digest", "Repr-Digest",   "X-Checksum-Sha1", "x-goog-hash", "Content-Encoding"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        assert_true(header_policy_rewritten(&(struct field){slice_of(kept[i]), {0}}));
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++)
        assert_false(header_policy_rewritten(&(struct field){slice_of(gone[i]), {0}}));
}

static void credentials_have_fields_of_their_own(void **state)
{
    (void)state;
    static const char *const good[] = {"Authorization", "x-api-key", "X-Team-Key", "Cookie"};
    static const char *const bad[] = {"",      "a b", "a:",         "Host",           "connection",
                                      "a\r\n", "TE",  "Proxy-Auth", "Content-Length", "\xc3\xa4"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(header_policy_credential_name(slice_of(good[i])));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(header_policy_credential_name(slice_of(bad[i])));
    assert_string_equal(route_kind_names[ROUTE_GATEWAY], "gateway");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_filtered),
        cmocka_unit_test(answers_are_filtered),
        cmocka_unit_test(rewritten_answers_keep_what_is_true),
        cmocka_unit_test(credentials_have_fields_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
