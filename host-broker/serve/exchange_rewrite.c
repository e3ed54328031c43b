/* Exchanges whose answer has rewritten links; rewrite.h changes the document itself.
 *
 * The upstream is asked for the whole document without a coding: Accept-Encoding becomes identity.
 * If a part comes back because the client sent Range, the request is repeated without it: the same
 * range of the rewritten document is another part. An answer that is compressed nevertheless is
 * decoded when it is gzip; otherwise it passes unchanged and the log says "encoded".
 *
 * The head of a rewritten answer has neither length nor digest, since they are not known when it is
 * sent; its entity tag is our own (rewrite_etag.h). HEAD and 304 have the same fields as the answer
 * to GET.
 */
#include "host-broker/serve/exchange_internal.h"
#include "host-broker/serve/exchange_state_internal.h"

#include <string.h>

#include "host-broker/http/chunk_encoder.h"
#include "host-broker/rewrite/rewrite_route.h"

#define FRAME_ROOM (CHUNK_HEAD_MAX + sizeof(CHUNK_TAIL))
/* Kept free behind content, so that the end of the document always fits. */
#define END_ROOM (REWRITE_FINISH_ROOM + 2 * FRAME_ROOM + sizeof(CHUNK_LAST))
#define PIECE_MAX (32 * 1024)

static bool is_named(const struct field *field, const char *name)
{
    return slice_equal_nocase(field->name, slice_of(name));
}

static const char *mark_of(const struct exchange *exchange)
{
    static char mark[REWRITE_MARK_LENGTH + 1]; /* made once: guest URL and rules never change */
    const struct broker *broker = exchange->broker;
    if (mark[0] == '\0')
        rewrite_etag_mark(mark, broker->options.guest_url, &broker->rules);
    return mark;
}

static int restore(const struct exchange *exchange, struct slice value, char **out,
                   struct rewrite_match *match)
{
    static char restored[REWRITE_MATCH_MAX];
    *out = restored;
    return rewrite_etag_restore(restored, value, mark_of(exchange), match);
}

/* Reads what the request says about a copy that the client has. */
static void look_at_copies(struct exchange *exchange, const struct request_head *head)
{
    bool dropped = false, left = false;
    for (size_t i = 0; i < head->field_count; i++) {
        struct rewrite_match match;
        char *value;
        if (!is_named(&head->fields[i], "If-None-Match"))
            continue;
        int length = restore(exchange, head->fields[i].value, &value, &match);
        exchange->revalidates = exchange->revalidates || (length > 0 && match.restored);
        dropped = dropped || match.dropped;
        left = left || length != 0;
    }
    exchange->stale = dropped && !left;
}

void exchange_rewrite_prepare(struct exchange *exchange, const struct route *route,
                              const struct request_head *head)
{
    if (route->kind != ROUTE_NAMED || !exchange->url)
        return;
    struct slice path = slice_of(exchange->url + exchange->origin_length);
    path.length = strcspn(path.bytes, "?");
    exchange->candidates = rewrite_route_candidates(head, route->target.rest, path);
    if (exchange->candidates != 0)
        look_at_copies(exchange, head);
}

bool exchange_rewrite_request_field(const struct exchange *exchange, struct field *field)
{
    if (exchange->candidates == 0)
        return true;
    if (is_named(field, "Accept-Encoding"))
        field->value = SLICE_LITERAL("identity");
    if (is_named(field, "If-Modified-Since")) /* the date alone would confirm the stale copy */
        return !exchange->stale;
    if (is_named(field, "If-None-Match")) {
        struct rewrite_match match;
        char *value;
        int length = restore(exchange, field->value, &value, &match);
        if (length >= 0)
            field->value = (struct slice){value, (size_t)length};
        return length != 0;
    }
    return true;
}

enum exchange_treatment exchange_rewrite_treat(struct exchange *exchange, struct slice content_type,
                                               enum exchange_coding coding)
{
    struct log_record *record = &exchange->client->record;
    if (exchange->candidates == 0)
        return EXCHANGE_AS_IT_IS;
    if (exchange->status == 304)
        return exchange->revalidates ? EXCHANGE_REWRITTEN : EXCHANGE_AS_IT_IS;
    enum rewrite_format format = rewrite_route_choose(exchange->candidates, content_type);
    bool part = exchange->status == 206 && !exchange->asked_whole && !exchange->once;
    if (format == REWRITE_NONE || (exchange->status != 200 && !part))
        return EXCHANGE_AS_IT_IS;
    exchange->decoding = coding == EXCHANGE_GZIP;
    if (coding == EXCHANGE_OTHER_CODING ||
        (exchange->decoding && rewrite_gzip_start(&exchange->rewriter->gzip) < 0)) {
        record->rewrite = "encoded";
        return EXCHANGE_AS_IT_IS;
    }
    if (part)
        return EXCHANGE_ASK_WHOLE;
    record->rewrite = rewrite_format_names[format];
    if (!exchange->head_request) {
        struct location_context context = exchange_location_context(exchange);
        rewrite_start(&exchange->rewriter->document, format, &context);
        exchange->rewriting = true;
    }
    return EXCHANGE_REWRITTEN;
}

bool exchange_rewrite_response_field(const struct exchange *exchange, struct field *field)
{
    static char etag[REWRITE_ETAG_MAX];
    if (!is_named(field, "ETag"))
        return header_policy_rewritten(field);
    int length = rewrite_etag_derive(etag, field->value, mark_of(exchange));
    if (length > 0)
        field->value = (struct slice){etag, (size_t)length};
    return length > 0;
}

/* Room for content, without what is kept for the end of the document. */
static size_t content_room(const struct exchange *exchange)
{
    size_t room = buffer_room(&exchange->client->out), kept = FRAME_ROOM + END_ROOM;
    return room > kept ? room - kept : 0;
}

bool exchange_rewrite_has_room(const struct exchange *exchange)
{
    return content_room(exchange) >= REWRITE_STEP_ROOM;
}

/* Rewrites as many bytes of the document as there is room for. */
static size_t take_document(struct exchange *exchange, struct slice document)
{
    static char piece[PIECE_MAX];
    struct rewrite *rewrite = &exchange->rewriter->document;
    size_t room = content_room(exchange);
    struct rewrite_output out = {.bytes = piece, .size = room < PIECE_MAX ? room : PIECE_MAX};
    size_t taken = rewrite_take(rewrite, document, &out);
    exchange_pass_content(exchange, piece, out.length);
    exchange->client->record.links = rewrite->stream.links;
    return taken;
}

static bool has_plain(const struct exchange *exchange)
{
    const struct rewrite_gzip *gzip = &exchange->rewriter->gzip;
    return exchange->decoding && gzip->start < gzip->end;
}

/* True while bytes are left, these or earlier ones that were decoded. */
static bool is_left(const struct exchange *exchange, struct slice rest)
{
    return rest.length > 0 || has_plain(exchange) ||
           (exchange->decoding && exchange->rewriter->gzip.more);
}

/* One step. 0 or -EBADMSG. */
static int take_piece(struct exchange *exchange, struct slice *rest)
{
    struct rewrite_gzip *gzip = &exchange->rewriter->gzip;
    if (has_plain(exchange)) {
        struct slice plain = {gzip->plain + gzip->start, gzip->end - gzip->start};
        gzip->start += take_document(exchange, plain);
        return 0;
    }
    ssize_t taken = exchange->decoding ? rewrite_gzip_take(gzip, *rest)
                                       : (ssize_t)take_document(exchange, *rest);
    if (taken < 0)
        return (int)taken;
    rest->bytes += taken;
    rest->length -= (size_t)taken;
    return 0;
}

size_t exchange_rewrite_content(struct exchange *exchange, const char *content, size_t length)
{
    size_t before = exchange->taken < length ? exchange->taken : length;
    struct slice rest = {content + before, length - before};
    exchange->taken -= before;
    while (is_left(exchange, rest)) {
        if (!exchange_rewrite_has_room(exchange))
            exchange->client->sink->send(exchange->client);
        if (exchange->client->left)
            return CURL_WRITEFUNC_ERROR;
        if (!exchange_rewrite_has_room(exchange)) {
            exchange->taken = length - rest.length; /* libcurl delivers the same content again */
            exchange->download_paused = true;
            return CURL_WRITEFUNC_PAUSE;
        }
        if (take_piece(exchange, &rest) < 0) {
            exchange->fault = EXCHANGE_BAD_GZIP;
            return CURL_WRITEFUNC_ERROR;
        }
    }
    return length;
}

bool exchange_rewrite_is_whole(const struct exchange *exchange)
{
    return !exchange->rewriting || !exchange->decoding ||
           rewrite_gzip_is_whole(&exchange->rewriter->gzip);
}

void exchange_rewrite_finish(struct exchange *exchange)
{
    static char piece[REWRITE_FINISH_ROOM];
    struct exchange_client *client = exchange->client;
    struct rewrite_output out = {.bytes = piece, .size = sizeof(piece)};
    rewrite_finish(&exchange->rewriter->document, &out);
    buffer_take(&client->out, &exchange->broker->buffers);
    exchange_pass_content(exchange, piece, out.length);
    client->record.links = exchange->rewriter->document.stream.links;
}

static bool begins_with(const char *line, const char *name)
{
    return slice_equal_nocase((struct slice){line, strnlen(line, strlen(name))}, slice_of(name));
}

bool exchange_rewrite_ask_whole(struct exchange *exchange)
{
    struct curl_slist *left = NULL, *line = exchange->fields;
    for (; line; line = line->next) {
        if (begins_with(line->data, "Range:") || begins_with(line->data, "If-Range:"))
            continue;
        struct curl_slist *longer = curl_slist_append(left, line->data);
        if (!longer) {
            curl_slist_free_all(left);
            return false;
        }
        left = longer;
    }
    curl_slist_free_all(exchange->fields);
    exchange->fields = left;
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, left);
    buffer_give_back(&exchange->lines, &exchange->broker->buffers);
    exchange->fault = EXCHANGE_SOUND;
    exchange->phase = EXCHANGE_AWAITING;
    exchange->attempts = 0;
    exchange->asked_whole = true;
    if (exchange_start_transfer(exchange))
        return true;
    exchange->fault = EXCHANGE_PART;
    return false;
}
