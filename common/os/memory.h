/* Memory that is taken from the system in whole pages, and files that exist in memory only. */
#ifndef COMMON_OS_MEMORY_H
#define COMMON_OS_MEMORY_H

#include <stddef.h>

#include "common/os/failure.h"

#define MEMORY_FILE_PATH_MAX 32

/* Reserves addresses; a page takes memory when it is first written and reads as zero until then.
 * NULL when there are none. */
void *memory_reserve(size_t size);

/* Returns whole pages to the system: they read as zero again. Much cheaper than memory_free() and
 * memory_reserve() in turn. */
void memory_discard(void *memory, size_t size);

/* Returns the addresses too; harmless with NULL. */
void memory_free(void *memory, size_t size);

/* Keeps a secret out of swap (as far as the user's limit allows) and out of core dumps. */
void memory_protect(void *memory, size_t size);

/* An empty file without a name. A descriptor, or a negative errno with a reason. */
int memory_file_open(const char *label, struct failure *why);

/* No change to the file from here on. */
void memory_file_seal(int fd);

/* The name under which this process can open it. */
void memory_file_path(int fd, char out[MEMORY_FILE_PATH_MAX]);

#endif
