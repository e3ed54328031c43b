/* Looks at many bytes at a time, for the formats that rewrite.h reads: with SSE2, which every x86-64 has, else
 * one by one through a table. Both find the same (test_byte_block.c). Nothing here keeps a state.
 */
#ifndef HOST_BROKER_BASE_BYTE_BLOCK_H
#define HOST_BROKER_BASE_BYTE_BLOCK_H

#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "host-broker/base/slice.h"

#define BYTE_BLOCK 64
#define BYTE_RUN 16

/* One bit for each byte of a block, the first byte's the lowest. */
struct byte_block {
    uint64_t quotes;
    uint64_t specials; /* backslashes and control characters */
    uint64_t brackets; /* {}[] */
};

#ifdef __SSE2__

static inline __m128i byte_load(const char *bytes)
{
    return _mm_loadu_si128((const __m128i *)(const void *)bytes);
}

static inline __m128i byte_equal(__m128i run, char byte)
{
    return _mm_cmpeq_epi8(run, _mm_set1_epi8(byte));
}

static inline __m128i byte_in_range(__m128i run, char first, char last)
{
    __m128i offset = _mm_sub_epi8(run, _mm_set1_epi8(first));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8((char)(last - first))), offset);
}

static inline __m128i byte_either(__m128i a, __m128i b)
{
    return _mm_or_si128(a, b);
}

static inline uint32_t byte_bits(__m128i found)
{
    return (uint32_t)_mm_movemask_epi8(found);
}

static inline __m128i byte_specials(__m128i run)
{
    return byte_either(byte_in_range(run, '\0', ' ' - 1), byte_equal(run, '\\'));
}

static inline struct byte_block byte_block_find_all(const char bytes[BYTE_BLOCK])
{
    struct byte_block found = {0};
    for (unsigned at = 0; at < BYTE_BLOCK; at += BYTE_RUN) {
        __m128i run = byte_load(bytes + at);
        __m128i curly = byte_either(run, _mm_set1_epi8('{' ^ '[')); /* the same bit as '}' ^ ']' */
        __m128i brackets = byte_either(byte_equal(curly, '{'), byte_equal(curly, '}'));
        found.quotes |= (uint64_t)byte_bits(byte_equal(run, '"')) << at;
        found.specials |= (uint64_t)byte_bits(byte_specials(run)) << at;
        found.brackets |= (uint64_t)byte_bits(brackets) << at;
    }
    return found;
}

/* How many of two runs of bytes come before the first quote, backslash or control character. */
static inline size_t byte_run_text(const char bytes[2 * BYTE_RUN])
{
    __m128i low = byte_load(bytes), high = byte_load(bytes + BYTE_RUN);
    uint32_t first = byte_bits(byte_either(byte_equal(low, '"'), byte_specials(low)));
    uint32_t second = byte_bits(byte_either(byte_equal(high, '"'), byte_specials(high)));
    uint32_t found = first | second << BYTE_RUN;
    return found != 0 ? (size_t)__builtin_ctz(found) : (size_t)2 * BYTE_RUN;
}

/* How many of a run of bytes come before the first that is no white space of JSON. */
static inline size_t byte_run_white(const char bytes[BYTE_RUN])
{
    __m128i run = byte_load(bytes);
    __m128i ends = byte_either(byte_equal(run, '\n'), byte_equal(run, '\r'));
    __m128i spaces = byte_either(byte_equal(run, ' '), byte_equal(run, '\t'));
    return (size_t)__builtin_ctz(~byte_bits(byte_either(ends, spaces)));
}

/* How many come before the first that is neither a letter nor a hyphen. */
static inline size_t byte_run_name(const char bytes[BYTE_RUN])
{
    __m128i run = byte_load(bytes);
    __m128i letters = byte_in_range(byte_either(run, _mm_set1_epi8('a' ^ 'A')), 'a', 'z');
    return (size_t)__builtin_ctz(~byte_bits(byte_either(letters, byte_equal(run, '-'))));
}

static inline uint32_t byte_simple(__m128i run)
{
    __m128i letters = byte_either(byte_in_range(run, '@', 'Z'), byte_in_range(run, 'a', 'z'));
    __m128i others = byte_either(byte_in_range(run, '-', ':'), byte_equal(run, '_'));
    __m128i rare = byte_either(byte_equal(run, '!'), byte_equal(run, '+'));
    return byte_bits(
        byte_either(byte_either(letters, others), byte_either(rare, byte_equal(run, '~'))));
}

static inline uint32_t byte_not_plain(__m128i run)
{
    __m128i ends = byte_either(byte_equal(run, '?'), byte_equal(run, '#'));
    __m128i escapes = byte_either(byte_equal(run, '&'), byte_equal(run, '\\'));
    return byte_bits(byte_either(ends, escapes)) |
           (byte_bits(byte_in_range(run, '!', '~')) ^ 0xffff);
}

/* How many bytes of a link are plain: each stands for itself in JSON and HTML, stays as it is, and does not
 * end the path. *simple becomes false when one of them is none that a target can hold wherever it stands, or
 * is a dot behind a slash; `before` is the byte in front of them. */
static inline size_t byte_run_link(const char bytes[BYTE_RUN], char before, bool *simple)
{
    __m128i run = byte_load(bytes);
    uint32_t end = byte_not_plain(run) | 1u << BYTE_RUN;
    uint32_t slashes = byte_bits(byte_equal(run, '/')), dots = byte_bits(byte_equal(run, '.'));
    uint32_t refused = ~byte_simple(run) | (dots & (slashes << 1 | (before == '/')));
    *simple = *simple && (refused & ((end & -end) - 1)) == 0;
    return (size_t)__builtin_ctz(end);
}

#else

#define BYTE_QUOTE 1u
#define BYTE_SPECIAL 2u
#define BYTE_BRACKET 4u
#define BYTE_WHITE 8u
#define BYTE_PLAIN 16u
#define BYTE_SIMPLE 32u
#define BYTE_NAME 64u
#define BYTE_LETTER (BYTE_PLAIN | BYTE_SIMPLE | BYTE_NAME)

static const uint8_t byte_classes[256] = {
    ['\0' ... '\b'] = BYTE_SPECIAL,
    ['\t' ... '\n'] = BYTE_SPECIAL | BYTE_WHITE,
    ['\v' ... '\f'] = BYTE_SPECIAL,
    ['\r'] = BYTE_SPECIAL | BYTE_WHITE,
    ['\r' + 1 ... ' ' - 1] = BYTE_SPECIAL,
    [' '] = BYTE_WHITE,
    ['!'] = BYTE_PLAIN | BYTE_SIMPLE,
    ['"'] = BYTE_PLAIN | BYTE_QUOTE,
    ['$' ... '%'] = BYTE_PLAIN,
    ['\'' ... '*'] = BYTE_PLAIN,
    ['+'] = BYTE_PLAIN | BYTE_SIMPLE,
    [','] = BYTE_PLAIN,
    ['-'] = BYTE_LETTER,
    ['.' ... ':'] = BYTE_PLAIN | BYTE_SIMPLE,
    [';' ... '>'] = BYTE_PLAIN,
    ['@'] = BYTE_PLAIN | BYTE_SIMPLE,
    ['A' ... 'Z'] = BYTE_LETTER,
    ['['] = BYTE_PLAIN | BYTE_BRACKET,
    ['\\'] = BYTE_SPECIAL,
    [']'] = BYTE_PLAIN | BYTE_BRACKET,
    ['^'] = BYTE_PLAIN,
    ['_'] = BYTE_PLAIN | BYTE_SIMPLE,
    ['`'] = BYTE_PLAIN,
    ['a' ... 'z'] = BYTE_LETTER,
    ['{'] = BYTE_PLAIN | BYTE_BRACKET,
    ['|'] = BYTE_PLAIN,
    ['}'] = BYTE_PLAIN | BYTE_BRACKET,
    ['~'] = BYTE_PLAIN | BYTE_SIMPLE,
};

static inline struct byte_block byte_block_find_all(const char bytes[BYTE_BLOCK])
{
    struct byte_block found = {0};
    for (unsigned at = 0; at < BYTE_BLOCK; at++) {
        uint64_t class = byte_classes[(unsigned char)bytes[at]];
        found.quotes |= (class / BYTE_QUOTE & 1) << at;
        found.specials |= (class / BYTE_SPECIAL & 1) << at;
        found.brackets |= (class / BYTE_BRACKET & 1) << at;
    }
    return found;
}

/* How many of `size` bytes come before one that has such a class (`with`), or has none. */
static inline size_t byte_count(const char *bytes, size_t size, unsigned classes, bool with)
{
    size_t at = 0;
    while (at < size && ((byte_classes[(unsigned char)bytes[at]] & classes) != 0) != with)
        at++;
    return at;
}

static inline size_t byte_run_text(const char bytes[2 * BYTE_RUN])
{
    return byte_count(bytes, (size_t)2 * BYTE_RUN, BYTE_QUOTE | BYTE_SPECIAL, true);
}

static inline size_t byte_run_white(const char bytes[BYTE_RUN])
{
    return byte_count(bytes, BYTE_RUN, BYTE_WHITE, false);
}

static inline size_t byte_run_name(const char bytes[BYTE_RUN])
{
    return byte_count(bytes, BYTE_RUN, BYTE_NAME, false);
}

static inline size_t byte_run_link(const char bytes[BYTE_RUN], char before, bool *simple)
{
    size_t plain = byte_count(bytes, BYTE_RUN, BYTE_PLAIN, false);
    for (size_t at = 0; at < plain; at++) {
        bool dot = bytes[at] == '.' && before == '/';
        bool held = (byte_classes[(unsigned char)bytes[at]] & BYTE_SIMPLE) != 0;
        *simple = *simple && held && !dot;
        before = bytes[at];
    }
    return plain;
}

#endif

/* What there is in the first BYTE_BLOCK bytes; fewer are filled up with spaces. */
static inline struct byte_block byte_block_find(struct slice in)
{
    char filled[BYTE_BLOCK];
    if (in.length >= BYTE_BLOCK)
        return byte_block_find_all(in.bytes);
    memset(filled, ' ', sizeof(filled));
    memcpy(filled, in.bytes, in.length);
    return byte_block_find_all(filled);
}

/* The bits from each odd one of `marks` on up to before the next: what stands in strings, with the quotes
 * that open them. */
static inline uint64_t byte_block_between(uint64_t marks)
{
    for (unsigned distance = 1; distance < BYTE_BLOCK; distance *= 2)
        marks ^= marks << distance;
    return marks;
}

#endif
