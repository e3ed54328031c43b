/* Text put together piece by piece in somebody else's buffer, for what is written with every request:
 * there snprintf(3) would be a tenth of the instructions. Once a piece did not fit nothing more is
 * written, so that nothing is ever cut in the middle.
 */
#ifndef HOST_BROKER_BASE_TEXT_BUILDER_H
#define HOST_BROKER_BASE_TEXT_BUILDER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/text/number.h"
#include "host-broker/base/slice.h"

struct text_builder {
    char *text;
    size_t size, length;
    bool overflow; /* sticky */
};

static inline void text_add(struct text_builder *builder, struct slice piece)
{
    builder->overflow = builder->overflow || builder->size - builder->length < piece.length;
    if (builder->overflow || piece.length == 0)
        return;
    memcpy(builder->text + builder->length, piece.bytes, piece.length);
    builder->length += piece.length;
}

static inline void text_add_string(struct text_builder *builder, const char *piece)
{
    text_add(builder, slice_of(piece));
}

static inline void text_add_number(struct text_builder *builder, uint64_t number)
{
    char digits[NUMBER_DIGITS_MAX];
    text_add(builder, (struct slice){digits, number_write(digits, number)});
}

/* Writes the NUL behind it. The text's length, or -ENOSPC when not all did fit. */
static inline int text_finish(struct text_builder *builder)
{
    text_add(builder, (struct slice){"", 1});
    return builder->overflow ? -ENOSPC : (int)builder->length - 1;
}

#endif
