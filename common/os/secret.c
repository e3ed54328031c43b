/* The comparison reads every byte whatever it finds, and a compiler barrier keeps the wipe; neither
 * depends on functions of a C library.
 */
#include "common/os/secret.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "common/text/encoding.h"

#define GETENTROPY_MAX 256 /* of one call: POSIX */

int secret_random(void *out, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = length - done < GETENTROPY_MAX ? length - done : GETENTROPY_MAX;
        if (getentropy((uint8_t *)out + done, piece) < 0)
            return -errno;
        done += piece;
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
    const volatile uint8_t *left = a, *right = b; /* volatile: the loop cannot end early */
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
