/* Each block has its size in front of it, so that it can be wiped whole: see curl_memory.h.
 *
 * Small ones are malloc's; of those that a request takes and gives back by the dozen a few are kept, in a list for
 * each size (malloc has such lists too, but of seven only), but under sanitizers, which would not see what is
 * used after its end. A large one (libcurl's buffers, of which an idle stream uses little) lies on
 * pages of its own, so that what is not used takes no memory, and never in the heap, which would be
 * left with holes that no stream fits into.
 *
 * With every request libcurl asks for the same large buffers and frees them again: mapped, brought in page by
 * page and unmapped, that was a quarter of a small request's time. So a few are wiped by writing and
 * kept, in a list for each number of pages; a thousand streams that hold some each find them gone and
 * take theirs from the system. When as many are kept as may be, one of another size makes way: what is
 * given back is what is asked for next.
 */
#include "host-broker/keys/curl_memory.h"

#include <errno.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <curl/curl.h>

#include "common/os/secret.h"

#define PAGE 4096 /* where the kernel's are larger, it rounds a mapping up */
#define LARGE (3 * PAGE)
#define KEPT_MAX 128 /* blocks */
#define KEPT_PAGES_MAX 17

#define STEP 16 /* as of malloc: what is rounded up a stream holds in vain */
#define SMALL_STEPS 64
#ifdef __SANITIZE_ADDRESS__
#define SMALL_KEPT_MAX 0
#else
#define SMALL_KEPT_MAX 64 /* of each size */
#endif

struct block {
    alignas(max_align_t) size_t size; /* of what follows */
    struct block *next;               /* while it is kept */
};

/* Of the thread that serves; libcurl's resolver has others, which come and go and keep nothing. */
static _Thread_local struct kept_blocks {
    struct block *of_pages[KEPT_PAGES_MAX + 1];
    unsigned count;
    struct block *of_steps[SMALL_STEPS + 1];
    unsigned small_count[SMALL_STEPS + 1];
    bool keeps;
} kept;

static bool is_large(size_t size)
{
    return size >= LARGE;
}

static size_t pages_of(size_t size)
{
    return (sizeof(struct block) + size + PAGE - 1) / PAGE;
}

static struct block *take_kept(size_t pages)
{
    struct block *block = kept.of_pages[pages];
    kept.of_pages[pages] = block->next;
    kept.count--;
    return block;
}

static struct block *take_pages(size_t pages)
{
    if (pages <= KEPT_PAGES_MAX && kept.of_pages[pages] != NULL)
        return take_kept(pages);
    void *memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Has one of another size make way. */
static bool make_way(size_t pages)
{
    for (size_t other = KEPT_PAGES_MAX; other > 0; other--) {
        if (other == pages || kept.of_pages[other] == NULL)
            continue;
        munmap(take_kept(other), other * PAGE);
        return true;
    }
    return false;
}

/* What is unmapped the kernel wipes before anybody sees it again. */
static void give_pages_back(struct block *block, size_t size)
{
    size_t pages = pages_of(size);
    if (!kept.keeps || pages > KEPT_PAGES_MAX || (kept.count == KEPT_MAX && !make_way(pages))) {
        munmap(block, pages * PAGE);
        return;
    }
    secret_wipe(block + 1, size);
    block->next = kept.of_pages[pages];
    kept.of_pages[pages] = block;
    kept.count++;
}

static size_t steps_of(size_t size)
{
    return (size + STEP - 1) / STEP;
}

static struct block *take_small(size_t size)
{
    size_t steps = steps_of(size);
    if (steps > SMALL_STEPS || kept.of_steps[steps] == NULL)
        return malloc(sizeof(struct block) + steps * STEP);
    struct block *block = kept.of_steps[steps];
    kept.of_steps[steps] = block->next;
    kept.small_count[steps]--;
    return block;
}

static void give_small_back(struct block *block, size_t size)
{
    size_t steps = steps_of(size);
    secret_wipe(block + 1, size);
    if (!kept.keeps || steps > SMALL_STEPS || kept.small_count[steps] == SMALL_KEPT_MAX) {
        free(block);
        return;
    }
    block->next = kept.of_steps[steps];
    kept.of_steps[steps] = block;
    kept.small_count[steps]++;
}

void *curl_memory_new(size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    struct block *block = is_large(size) ? take_pages(pages_of(size)) : take_small(size);
    if (block == NULL)
        return NULL;
    block->size = size;
    return block + 1;
}

void curl_memory_free(void *memory)
{
    if (memory == NULL)
        return;
    struct block *block = (struct block *)memory - 1;
    if (is_large(block->size))
        give_pages_back(block, block->size);
    else
        give_small_back(block, block->size);
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
    kept.keeps = true;
    CURLcode code =
        curl_global_init_mem(CURL_GLOBAL_DEFAULT, curl_memory_new, curl_memory_free,
                             curl_memory_resize, curl_memory_copy, curl_memory_new_zeroed);
    return code == CURLE_OK ? 0 : -ENOMEM;
}
