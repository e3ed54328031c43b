/* Faults that a sanitizer or valgrind finds, one for each argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    volatile size_t size = 8; /* so that no compiler or analyzer knows */
    char *volatile block = malloc(size);
    const char *fault = argc > 1 ? argv[1] : "none";

    if (strcmp(fault, "heap") == 0)
        block[size] = 'x';
    if (strcmp(fault, "shift") == 0)
        printf("%d\n", 1 << (argc + 62));
    if (strcmp(fault, "leak") != 0)
        free(block);
    block = NULL;
    return 0;
}
