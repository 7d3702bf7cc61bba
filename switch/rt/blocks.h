/* Blocks of memory of a few sizes, last in first out: whoever needs few keeps using the same warm
 * ones. Sizes go in steps of whole cache lines. The blocks come from chunks, up to a huge page each,
 * that are kept to the end: neighbours share pages, and none has a header of an allocator's. Blocks
 * of many lines never have a multiple of four, lest the beginnings of all of them compete for the
 * same few places of a cache. For one thread.
 */
#pragma once

#include "base.h"

#define BLOCKS_LINE_BITS 6
#define BLOCKS_LINE (1u << BLOCKS_LINE_BITS)
#define BLOCKS_CLASSES 256u /* of sizes */

struct blocks {
    void *free[BLOCKS_CLASSES]; /* linked through their first word */
    struct blocks_fresh {       /* never used so far: to touch them before would cost their pages */
        uint8_t *first, *end;
    } fresh[BLOCKS_CLASSES];
    struct blocks_chunk *chunks;
    uint32_t step_bits; /* of its bytes, whole lines */
    size_t chunk_bytes; /* the last one's */
};

static inline void blocks_init(struct blocks *blocks, uint32_t step_bits)
{
    *blocks = (struct blocks){.step_bits = step_bits};
}
void blocks_free(struct blocks *blocks); /* all there ever were */

/* A fresh one, from the system if need be, when a class is empty; NULL when memory is out. */
void *blocks_refill(struct blocks *blocks, unsigned class);

/* A block of at least so many bytes, above 0; *class is what to give it back as. NULL when memory
 * is out or there are no such large blocks. */
static inline void *blocks_take(struct blocks *blocks, size_t bytes, uint8_t *class)
{
    size_t wanted = (bytes - 1) >> blocks->step_bits;
    if (SW_UNLIKELY(wanted >= BLOCKS_CLASSES))
        return NULL;
    void *block = blocks->free[*class = (uint8_t)wanted];
    if (SW_UNLIKELY(!block))
        return blocks_refill(blocks, (unsigned)wanted);
    memcpy(&blocks->free[wanted], block, sizeof block);
    return block;
}

static inline void blocks_give(struct blocks *blocks, void *block, uint8_t class)
{
    memcpy(block, &blocks->free[class], sizeof block);
    blocks->free[class] = block;
}
