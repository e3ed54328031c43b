/* Memory by whole pages, zero, of which only what was written to is resident: for the few buffers of a mebibyte. */
#ifndef COMMON_OS_PAGES_H
#define COMMON_OS_PAGES_H

#include <stddef.h>

/* NULL when there is none. */
void *pages_map(size_t size);

/* Gives the memory back and keeps the place, zero again. Much less work for the kernel than pages_unmap(). */
void pages_empty(void *pages, size_t size);

/* Gives it back; harmless with NULL. */
void pages_unmap(void *pages, size_t size);

#endif
