/* HTML pages: href of <a> and <base>, in every way that HTML allows them to be written, at every
 * split. */
#include "test/harness/rewrite_run.h"

#define F "https://files.example/packages"
#define TO "http://127.0.0.1:8788"

static const struct {
    const char *in, *out; /* NULL: as it is */
    size_t links;
} pages[] = {
    {"<a href=\"" F "/a.whl#sha256=0\">" F "</a>",
     "<a href=\"" TO "/files/a.whl#sha256=0\">" F "</a>", 1},
    {"<A HREF='" F "/a' class=x>", "<A HREF='" TO "/files/a' class=x>", 1},
    {"<a href=" F "/a>x<a href=" F "/b data-x>",
     "<a href=" TO "/files/a>x<a href=" TO "/files/b data-x>", 2},
    {"<a\n\thref\n=\n\"" F "/a\"\n>", "<a\n\thref\n=\n\"" TO "/files/a\"\n>", 1},
    {"<a/href=\"" F "/a\"/>", "<a/href=\"" TO "/files/a\"/>", 1},
    {"<a href=" F "/a/>", "<a href=" TO "/files/a/>", 1},
    {"<a x=\"1\"href=\"" F "/a\"y>", "<a x=\"1\"href=\"" TO "/files/a\"y>", 1},
    {"<a href href=\"" F "/a\">", "<a href href=\"" TO "/files/a\">", 1},
    {"<a x='>' href=\"" F "/a\">", "<a x='>' href=\"" TO "/files/a\">", 1},
    {"<a data-requires-python=\"&gt;=3\" href=\"" F "/a\" data-x=\"" F "/a\">",
     "<a data-requires-python=\"&gt;=3\" href=\"" TO "/files/a\" data-x=\"" F "/a\">", 1},
    {"<a href=\"  " F "/a b \">", "<a href=\"  " TO "/files/a b \">", 1},
    {"<a href=\"\">x<a href=''><a href=><a href>", NULL, 0},
    {"<a href=\"../../a.whl\"><a href='a'><a href='#x'><a href='?y'>", NULL, 0},
    {"<a href='/simple/b/'>", "<a href='" TO "/npm/simple/b/'>", 1},
    {"<a href='//files.example/packages/b/'>", "<a href='" TO "/files/b/'>", 1},
    {"<a href='https://elsewhere.example/a-1.whl#x'>",
     "<a href='" TO "/_undeclared/elsewhere.example/a-1.whl#x'>", 1},
    {"<a href='https://registry.example'>", "<a href='" TO "/npm/'>", 1},
    {"<a href='https://registry.example?x'>", "<a href='" TO "/npm/?x'>", 1},
    {"<a href='mailto:x@files.example'><a href='javascript:x'><a href='data:,x'>", NULL, 0},
    /* character references */
    {"<a href=\"https:&#x2F;&#x2f;files.example&#47packages&sol;a?x&amp;y&lt;\">",
     "<a href=\"" TO "/files&sol;a?x&amp;y&lt;\">", 1},
    {"<a href=\"https&colon;//files&period;example/packages/a&quot;\">",
     "<a href=\"" TO "/files/a&quot;\">", 1},
    {"<a href='&#104;&#x74;tps://files.example/packages/&copy;&x&#;&#x;&'>",
     "<a href='" TO "/files/&copy;&x&#;&#x;&'>", 1},
    {"<a href=https:&#x2F/files.example/packages/a&amp>", "<a href=" TO "/files/a&amp>", 1},
    {"<a href='ht\ntps://fi\tles.example/packages/a'>", "<a href='" TO "/files/a'>", 1},
    {"<a href='https:\\\\files.example\\packages\\a'>", "<a href='" TO "/files\\a'>", 1},
    /* what is no link */
    {"<link href='" F "/a'><img src='" F "/a'><area href='" F "/a'><ab href='" F "/a'>", NULL, 0},
    {"<a name='" F "/a' xhref='" F "/a' href2='" F "/a' hre='" F "/a'>", NULL, 0},
    {"</a href='" F "/a'>< a href='" F "/a'><1a href='" F "/a'>", NULL, 0},
    {"<!-- <a href='" F "/a'> --><!doctype x '<a href=\"" F "'><?x <a href='" F "/a'", NULL, 0},
    {"<!--><a href='" F "/a'>", "<!--><a href='" TO "/files/a'>", 1},
    {"<!---><a href='" F "/a'>", "<!---><a href='" TO "/files/a'>", 1},
    {"<!--!><a href='" F "/a'>--!><a href='" F "/a'>",
     "<!--!><a href='" F "/a'>--!><a href='" TO "/files/a'>", 1},
    {"<!----><a href='" F "/a'>", "<!----><a href='" TO "/files/a'>", 1},
    {"<!-- -> -!> -- > ---><a href='" F "/a'>", "<!-- -> -!> -- > ---><a href='" TO "/files/a'>",
     1},
    {"<!-x><a href='" F "/a'>", "<!-x><a href='" TO "/files/a'>", 1},
    {"<script>'<a href=\"" F "/a\">'</script ><a href='" F "/a'>",
     "<script>'<a href=\"" F "/a\">'</script ><a href='" TO "/files/a'>", 1},
    {"<style><a href='" F "/a'></styl></stylex></style/x><a href='" F "/a'>",
     "<style><a href='" F "/a'></styl></stylex></style/x><a href='" TO "/files/a'>", 1},
    {"<TITLE><a href='" F "/a'></</TitLE><a href='" F "/a'>",
     "<TITLE><a href='" F "/a'></</TitLE><a href='" TO "/files/a'>", 1},
    {"<a title=\"<a href='" F "/a'>\">", NULL, 0},
    {"<<a href='" F "/a'><</a><a href='" F "/a'>",
     "<<a href='" TO "/files/a'><</a><a href='" TO "/files/a'>", 2},
    {"</><a href='" F "/a'></3><a href='" F "/a'>",
     "</><a href='" TO "/files/a'></3><a href='" TO "/files/a'>", 2},
    /* the end comes early */
    {"<a href='" F "/a", NULL, 0},
    {"<a href=" F "/a", NULL, 0},
    {"<a href='" F "/a'", "<a href='" TO "/files/a'", 1},
    {"<a hre", NULL, 0},
    {"<", NULL, 0},
    {"", NULL, 0},
    /* base */
    {"<base href='" F "/deep/'><a href='/packages/x'><a href='y'>",
     "<base href='" TO "/deep/'><a href='" TO "/files/x'><a href='y'>", 2},
    {"<base href='https://elsewhere.example/'><a href='/x'><a href='//files.example/packages/x'>",
     "<base href='" TO "/_undeclared/elsewhere.example/'><a href='" TO
     "/_undeclared/elsewhere.example/x'><a href='" TO "/files/x'>",
     3},
    {"<base target=x><base href='rel/'><a href='/x'>",
     "<base target=x><base href='rel/'><a href='" TO "/npm/x'>", 1},
};

static void test_pages_at_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        const char *out = pages[i].out ? pages[i].out : pages[i].in;
        assert_at_every_split(REWRITE_PYPI_HTML, slice_of(pages[i].in), slice_of(out),
                              pages[i].links);
    }
}

static void test_a_link_longer_than_the_limit_stays(void **state)
{
    (void)state;
    static char in[REWRITE_LINK_MAX + 100], out[REWRITE_LINK_MAX + 100];
    for (size_t length = REWRITE_LINK_MAX - 2; length <= REWRITE_LINK_MAX + 2; length++) {
        bool fits = length <= REWRITE_LINK_MAX;
        int fill = (int)(length - strlen(F "/"));
        snprintf(in, sizeof(in), "<a href='%s/%0*d'><a href='%s/b'>", F, fill, 0, F);
        snprintf(out, sizeof(out), "<a href='%s/%0*d'><a href='%s/files/b'>",
                 fits ? TO "/files" : F, fill, 0, TO);
        for (size_t cut = 0; cut <= strlen(in); cut += 89)
            assert_rewritten(REWRITE_PYPI_HTML, slice_of(in), slice_of(out), fits ? 2 : 1,
                             (size_t[2]){cut, strlen(in)});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_at_every_split),
        cmocka_unit_test(test_a_link_longer_than_the_limit_stays),
    };
    return cmocka_run_group_tests_name("rewrite_html", tests, load_rules, NULL);
}
