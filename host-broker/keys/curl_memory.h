/* libcurl's memory, wiped when it is given back: it copies the gateway's token into the requests that it
 * builds, and what it frees would otherwise lie about in the heap for as long as the process lives. */
#ifndef HOST_BROKER_KEYS_CURL_MEMORY_H
#define HOST_BROKER_KEYS_CURL_MEMORY_H

#include <stddef.h>

/* curl_global_init(3) with these functions. 0 or -ENOMEM. */
int curl_memory_start(void);

/* As malloc(3) and its kin, for libcurl and the test. */
void *curl_memory_new(size_t size);
void *curl_memory_new_zeroed(size_t count, size_t size);
void *curl_memory_resize(void *memory, size_t size);
char *curl_memory_copy(const char *text);
void curl_memory_free(void *memory);

#endif
