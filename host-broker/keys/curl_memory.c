/* Blocks with their size in front, small ones from malloc and large ones in pages of the system. */
#include "host-broker/keys/curl_memory.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/os/memory.h"
#include "common/os/secret.h"

#define PAGE 4096
#define LARGE (3 * PAGE)
#define KEPT_PAGES_MAX 8 /* larger blocks are not kept */
#define KEPT_MAX 64      /* blocks of each number of pages */

struct block {
    alignas(max_align_t) size_t size; /* of the memory behind it */
    struct block *next;               /* while it is kept */
};

/* Wiped large blocks for later requests. Only the thread that serves keeps any, since libcurl's
 * threads for name resolution end after each name. */
static _Thread_local struct {
    struct block *first;
    unsigned count;
} kept[KEPT_PAGES_MAX + 1];
static _Thread_local bool keeps;

static size_t pages_of(size_t size)
{
    return (sizeof(struct block) + size + PAGE - 1) / PAGE;
}

static struct block *take_pages(size_t pages)
{
    if (pages > KEPT_PAGES_MAX || !kept[pages].first)
        return memory_reserve(pages * PAGE);
    struct block *block = kept[pages].first;
    kept[pages].first = block->next;
    kept[pages].count--;
    return block;
}

static void give_pages_back(struct block *block, size_t size)
{
    size_t pages = pages_of(size);
    if (!keeps || pages > KEPT_PAGES_MAX || kept[pages].count == KEPT_MAX) {
        memory_free(block, pages * PAGE); /* the kernel clears pages before anybody gets them */
        return;
    }
    secret_wipe(block + 1, size);
    block->next = kept[pages].first;
    kept[pages].first = block;
    kept[pages].count++;
}

void *curl_memory_new(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    struct block *block =
        size >= LARGE ? take_pages(pages_of(size)) : malloc(sizeof(struct block) + size);
    if (!block)
        return NULL;
    block->size = size;
    return block + 1;
}

void curl_memory_free(void *memory)
{
    if (!memory)
        return;
    struct block *block = (struct block *)memory - 1;
    if (block->size >= LARGE) {
        give_pages_back(block, block->size);
        return;
    }
    secret_wipe(memory, block->size);
    free(block);
}

void *curl_memory_new_zeroed(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = curl_memory_new(count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

void *curl_memory_resize(void *memory, size_t size)
{
    void *larger = curl_memory_new(size);
    if (!larger || !memory)
        return larger;
    const struct block *block = (const struct block *)memory - 1;
    memcpy(larger, memory, block->size < size ? block->size : size);
    curl_memory_free(memory);
    return larger;
}

char *curl_memory_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = curl_memory_new(size);
    return copy ? memcpy(copy, text, size) : NULL;
}

int curl_memory_start(void)
{
    keeps = true;
    CURLcode code =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_memory_new, curl_memory_free,
                             curl_memory_resize, curl_memory_copy, curl_memory_new_zeroed);
    return code == CURLE_OK ? 0 : -ENOMEM;
}
