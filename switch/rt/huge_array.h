/* Large arrays that lookups wander through: aligned to cache lines, on huge pages once they fill
 * any, so that a random access costs one miss and no walk through page tables. */
#pragma once

#include "base.h"

/* A copy of `used` bytes in an array of `size`, the rest zero; `old` is freed. NULL, and `old` as
 * it was, when memory is out. To be freed with free(). */
void *huge_array_grow(void *old, size_t used, size_t size);

/* The same with nothing in it, not even zeros; *size becomes what there is. */
void *huge_array_new(size_t *size);
