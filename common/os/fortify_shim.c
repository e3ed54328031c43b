/* What libmnl.a and libbearssl.a were compiled to call and musl does not have.
 *
 * Debian builds them for glibc with _FORTIFY_SOURCE: a copy whose destination has a known size goes
 * through a function that checks it. These are those four, with the same promise: a copy that would
 * overflow does not happen, the process ends instead. `nm` over both archives lists nothing else
 * that musl lacks. For guest programs only; glibc has its own.
 */
#include <stdio.h>
#include <string.h>

void *__memcpy_chk(void *to, const void *from, size_t length, size_t room);
void *__memmove_chk(void *to, const void *from, size_t length, size_t room);
void *__memset_chk(void *to, int byte, size_t length, size_t room);
int __fprintf_chk(FILE *stream, int flag, const char *format, ...);

void *__memcpy_chk(void *to, const void *from, size_t length, size_t room)
{
    if (length > room)
        __builtin_trap();
    return memcpy(to, from, length);
}

void *__memmove_chk(void *to, const void *from, size_t length, size_t room)
{
    if (length > room)
        __builtin_trap();
    return memmove(to, from, length);
}

void *__memset_chk(void *to, int byte, size_t length, size_t room)
{
    if (length > room)
        __builtin_trap();
    return memset(to, byte, length);
}

/* Called by mnl_nlmsg_fprintf alone, which no program of ours calls. */
int __fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
    (void)stream;
    (void)flag;
    (void)format;
    return 0;
}
