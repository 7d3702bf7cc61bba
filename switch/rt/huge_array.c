/* Aligned allocation. */
#define _GNU_SOURCE
#include "huge_array.h"

#include <sys/mman.h>

#define LINE 64u
#define HUGE_PAGE ((size_t)2 << 20)

void *huge_array_new(size_t *size)
{
    size_t align = *size >= HUGE_PAGE ? HUGE_PAGE : LINE;
    *size = (*size + align - 1) / align * align;
    void *array = NULL;
    if (posix_memalign(&array, align, *size))
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE)
        madvise(array, *size, MADV_HUGEPAGE); /* only a wish */
#endif
    return array;
}

void *huge_array_grow(void *old, size_t used, size_t size)
{
    void *grown = huge_array_new(&size);
    if (!grown)
        return NULL;
    if (used)
        memcpy(grown, old, used);
    memset((uint8_t *)grown + used, 0, size - used);
    free(old);
    return grown;
}
