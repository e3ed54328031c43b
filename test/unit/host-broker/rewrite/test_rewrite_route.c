/* The table of routes: which answers are rewritten, by path, Accept and content type. */
#include "test/harness/unit.h"

#include "host-broker/rewrite/rewrite_route.h"
#include "test/harness/guard.h"

#define JSON "application/json"
#define ABBREVIATED "application/vnd.npm.install-v1+json"
#define SIMPLE_JSON "application/vnd.pypi.simple.v1+json"
#define SIMPLE_HTML "application/vnd.pypi.simple.v1+html"
#define LFS "application/vnd.git-lfs+json"
#define PIPS SIMPLE_JSON ", " SIMPLE_HTML "; q=0.1, text/html; q=0.01"
#define NPMS ABBREVIATED "; q=1.0, application/json; q=0.8, */*"

static const struct {
    const char *method, *path, *accept, *type;
    enum rewrite_format format;
} routes[] = {
    {"GET", "/left-pad", NULL, JSON, REWRITE_NPM},
    {"HEAD", "/left-pad", "*/*", "application/json; charset=utf-8", REWRITE_NPM},
    {"GET", "/@s%2Fa", NULL, JSON, REWRITE_NPM},
    {"GET", "/@s/a", NULL, JSON, REWRITE_NPM},
    {"GET", "/@s%2fa/1.0.0", NULL, JSON, REWRITE_NPM},
    {"GET", "/@s/a/latest", NULL, JSON, REWRITE_NPM},
    {"GET", "/a/latest-10", NULL, JSON, REWRITE_NPM},
    {"GET", "/a", NULL, "APPLICATION/VND.npm.install-v1+json", REWRITE_NPM},
    {"GET", "/repository/npm/a", NPMS, JSON, REWRITE_NPM},
    {"GET", "/repository/npm/a", NULL, JSON, REWRITE_NONE},
    {"GET", "/chart.js", NULL, JSON, REWRITE_NPM},
    {"GET", "/hello.txt", "*/*", JSON, REWRITE_NONE},
    {"GET", "/hello.txt", NPMS, JSON, REWRITE_NPM},
    {"GET", "/@s/a.tgz", NULL, JSON, REWRITE_NONE},
    {"GET", "/a", NULL, "application/octet-stream", REWRITE_NONE},
    {"GET", "/a", NULL, "text/html", REWRITE_NONE},
    {"GET", "/a", NULL, "", REWRITE_NONE},
    {"GET", "/a", NULL, "application/jsonx", REWRITE_NONE},
    {"GET", "/a", NULL, "application/json;charset=UTF-16", REWRITE_NONE},
    {"PUT", "/a", NULL, JSON, REWRITE_NONE},
    {"POST", "/a", NPMS, JSON, REWRITE_NONE},
    {"GET", "", NULL, JSON, REWRITE_NONE},
    {"GET", "/", NULL, JSON, REWRITE_NONE},
    {"GET", "/@s", NULL, JSON, REWRITE_NONE},
    {"GET", "/-/v1/search", NULL, JSON, REWRITE_NONE},
    {"GET", "/a/-/a-1.tgz", NULL, JSON, REWRITE_NONE},
    {"GET", "/repos/x/y", NULL, JSON, REWRITE_NONE},
    {"GET", "/repos/releases", NULL, JSON, REWRITE_NONE},
    {"GET", "/a/1/2", NULL, JSON, REWRITE_NONE},
    {"GET", "/simple/a/", PIPS, "text/html; charset=UTF-8", REWRITE_PYPI_HTML},
    {"GET", "/simple/a/", NULL, "text/html", REWRITE_PYPI_HTML},
    {"GET", "/simple/a", NULL, SIMPLE_HTML, REWRITE_PYPI_HTML},
    {"GET", "/simple/", NULL, SIMPLE_JSON, REWRITE_PYPI_JSON},
    {"GET", "/simple/a/", PIPS, SIMPLE_JSON, REWRITE_PYPI_JSON},
    {"GET", "/root/pypi/+simple/a/", NULL, "text/html", REWRITE_PYPI_HTML},
    {"GET", "/whl/cpu/torch/", PIPS, "text/html", REWRITE_PYPI_HTML},
    {"GET", "/whl/cpu/torch/", SIMPLE_HTML, "text/html", REWRITE_PYPI_HTML},
    {"GET", "/whl/cpu/torch/", NULL, "text/html", REWRITE_NONE},
    {"GET", "/simplex/a/", NULL, "text/html", REWRITE_NONE},
    {"GET", "/simple/a/b/", NULL, "text/html", REWRITE_NONE},
    {"GET", "/simple/a/", NULL, "text/plain", REWRITE_NONE},
    {"GET", "/simple/a/", NULL, "application/octet-stream", REWRITE_NONE},
    {"GET", "/packages/a-1.whl.metadata", "*/*", "text/plain", REWRITE_NONE},
    {"GET", "/packages/a-1.whl", PIPS, "application/octet-stream", REWRITE_NONE},
    {"GET", "/config.json", NULL, JSON, REWRITE_CARGO},
    {"GET", "/index/config.json", NULL, "text/plain", REWRITE_CARGO},
    {"GET", "/config.json", NULL, "", REWRITE_CARGO},
    {"GET", "/xconfig.json", NULL, "text/plain", REWRITE_NONE},
    {"GET", "/ca/rg/cargo", NULL, "text/plain", REWRITE_NONE},
    {"POST", "/o/r.git/info/lfs/objects/batch", LFS, LFS "; charset=utf-8", REWRITE_GIT_LFS},
    {"POST", "/o/r.git/info/lfs/objects/batch", NULL, JSON, REWRITE_GIT_LFS},
    {"GET", "/o/r.git/info/lfs/objects/batch", NULL, LFS, REWRITE_NONE},
    {"POST", "/o/r.git/info/lfs/locks", LFS, LFS, REWRITE_NONE},
    {"GET", "/dists/stable/InRelease", NULL, "text/plain", REWRITE_NONE},
    {"GET", "/sumdb/sum.example/lookup/x@v1", NULL, "text/plain", REWRITE_NONE},
    {"GET", "/github.com/x/y/@v/list", NULL, "text/plain", REWRITE_NONE},
    {"GET", "/github.com/x/y/@v/v1.0.0.info", NULL, JSON, REWRITE_NONE},
};

static void test_routes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        struct field accept = {SLICE_LITERAL("accept"), {0}};
        struct request_head head = {.method = slice_of(routes[i].method), .fields = {accept}};
        if (routes[i].accept) {
            head.fields[0].value = slice_of(routes[i].accept);
            head.field_count = 1;
        }
        size_t length = strlen(routes[i].path);
        char *path = guard_copy(routes[i].path, length);
        struct slice rest = {path, length};
        uint32_t candidates = rewrite_route_candidates(&head, rest, rest);
        guard_free(path, length);
        enum rewrite_format format = rewrite_route_choose(candidates, slice_of(routes[i].type));
        if (format != routes[i].format)
            print_error("%s %s %s\n", routes[i].method, routes[i].path, routes[i].type);
        assert_int_equal(format, routes[i].format);
    }
}

/* The rule's own prefix counts for an index of Python's, and for nothing else. */
static void test_the_rules_prefix(void **state)
{
    (void)state;
    struct request_head head = {.method = SLICE_LITERAL("GET")};
    uint32_t candidates =
        rewrite_route_candidates(&head, SLICE_LITERAL("/a/"), SLICE_LITERAL("/simple/a/"));
    assert_int_equal(rewrite_route_choose(candidates, SLICE_LITERAL("text/html")),
                     REWRITE_PYPI_HTML);
    candidates =
        rewrite_route_candidates(&head, SLICE_LITERAL("/a"), SLICE_LITERAL("/repository/npm/a"));
    assert_int_equal(rewrite_route_choose(candidates, SLICE_LITERAL(JSON)), REWRITE_NPM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_the_rules_prefix),
    };
    return cmocka_run_group_tests_name("rewrite_route", tests, NULL, NULL);
}
