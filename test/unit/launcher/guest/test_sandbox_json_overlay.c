/* --config: which members are replaced, merged and added. */
#include "test/harness/unit.h"

#include <errno.h>
#include <string.h>

#include "test/harness/json_replay.h"

static int merge(const char *base, const char *overlay, char *out, size_t size)
{
    static struct json_token base_tokens[256], overlay_tokens[256];
    struct json left, right;
    struct json_position where;
    bool used[256];
    assert_int_equal(json_parse(&left, base, strlen(base), base_tokens, 256, &where), 0);
    assert_int_equal(json_parse(&right, overlay, strlen(overlay), overlay_tokens, 256, &where), 0);
    return json_replay(&left, &right, used, out, size);
}

static void cases(void **state)
{
    static const struct {
        const char *base, *overlay, *merged;
    } table[] = {
        {"{}", "{}", "{}"},
        {"{\"a\":1}", "{}", "{\"a\":1}"},
        {"{}", "{\"a\":[1,2]}", "{\"a\":[1,2]}"},
        {"{\"a\":1,\"b\":2}", "{\"a\":null}", "{\"a\":null,\"b\":2}"},
        {"{\"a\":{\"x\":1,\"y\":2}}", "{\"a\":{\"y\":3,\"z\":4}}",
         "{\"a\":{\"x\":1,\"y\":3,\"z\":4}}"},
        {"{\"a\":{\"x\":1}}", "{\"a\":[]}", "{\"a\":[]}"},
        {"{\"a\":[1]}", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1}}"},
        {"{\"a\":\"q\\\"\"}", "{\"b\":\"\\u0041\"}", "{\"a\":\"q\\\"\",\"b\":\"\\u0041\"}"},
        {"{\"a\":{}}", "{ \"a\" : { \"x\" :\n[ 1 ,\n{ \"y\" : \"\\n\" } ] }\n}\n",
         "{\"a\":{\"x\":[1,{\"y\":\"\\n\"}]}}"},
        {"{\"a\":{\"x\":{\"y\":1}},\"b\":2}", "{\"a\":7}", "{\"a\":7,\"b\":2}"},
        {"{\"ab\":1}", "{\"a\\u0062\":2}", "{\"ab\":2}"},
        {"{\"s\":{\"e\":{\"A\":\"1\"}}}", "{\"s\":{\"e\":{\"B\":\"2\"}}}",
         "{\"s\":{\"e\":{\"A\":\"1\",\"B\":\"2\"}}}"},
    };
    char out[512];
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(merge(table[i].base, table[i].overlay, out, sizeof(out)) > 0);
        assert_string_equal(out, table[i].merged);
    }
}

static void without_an_overlay(void **state)
{
    struct json_writer writer;
    struct json_overlay out;
    char text[64];
    (void)state;
    json_writer_start(&writer, text, sizeof(text));
    json_overlay_begin(&out, &writer, NULL, NULL);
    json_overlay_object_begin(&out, "a");
    json_overlay_string(&out, "s", "x");
    json_overlay_int(&out, "i", -1);
    json_overlay_object_end(&out);
    json_overlay_null(&out, "n");
    assert_int_equal(json_overlay_end(&out), 0);
    assert_true(json_writer_finish(&writer, false) > 0);
    assert_string_equal(text, "{\"a\":{\"s\":\"x\",\"i\":-1},\"n\":null}");
}

static void names_with_a_nul(void **state)
{
    char out[512];
    (void)state;
    assert_int_equal(merge("{}", "{\"a\\u0000b\":1}", out, sizeof(out)), -EILSEQ);
}

static void too_small(void **state)
{
    char out[8];
    (void)state;
    assert_int_equal(merge("{\"abc\":1}", "{\"def\":2}", out, sizeof(out)), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases),
        cmocka_unit_test(without_an_overlay),
        cmocka_unit_test(names_with_a_nul),
        cmocka_unit_test(too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
