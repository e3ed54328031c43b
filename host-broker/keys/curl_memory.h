/* The memory of libcurl. libcurl copies the gateway's token into the requests that it builds: every
 * block is wiped when it is freed, so that no copy stays in the heap for the rest of the process's
 * life.
 *
 * Large blocks, libcurl's buffers, are whole pages of the system instead of parts of the heap. An
 * idle stream uses little of its buffers, and a page that is not used takes no memory: 47 KiB for
 * an idle stream, against 68 KiB with malloc, where 64 KiB are allowed. Mapping, touching and
 * unmapping the same buffers would take a quarter of the time of a small request, so some of each
 * size are kept.
 */
#ifndef HOST_BROKER_KEYS_CURL_MEMORY_H
#define HOST_BROKER_KEYS_CURL_MEMORY_H

#include <stddef.h>

/* curl_global_init(3) with the functions below. 0 or -ENOMEM. */
int curl_memory_start(void);

/* As malloc(3), calloc(3), realloc(3), strdup(3) and free(3). */
void *curl_memory_new(size_t size);
void *curl_memory_new_zeroed(size_t count, size_t size);
void *curl_memory_resize(void *memory, size_t size);
char *curl_memory_copy(const char *text);
void curl_memory_free(void *memory);

#endif
