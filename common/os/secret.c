/* Secrets. The comparison looks at every byte whatever it finds, and the wipe is kept by a compiler
 * barrier; neither depends on what a C library offers.
 */
#include "common/os/secret.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "common/text/encoding.h"

int secret_random(void *out, size_t length)
{
    uint8_t *bytes = out;
    while (length > 0) {
        ssize_t got = getrandom(bytes, length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        bytes += got;
        length -= (size_t)got;
    }
    return 0;
}

int secret_make_hex(char out[SECRET_HEX_LENGTH + 1])
{
    uint8_t bytes[SECRET_BYTES];
    int result = secret_random(bytes, sizeof(bytes));
    if (result == 0)
        hex_encode(out, bytes, sizeof(bytes));
    secret_wipe(bytes, sizeof(bytes));
    return result;
}

bool secret_is_hex(const char *text)
{
    for (size_t i = 0; i < SECRET_HEX_LENGTH; i++)
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
            return false;
    return text[SECRET_HEX_LENGTH] == '\0';
}

bool secret_equal(const void *a, const void *b, size_t length)
{
    const volatile uint8_t *left = a, *right = b; /* volatile: no early way out may be invented */
    uint8_t difference = 0;
    for (size_t i = 0; i < length; i++)
        difference |= left[i] ^ right[i];
    return difference == 0;
}

void secret_wipe(void *memory, size_t length)
{
    memset(memory, 0, length);
    __asm__ volatile("" : : "r"(memory) : "memory"); /* the zeros may be read: the stores stay */
}
