/* Getting chunks and cutting them up. */
#include "blocks.h"

#include <stdlib.h>

#include "huge_array.h"

#define FIRST_CHUNK ((size_t)32 << 10)
#define MAX_CHUNK ((size_t)2 << 20) /* a huge page */

struct blocks_chunk {
    struct blocks_chunk *next;
};

void blocks_free(struct blocks *blocks)
{
    for (struct blocks_chunk *chunk = blocks->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    blocks_init(blocks, blocks->step_bits);
}

static size_t size_of(const struct blocks *blocks, unsigned class)
{
    size_t lines = (class + 1) * ((size_t)1 << blocks->step_bits) / BLOCKS_LINE;
    return (lines + (lines % 4 == 0)) * BLOCKS_LINE;
}

void *blocks_refill(struct blocks *blocks, unsigned class)
{
    struct blocks_fresh *fresh = &blocks->fresh[class];
    size_t size = size_of(blocks, class);
    if (fresh->first == fresh->end) {
        size_t bytes = blocks->chunk_bytes ? 2 * blocks->chunk_bytes : FIRST_CHUNK;
        bytes = bytes < MAX_CHUNK ? bytes : MAX_CHUNK;
        if (bytes < size + BLOCKS_LINE)
            bytes = size + BLOCKS_LINE;
        struct blocks_chunk *chunk = huge_array_new(&bytes);
        if (!chunk)
            return NULL;
        chunk->next = blocks->chunks;
        blocks->chunks = chunk;
        blocks->chunk_bytes = bytes;
        fresh->first = (uint8_t *)chunk + BLOCKS_LINE;
        fresh->end = fresh->first + (bytes - BLOCKS_LINE) / size * size;
    }
    uint8_t *block = fresh->first;
    fresh->first += size;
    return block;
}
