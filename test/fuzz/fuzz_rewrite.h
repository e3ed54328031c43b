/* What the fuzz targets of the rewriters share. The input: one byte that chooses, one that cuts,
 * then the document.
 *
 * Checked for any document: the output does not depend on where it is cut; without a link it is the
 * document; and the pieces between links occur in the document, in the same order.
 */
#ifndef TEST_FUZZ_FUZZ_REWRITE_H
#define TEST_FUZZ_FUZZ_REWRITE_H

#include <stdlib.h>
#include <string.h>

#include "host-broker/rewrite/rewrite.h"
#include "test/fuzz/fuzz.h"

#define GUEST "http://guest:1"
#define FUZZ_DOCUMENT_MAX (64 * 1024)
#define FUZZ_OUTPUT_MAX (FUZZ_DOCUMENT_MAX * 8 + 4 * REWRITE_FINISH_ROOM)

static const char rules_text[] = "{\"n\":\"https://a.b\",\"f\":\"https://c.d/p/\","
                                 "\"d\":\"https://c.d/p/q\",\"l\":\"http://[::1]:81/~m\"}";

struct fuzz_run {
    struct rewrite rewrite;
    char output[FUZZ_OUTPUT_MAX];
    size_t length;
};

static struct location_context fuzz_context(void)
{
    static struct rules rules;
    if (rules.count == 0)
        FUZZ_CHECK(rules_parse(&rules, "F", rules_text, sizeof(rules_text) - 1, NULL) == 0);
    return (struct location_context){
        .guest_url = GUEST,
        .rules = &rules,
        .rule = &rules.rules[0],
        .origin = &rules.rules[0].url,
    };
}

static inline void fuzz_take(struct fuzz_run *run, struct slice piece, size_t room)
{
    while (piece.length > 0) {
        FUZZ_CHECK(run->length + room <= sizeof(run->output));
        char *bytes = malloc(room); /* so that its end is seen */
        struct rewrite_output out = {.bytes = bytes, .size = room};
        size_t taken = rewrite_take(&run->rewrite, piece, &out);
        FUZZ_CHECK(taken <= piece.length && out.length <= room && (taken > 0 || out.length > 0));
        memcpy(run->output + run->length, bytes, out.length);
        free(bytes);
        run->length += out.length;
        piece.bytes += taken;
        piece.length -= taken;
    }
}

static inline void fuzz_rewrite(struct fuzz_run *run, enum rewrite_format format,
                                struct slice document, size_t step)
{
    struct location_context context = fuzz_context();
    run->length = 0;
    rewrite_start(&run->rewrite, format, &context);
    while (document.length > 0) {
        size_t length = step < document.length ? step : document.length;
        char *piece = malloc(length);
        memcpy(piece, document.bytes, length);
        fuzz_take(run, (struct slice){piece, length}, REWRITE_STEP_ROOM + step % 100);
        free(piece);
        document.bytes += length;
        document.length -= length;
    }
    struct rewrite_output out = {.bytes = run->output + run->length, .size = REWRITE_FINISH_ROOM};
    FUZZ_CHECK(run->length + REWRITE_FINISH_ROOM <= sizeof(run->output));
    rewrite_finish(&run->rewrite, &out);
    run->length += out.length;
}

static inline bool is_host_byte(char byte)
{
    char lower = ascii_lower(byte);
    return (lower >= 'a' && lower <= 'z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("-._~:%", byte));
}

/* What of a piece of output was there before: what follows "/NAME" or "/_undeclared/HOST", without
 * the slash that a root may have been given. */
static inline struct slice kept_part(struct slice piece)
{
    static const struct slice undeclared = SLICE_LITERAL("/_undeclared/");
    size_t skip = 2; /* names of rules here have one letter */
    if (piece.length >= undeclared.length &&
        memcmp(piece.bytes, undeclared.bytes, undeclared.length) == 0) {
        skip = undeclared.length;
        while (skip < piece.length && is_host_byte(piece.bytes[skip]))
            skip++;
    }
    FUZZ_CHECK(skip <= piece.length);
    piece.bytes += skip;
    piece.length -= skip;
    if (piece.length > 0 && piece.bytes[0] == '/') {
        piece.bytes++;
        piece.length--;
    }
    return piece;
}

/* The output between links is the document's, in its order. */
static inline void fuzz_check_kept(const struct fuzz_run *run, struct slice document)
{
    struct slice rest = {run->output, run->length};
    const char *guest = memmem(rest.bytes, rest.length, GUEST, strlen(GUEST));
    if (!guest)
        return;
    size_t before = (size_t)(guest - rest.bytes);
    FUZZ_CHECK(before <= document.length && memcmp(rest.bytes, document.bytes, before) == 0);
    document.bytes += before;
    document.length -= before;
    while (guest) {
        struct slice piece = {guest + strlen(GUEST), 0};
        piece.length = run->length - (size_t)(piece.bytes - run->output);
        guest = memmem(piece.bytes, piece.length, GUEST, strlen(GUEST));
        if (guest)
            piece.length = (size_t)(guest - piece.bytes);
        piece = kept_part(piece);
        const char *found =
            piece.length == 0 ? document.bytes
            : !guest && piece.length <= document.length
                ? document.bytes + document.length - piece.length
                : memmem(document.bytes, document.length, piece.bytes, piece.length);
        FUZZ_CHECK(found && memcmp(found, piece.bytes, piece.length) == 0);
        document.length -= (size_t)(found - document.bytes) + piece.length;
        document.bytes = found + piece.length;
    }
}

/* Runs the document in one piece (the result stays in the returned run), and in pieces. */
static inline const struct fuzz_run *fuzz_document(enum rewrite_format format, uint8_t cut,
                                                   struct slice document)
{
    static struct fuzz_run whole, pieces;
    fuzz_rewrite(&whole, format, document, document.length + 1);
    fuzz_rewrite(&pieces, format, document, 1 + cut % 64);
    FUZZ_CHECK(whole.length == pieces.length &&
               whole.rewrite.stream.links == pieces.rewrite.stream.links);
    FUZZ_CHECK(memcmp(whole.output, pieces.output, whole.length) == 0);
    if (whole.rewrite.stream.links == 0)
        FUZZ_CHECK(whole.length == document.length &&
                   memcmp(whole.output, document.bytes, document.length) == 0);
    else if (!memmem(document.bytes, document.length, GUEST, strlen(GUEST)))
        fuzz_check_kept(&whole, document);
    return &whole;
}

#endif
