/* A binary heap: what has the least key is on top. Of equal keys the lesser number comes first where
 * numbers are what is kept; of owners whichever, but always the same for the same history.
 * The room is its owner's: `items` has to hold as many as are ever in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct heap {
    struct heap_item {
        uint64_t key;
        union {
            void *owner;
            uint64_t number;
        };
    } *items;
    uint32_t count;
    bool by_number; /* among equal keys */
};

#define HEAP_EMPTY UINT64_MAX /* the key of nothing */

static inline bool heap_before(const struct heap *heap, struct heap_item a, struct heap_item b)
{
    return a.key != b.key ? a.key < b.key : heap->by_number && a.number < b.number;
}

/* Put it at a place, or above it. */
static inline void heap_rise(struct heap *heap, uint32_t at, struct heap_item item)
{
    for (; at && heap_before(heap, item, heap->items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items[at] = heap->items[(at - 1) / 2];
    heap->items[at] = item;
}

static inline void heap_push(struct heap *heap, struct heap_item item)
{
    heap_rise(heap, heap->count++, item);
}

/* Not of an empty one. */
static inline struct heap_item heap_pop(struct heap *heap)
{
    struct heap_item top = heap->items[0], last = heap->items[--heap->count];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count &&
            heap_before(heap, heap->items[child + 1], heap->items[child]))
            child++;
        if (!heap_before(heap, heap->items[child], last))
            break;
        heap->items[at] = heap->items[child];
    }
    heap->items[at] = last;
    return top;
}

static inline uint64_t heap_key(const struct heap *heap)
{
    return heap->count ? heap->items[0].key : HEAP_EMPTY;
}
