/* A document of any format: hands its bytes to the format's reader, and collects cargo's
 * config.json. */
#include "host-broker/rewrite/rewrite.h"

#include <assert.h>

#include "common/os/cleanup.h"

const char *const rewrite_format_names[] = {
    [REWRITE_NONE] = "none",           [REWRITE_NPM] = "npm",     [REWRITE_PYPI_JSON] = "pypi-json",
    [REWRITE_PYPI_HTML] = "pypi-html", [REWRITE_CARGO] = "cargo", [REWRITE_GIT_LFS] = "git-lfs",
};
static_assert(ARRAY_LENGTH(rewrite_format_names) == REWRITE_FORMAT_COUNT, "a name for each");

void rewrite_start(struct rewrite *rewrite, enum rewrite_format format,
                   const struct location_context *context)
{
    rewrite->format = format;
    rewrite->stream.context = *context;
    rewrite->stream.links = 0;
    rewrite->stream.held_length = 0;
    rewrite->whole = format == REWRITE_CARGO;
    rewrite->document_length = 0;
    if (format == REWRITE_PYPI_HTML)
        rewrite_html_start(&rewrite->html, &rewrite->stream);
    else
        rewrite_json_start(&rewrite->json, format);
}

static size_t take_format(struct rewrite *rewrite, struct slice in, struct rewrite_output *out)
{
    switch (rewrite->format) {
    case REWRITE_NPM:
    case REWRITE_PYPI_JSON:
    case REWRITE_CARGO:
    case REWRITE_GIT_LFS:
        return rewrite_json_take(&rewrite->json, &rewrite->stream, in, out);
    case REWRITE_PYPI_HTML:
        return rewrite_html_take(&rewrite->html, &rewrite->stream, in, out);
    case REWRITE_NONE:
    case REWRITE_FORMAT_COUNT:
        break;
    }
    size_t length = in.length < rewrite_room(out) ? in.length : rewrite_room(out);
    rewrite_emit(out, in.bytes, length);
    return length;
}

/* Collects bytes. A document that is too long is passed on unchanged, from its first byte. */
static size_t take_whole(struct rewrite *rewrite, struct slice in, struct rewrite_output *out)
{
    if (in.length <= sizeof(rewrite->document) - rewrite->document_length) {
        memcpy(rewrite->document + rewrite->document_length, in.bytes, in.length);
        rewrite->document_length += in.length;
        return in.length;
    }
    if (rewrite_room(out) < REWRITE_STEP_ROOM)
        return 0;
    rewrite_emit(out, rewrite->document, rewrite->document_length);
    rewrite->whole = false;
    rewrite->format = REWRITE_NONE;
    return 0;
}

size_t rewrite_take(struct rewrite *rewrite, struct slice in, struct rewrite_output *out)
{
    size_t taken = 0;
    if (rewrite->whole && in.length > 0)
        taken = take_whole(rewrite, in, out);
    if (rewrite->whole || taken == in.length)
        return taken;
    return take_format(rewrite, in, out);
}

/* A config.json without `dl` belongs to some other program, and its `api` is no link. */
static void finish_whole(struct rewrite *rewrite, struct rewrite_output *out)
{
    size_t before = out->length;
    struct slice document = {rewrite->document, rewrite->document_length};
    size_t taken = take_format(rewrite, document, out);
    if (taken == document.length && rewrite_json_is_cargo(&rewrite->json))
        return;
    out->length = before;
    rewrite->stream.held_length = 0;
    rewrite->stream.links = 0;
    rewrite_emit(out, document.bytes, document.length);
}

void rewrite_finish(struct rewrite *rewrite, struct rewrite_output *out)
{
    if (rewrite->whole)
        finish_whole(rewrite, out);
    rewrite_release_raw(&rewrite->stream, out);
}
