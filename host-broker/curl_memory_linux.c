/* Each block has its size in front of it, so that it can be wiped whole: see curl_memory.h.
 *
 * Of a large block most pages were never used. Writing zeros would bring them into memory, so they are
 * given back instead, which has the same effect (madvise(2), MADV_DONTNEED).
 *
 * With every request libcurl asks for the same large buffer and frees it again: mapped, brought in page by page,
 * given back, unmapped, that was a quarter of a small request's time. So a few are wiped by writing and
 * kept; a thousand streams that hold one each find them gone and take theirs from the system.
 */
#include "host-broker/curl_memory.h"

#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <curl/curl.h>

#include "common/secret.h"

#define PAGE 4096 /* where the kernel's are larger, madvise refuses and zeros are written */
#define LARGE (8 * PAGE)
/* For malloc(3): libcurl's buffers, of which an idle stream uses little. */
#define ON_PAGES_OF_ITS_OWN (16 * 1024)
#define KEPT_MAX 64
#define KEPT_SIZE_MAX (64 * 1024)

struct block {
    alignas(max_align_t) size_t size; /* of what follows */
};

/* Of each thread, as libcurl's resolver has some: it takes no large block, and so keeps none. */
static _Thread_local struct block *kept[KEPT_MAX];
static _Thread_local unsigned kept_count;

static struct block *take_kept(size_t size)
{
    for (unsigned i = kept_count; i-- > 0;) {
        struct block *block = kept[i];
        if (block->size != size)
            continue;
        kept[i] = kept[--kept_count];
        return block;
    }
    return NULL;
}

void *curl_memory_new(size_t size)
{
    if (size > SIZE_MAX - sizeof(struct block))
        return NULL;
    struct block *block = size < ON_PAGES_OF_ITS_OWN ? NULL : take_kept(size);
    if (block == NULL)
        block = malloc(sizeof(*block) + size);
    if (block == NULL)
        return NULL;
    block->size = size;
    return block + 1;
}

static void wipe(char *bytes, size_t size)
{
    char *first = (char *)(((uintptr_t)bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    char *behind = (char *)((uintptr_t)(bytes + size) & ~(uintptr_t)(PAGE - 1));
    if (size < LARGE || madvise(first, (size_t)(behind - first), MADV_DONTNEED) < 0) {
        secret_wipe(bytes, size);
        return;
    }
    secret_wipe(bytes, (size_t)(first - bytes));
    secret_wipe(behind, (size_t)(bytes + size - behind));
}

void curl_memory_free(void *memory)
{
    if (memory == NULL)
        return;
    struct block *block = (struct block *)memory - 1;
    size_t size = block->size;
    if (size >= ON_PAGES_OF_ITS_OWN && size <= KEPT_SIZE_MAX && kept_count < KEPT_MAX) {
        secret_wipe(memory, size);
        kept[kept_count++] = block;
        return;
    }
    wipe(memory, size);
    free(block);
}

void *curl_memory_new_zeroed(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size)
        return NULL;
    void *memory = curl_memory_new(count * size);
    if (memory != NULL)
        memset(memory, 0, count * size);
    return memory;
}

void *curl_memory_resize(void *memory, size_t size)
{
    void *larger = curl_memory_new(size);
    if (larger == NULL || memory == NULL)
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
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

int curl_memory_start(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, ON_PAGES_OF_ITS_OWN);
    CURLcode code =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_memory_new, curl_memory_free,
                             curl_memory_resize, curl_memory_copy, curl_memory_new_zeroed);
    return code == CURLE_OK ? 0 : -ENOMEM;
}
