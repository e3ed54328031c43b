/* The grammar of RFC 8259, as a loop with one bit for each level of nesting: without recursion no
 * text can exhaust the stack.
 *
 * A scanner reads values, and after each value the loop does what the innermost container allows
 * next:
 *
 *     value    a value must begin here
 *     after    a value has ended: a comma, the container's end or, outside all, the end of the text
 *
 * Errors point at the byte that cannot be part of any JSON text with this beginning. Numbers,
 * strings and literals are checked by functions that return the offset behind them.
 */
#include "common/json/json_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/json/json.h"
#include "common/text/utf8.h"

struct scanner {
    const char *text;
    size_t length, at;
    unsigned depth;
    uint64_t objects; /* bit `depth - 1` is set when the innermost container is an object */
    const char *reason;
};

static_assert(JSON_DEPTH_MAX <= 64, "one bit per level");

static int refuse(struct scanner *scanner, const char *reason)
{
    scanner->reason = reason;
    return -EINVAL;
}

/* The byte at hand, or -1 at the end. */
static int peek(const struct scanner *scanner)
{
    return scanner->at < scanner->length ? (unsigned char)scanner->text[scanner->at] : -1;
}

static void skip_white_space(struct scanner *scanner)
{
    int byte;
    while ((byte = peek(scanner)) == ' ' || byte == '\t' || byte == '\n' || byte == '\r')
        scanner->at++;
}

static bool skip_digits(struct scanner *scanner)
{
    size_t from = scanner->at;
    while (peek(scanner) >= '0' && peek(scanner) <= '9')
        scanner->at++;
    return scanner->at > from;
}

static int check_number(struct scanner *scanner)
{
    if (peek(scanner) == '-')
        scanner->at++;
    if (peek(scanner) == '0')
        scanner->at++; /* no digit may follow: what does is refused as the next thing */
    else if (!skip_digits(scanner))
        return refuse(scanner, "a digit is missing after the minus sign");
    if (peek(scanner) >= '0' && peek(scanner) <= '9')
        return refuse(scanner, "a number must not begin with 0");
    if (peek(scanner) == '.') {
        scanner->at++;
        if (!skip_digits(scanner))
            return refuse(scanner, "a digit is missing after the decimal point");
    }
    if (peek(scanner) == 'e' || peek(scanner) == 'E') {
        scanner->at++;
        if (peek(scanner) == '+' || peek(scanner) == '-')
            scanner->at++;
        if (!skip_digits(scanner))
            return refuse(scanner, "a digit is missing in the exponent");
    }
    return 0;
}

static int check_literal(struct scanner *scanner, const char *literal)
{
    for (; *literal != '\0'; literal++, scanner->at++)
        if (peek(scanner) != *literal)
            return refuse(scanner, "a word that is not true, false or null");
    return 0;
}

static bool is_hex_digit(int byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') ||
           (byte >= 'A' && byte <= 'F');
}

static int check_escape(struct scanner *scanner)
{
    scanner->at++; /* the backslash */
    int letter = peek(scanner);
    if (letter <= 0 || !strchr("\"\\/bfnrtu", letter))
        return refuse(scanner, "no such escape in a string");
    scanner->at++;
    for (int i = 0; letter == 'u' && i < 4; i++, scanner->at++)
        if (!is_hex_digit(peek(scanner)))
            return refuse(scanner, "\\u needs four hexadecimal digits");
    return 0;
}

static int check_string(struct scanner *scanner)
{
    if (peek(scanner) != '"')
        return refuse(scanner, "a string in double quotes is expected here");
    scanner->at++;
    for (;;) {
        int byte = peek(scanner);
        if (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\') {
            scanner->at++; /* most characters */
            continue;
        }
        if (byte < 0)
            return refuse(scanner, "the string has no end");
        if (byte == '"')
            break;
        if (byte < 0x20)
            return refuse(scanner, "a control character in a string must be escaped");
        if (byte == '\\') {
            int result = check_escape(scanner);
            if (result < 0)
                return result;
            continue;
        }
        uint32_t code;
        size_t taken =
            utf8_decode(scanner->text + scanner->at, scanner->length - scanner->at, &code);
        if (taken == 0)
            return refuse(scanner, "not UTF-8");
        scanner->at += taken;
    }
    scanner->at++;
    return 0;
}

static bool in_object(const struct scanner *scanner)
{
    return scanner->depth > 0 && (scanner->objects >> (scanner->depth - 1) & 1) != 0;
}

static int check_name(struct scanner *scanner)
{
    skip_white_space(scanner);
    if (peek(scanner) == '}')
        return refuse(scanner, "a comma before the closing brace");
    int result = check_string(scanner);
    if (result < 0)
        return result;
    skip_white_space(scanner);
    if (peek(scanner) != ':')
        return refuse(scanner, "a colon is expected after the name");
    scanner->at++;
    return 0;
}

/* Enters a container. 1 when it is empty and thus a whole value, 0 when its first value comes
 * next. */
static int open_container(struct scanner *scanner, bool object)
{
    if (scanner->depth == JSON_DEPTH_MAX) {
        scanner->reason = "nested too deeply";
        return -E2BIG;
    }
    scanner->at++;
    skip_white_space(scanner);
    if (peek(scanner) == (object ? '}' : ']')) {
        scanner->at++;
        return 1;
    }
    uint64_t bit = (uint64_t)1 << scanner->depth++;
    scanner->objects = object ? scanner->objects | bit : scanner->objects & ~bit;
    return object ? check_name(scanner) : 0;
}

/* 1 when a whole value was read, 0 when a container was entered, else an error. */
static int check_value(struct scanner *scanner)
{
    skip_white_space(scanner);
    int byte = peek(scanner), result;
    if (byte == '{' || byte == '[')
        return open_container(scanner, byte == '{');
    if (byte == '"')
        result = check_string(scanner);
    else if (byte == '-' || (byte >= '0' && byte <= '9'))
        result = check_number(scanner);
    else if (byte == 't')
        result = check_literal(scanner, "true");
    else if (byte == 'f')
        result = check_literal(scanner, "false");
    else if (byte == 'n')
        result = check_literal(scanner, "null");
    else if (byte < 0)
        result = refuse(scanner, "the text ends where a value is expected");
    else
        result = refuse(scanner, "a value is expected here");
    return result < 0 ? result : 1;
}

/* Behind a value: 1 when the whole text is read, 0 when a value must follow, else an error. */
static int check_after(struct scanner *scanner)
{
    for (;;) {
        skip_white_space(scanner);
        int byte = peek(scanner);
        if (scanner->depth == 0)
            return byte < 0 ? 1 : refuse(scanner, "something follows the value");
        if (byte == ',') {
            scanner->at++;
            return in_object(scanner) ? check_name(scanner) : 0;
        }
        if (byte != (in_object(scanner) ? '}' : ']'))
            return refuse(scanner, byte < 0 ? "the text ends inside an object or array"
                                   : in_object(scanner)
                                       ? "a comma or closing brace is expected here"
                                       : "a comma or closing bracket is expected here");
        scanner->at++;
        scanner->depth--;
    }
}

int json_grammar_check(const char *text, size_t length, size_t *offset, const char **reason)
{
    struct scanner scanner = {.text = text, .length = length};
    int result;
    do {
        result = check_value(&scanner);
        if (result == 1)
            result = check_after(&scanner);
    } while (result == 0);
    if (result == 1)
        return 0;
    *offset = scanner.at;
    *reason = scanner.reason;
    return result;
}
