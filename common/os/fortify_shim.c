/* Functions that libmnl.a and libbearssl.a call and musl does not have; without them guest programs
 * do not link.
 *
 * Debian builds these archives for glibc with _FORTIFY_SOURCE: a copy to a destination of known
 * size calls a function that checks the size. The functions here do the same: instead of an
 * overflow the process ends. For guest programs only; glibc has its own.
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
