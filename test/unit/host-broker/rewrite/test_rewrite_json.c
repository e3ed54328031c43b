/* JSON documents: which strings are links, at every split; from the byte at which a document is
 * malformed it passes unchanged. */
#include "test/harness/rewrite_run.h"

#define F "https://files.example/packages"
#define TO "http://127.0.0.1:8788"
/* Documents are written with ' for ". */

static const struct {
    enum rewrite_format format;
    const char *in, *out; /* NULL: as it is */
    size_t links;
} documents[] = {
    /* npm: a package, a version, and what only looks like one */
    {REWRITE_NPM, "{'versions':{'1.0.0':{'dist':{'tarball':'" F "/a/-/a-1.tgz'}}}}",
     "{'versions':{'1.0.0':{'dist':{'tarball':'" TO "/files/a/-/a-1.tgz'}}}}", 1},
    {REWRITE_NPM,
     "{ 'name' : 'a' ,\n 'versions' : { '1' : { 'dist' : { 'shasum' : 'x' , 'tarball' : "
     "'https://registry.example/a.tgz' } } , '2' : { 'dist' : { 'tarball' : "
     "'https://elsewhere.example/a.tgz' } } } }",
     "{ 'name' : 'a' ,\n 'versions' : { '1' : { 'dist' : { 'shasum' : 'x' , 'tarball' : '" TO
     "/npm/a.tgz' } } , '2' : { 'dist' : { 'tarball' : '" TO
     "/_undeclared/elsewhere.example/a.tgz' } } } }",
     2},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a.tgz','x':'" F "/a.tgz'},'homepage':'" F "/x'}",
     "{'dist':{'tarball':'" TO "/files/a.tgz','x':'" F "/a.tgz'},'homepage':'" F "/x'}", 1},
    {REWRITE_NPM,
     "{'readme':'\\'dist\\':{\\'tarball\\':\\'" F "/a\\'','tarball':'" F "/b','dist':'" F "/c'}",
     NULL, 0},
    {REWRITE_NPM, "{'versions':[{'dist':{'tarball':'" F "/a'}}]}", NULL, 0},
    {REWRITE_NPM, "{'versions':{'1':{'x':{'dist':{'tarball':'" F "/a'}}}}}", NULL, 0},
    {REWRITE_NPM, "{'versions':{'1':{'dist':{'tarball':{'tarball':'" F "/a'}}}}}", NULL, 0},
    {REWRITE_NPM, "{'versions':{'1':{'dist':{'tarball':['" F "/a']}}}}", NULL, 0},
    {REWRITE_NPM, "{'x':{'versions':{'1':{'dist':{'tarball':'" F "/a'}}}}}", NULL, 0},
    {REWRITE_NPM, "[{'dist':{'tarball':'" F "/a'}}]", NULL, 0},
    {REWRITE_NPM, "{'dist':{'x':[[],{},[1,{'tarball':0}],null],'tarball':'" F "/a'},'y':[]}",
     "{'dist':{'x':[[],{},[1,{'tarball':0}],null],'tarball':'" TO "/files/a'},'y':[]}", 1},
    {REWRITE_NPM, "{'di\\u0073t':{'\\u0074arb\\u0061ll':'" F "/a'}}",
     "{'di\\u0073t':{'\\u0074arb\\u0061ll':'" TO "/files/a'}}", 1},
    {REWRITE_NPM, "{'dist\\u0000':{'tarball':'" F "/a'},'dis':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a','tarball':'" F "/b'}}",
     "{'dist':{'tarball':'" TO "/files/a','tarball':'" TO "/files/b'}}", 2},
    {REWRITE_NPM, "{'dist':{'tarball':''}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':17}}", NULL, 0},
    {REWRITE_NPM,
     "{'versions':{'*':{'dist':{'tarball':'" F "/a'}},'[]':{'dist':{'tarball':'" F
     "/a'}},'':{'dist':{'tarball':'" F "/a'}}}}",
     "{'versions':{'*':{'dist':{'tarball':'" TO "/files/a'}},'[]':{'dist':{'tarball':'" TO
     "/files/a'}},'':{'dist':{'tarball':'" TO "/files/a'}}}}",
     3},
    /* escapes in the link; what is kept is kept as it was written */
    {REWRITE_NPM, "{'dist':{'tarball':'https:\\/\\/files.example\\/packages\\/a\\/b.tgz'}}",
     "{'dist':{'tarball':'" TO "/files\\/a\\/b.tgz'}}", 1},
    {REWRITE_NPM,
     "{'dist':{'tarball':'\\u0068ttps:\\u002f\\u002Ffiles.ex\\u0061mple/packages/\\u0061'}}",
     "{'dist':{'tarball':'" TO "/files/\\u0061'}}", 1},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\\ud83d\\ude00\\u00e4\\n'}}",
     "{'dist':{'tarball':'" TO "/files/\\ud83d\\ude00\\u00e4\\n'}}", 1},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\\ud83d'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\\q'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\\u12'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\\\\\\''}}",
     "{'dist':{'tarball':'" TO "/files/\\\\\\''}}", 1},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/\xc3\xa4\xff'}}",
     "{'dist':{'tarball':'" TO "/files/\xc3\xa4\xff'}}", 1},
    /* Python index */
    {REWRITE_PYPI_JSON,
     "{'files':[{'url':'" F "/a.whl','hashes':{'url':'" F "'}},{'url':'../../rel.whl'}],'url':'" F
     "/x','meta':{'tracks':['" F "/y']}}",
     "{'files':[{'url':'" TO "/files/a.whl','hashes':{'url':'" F
     "'}},{'url':'../../rel.whl'}],'url':'" F "/x','meta':{'tracks':['" F "/y']}}",
     1},
    {REWRITE_PYPI_JSON,
     "{'files':[{'url':'/packages/a.whl'},{'url':'//files.example/packages/b'}]}",
     "{'files':[{'url':'" TO "/npm/packages/a.whl'},{'url':'" TO "/files/b'}]}", 2},
    {REWRITE_PYPI_JSON, "{'files':{'a':{'url':'" F "/a.whl'}}}", NULL, 0},
    {REWRITE_PYPI_JSON, "{'files':[['" F "'],{'a':{'url':'" F "/a.whl'}}]}", NULL, 0},
    /* cargo: only a whole one with `dl` */
    {REWRITE_CARGO, "{'dl':'" F "/crates','api':'https://registry.example'}\n",
     "{'dl':'" TO "/files/crates','api':'" TO "/npm'}\n", 2},
    {REWRITE_CARGO,
     "{'api':'https://crates.example/','auth-required':true,'dl':'" F "/{crate}/{version}.crate'}",
     "{'api':'" TO "/_undeclared/crates.example/','auth-required':true,'dl':'" TO
     "/files/{crate}/{version}.crate'}",
     2},
    {REWRITE_CARGO, "{'api':'" F "/crates'}", NULL, 0},
    {REWRITE_CARGO, "{'dl':'" F "/crates'", NULL, 0},
    {REWRITE_CARGO, "{'dl':'" F "/crates'}}", NULL, 0},
    {REWRITE_CARGO, "{'dl':1,'api':'" F "/crates'}", NULL, 0},
    {REWRITE_CARGO, "{'x':{'dl':'" F "/crates'}}", NULL, 0},
    /* Git LFS */
    {REWRITE_GIT_LFS,
     "{'objects':[{'oid':'1','actions':{'download':{'href':'" F "/1?a=b&c=%2F','header':{'href':'" F
     "'}},'verify':{'href':'https://other.example/v'}}}]}",
     "{'objects':[{'oid':'1','actions':{'download':{'href':'" TO
     "/files/1?a=b&c=%2F','header':{'href':'" F "'}},'verify':{'href':'" TO
     "/_undeclared/other.example/v'}}}]}",
     2},
    {REWRITE_GIT_LFS, "{'objects':[{'error':{'href':'" F "'}}],'href':'" F "'}", NULL, 0},
    /* malformed: untouched from there */
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a'}}{'dist':{'tarball':'" F "/a'}}",
     "{'dist':{'tarball':'" TO "/files/a'}}{'dist':{'tarball':'" F "/a'}}", 1},
    {REWRITE_NPM, "{'a':1]},'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'a' 1,'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'a':1,,'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{a:1,'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'a':\x01,'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'a':'\n','dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a\n'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a\\\n'}}", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a", NULL, 0},
    {REWRITE_NPM, "{'dist':{'tarball':'" F "/a\\", NULL, 0},
    {REWRITE_NPM, "\xef\xbb\xbf{'dist':{'tarball':'" F "/a'}}", NULL, 0},
    {REWRITE_NPM, "", NULL, 0},
    {REWRITE_NPM, "<html>", NULL, 0},
    {REWRITE_NPM, "'" F "/a'", NULL, 0},
};

static void unquote(char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            *text = '"';
}

static void test_documents_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        char *in = strdup(documents[i].in);
        char *out = strdup(documents[i].out ? documents[i].out : documents[i].in);
        unquote(in);
        unquote(out);
        assert_at_every_split(documents[i].format, slice_of(in), slice_of(out), documents[i].links);
        free(in);
        free(out);
    }
}

/* `count` times the letter `fill` between two texts. */
static struct slice padded(const char *before, char fill, size_t count, const char *after)
{
    char *text = malloc(strlen(before) + count + strlen(after) + 1);
    size_t length = strlen(before);
    memcpy(text, before, length);
    memset(text + length, fill, count);
    strcpy(text + length + count, after);
    unquote(text);
    return (struct slice){text, length + count + strlen(after)};
}

static void test_a_link_longer_than_the_limit_stays(void **state)
{
    (void)state;
    for (size_t length = REWRITE_LINK_MAX - 2; length <= REWRITE_LINK_MAX + 2; length++) {
        bool fits = length <= REWRITE_LINK_MAX;
        size_t fill = length - strlen(F "/");
        struct slice in =
            padded("{'dist':{'tarball':'" F "/", 'a', fill, "','tarball':'" F "/b'}}");
        struct slice out =
            padded(fits ? "{'dist':{'tarball':'" TO "/files/" : "{'dist':{'tarball':'" F "/", 'a',
                   fill, "','tarball':'" TO "/files/b'}}");
        for (size_t cut = 0; cut <= in.length; cut += cut > 100 && cut + 200 < in.length ? 97 : 1)
            assert_rewritten(REWRITE_NPM, in, out, fits ? 2 : 1, (size_t[2]){cut, in.length});
        free((char *)in.bytes);
        free((char *)out.bytes);
    }
}

static void test_a_cargo_file_longer_than_the_limit_stays(void **state)
{
    (void)state;
    static const char before[] = "{'dl':'" F "/x','pad':'", after[] = "'}";
    for (size_t length = REWRITE_WHOLE_MAX - 1; length <= REWRITE_WHOLE_MAX + 1; length++) {
        bool fits = length <= REWRITE_WHOLE_MAX;
        size_t fill = length - strlen(before) - strlen(after);
        struct slice in = padded(before, 'a', fill, after);
        struct slice out =
            padded(fits ? "{'dl':'" TO "/files/x','pad':'" : before, 'a', fill, after);
        for (size_t cut = 0; cut <= in.length; cut += 61)
            assert_rewritten(REWRITE_CARGO, in, out, fits, (size_t[2]){cut, in.length});
        free((char *)in.bytes);
        free((char *)out.bytes);
    }
}

static void test_a_key_of_any_length(void **state)
{
    (void)state;
    for (size_t fill = REWRITE_JSON_KEY_MAX - 2; fill < REWRITE_JSON_KEY_MAX + 3; fill++) {
        struct slice in = padded("{'versions':{'", 'v', fill, "':{'dist':{'tarball':'" F "/a'}}}}");
        struct slice out =
            padded("{'versions':{'", 'v', fill, "':{'dist':{'tarball':'" TO "/files/a'}}}}");
        assert_at_every_split(REWRITE_NPM, in, out, 1);
        free((char *)in.bytes);
        free((char *)out.bytes);
    }
}

static void test_depth_has_a_limit(void **state)
{
    (void)state;
    for (size_t depth = REWRITE_JSON_DEPTH_MAX - 1; depth <= REWRITE_JSON_DEPTH_MAX; depth++) {
        bool fits = depth < REWRITE_JSON_DEPTH_MAX; /* one more is the object around */
        struct slice opened = padded("{'x':", '[', depth, "");
        char *text = strdup(opened.bytes);
        struct slice in = padded(text, ']', depth, ",'dist':{'tarball':'" F "/a'}}");
        struct slice out = padded(text, ']', depth,
                                  fits ? ",'dist':{'tarball':'" TO "/files/a'}}"
                                       : ",'dist':{'tarball':'" F "/a'}}");
        for (size_t cut = 0; cut <= in.length; cut += 31)
            assert_rewritten(REWRITE_NPM, in, out, fits, (size_t[2]){cut, in.length});
        free((char *)opened.bytes);
        free(text);
        free((char *)in.bytes);
        free((char *)out.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_at_every_split),
        cmocka_unit_test(test_a_link_longer_than_the_limit_stays),
        cmocka_unit_test(test_a_cargo_file_longer_than_the_limit_stays),
        cmocka_unit_test(test_a_key_of_any_length),
        cmocka_unit_test(test_depth_has_a_limit),
    };
    return cmocka_run_group_tests_name("rewrite_json", tests, load_rules, NULL);
}
