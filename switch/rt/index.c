/* Growth and change of the hash index; lookups are inline at their users'. */
#include "index.h"

#include <stdlib.h>

#include "huge_array.h"

#define INDEX_MIN 8

static uint32_t slot_home(const struct sw_index *index, uint64_t slot)
{
    return (uint32_t)(slot >> 32) & index->mask;
}

static void insert(struct sw_index *index, uint64_t slot)
{
    uint32_t i = slot_home(index, slot);
    while (index->slots[i])
        i = (i + 1) & index->mask;
    index->slots[i] = slot;
}

bool index_reserve(struct sw_index *index)
{
    uint32_t size = index->slots ? index->mask + 1 : 0;
    if (size && index->used + 1 <= size / 2 + size / 8)
        return true;
    struct sw_index grown = {.mask = (size ? size * 2 : INDEX_MIN) - 1, .used = index->used};
    grown.slots = huge_array_grow(NULL, 0, ((size_t)grown.mask + 1) * sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (uint32_t i = 0; i < size; i++)
        if (index->slots[i])
            insert(&grown, index->slots[i]);
    free(index->slots);
    *index = grown;
    return true;
}

void index_free(struct sw_index *index)
{
    free(index->slots);
    memset(index, 0, sizeof *index);
}

void index_put(struct sw_index *index, uint64_t hash, uint32_t position)
{
    insert(index, (hash >> 32) << 32 | (position + 1));
    index->used++;
}

static uint32_t find(const struct sw_index *index, uint64_t hash, uint32_t position)
{
    uint32_t i = index_home(index, hash);
    while (index_position(index->slots[i]) != position)
        i = (i + 1) & index->mask;
    return i;
}

void index_remove(struct sw_index *index, uint64_t hash, uint32_t position)
{
    uint32_t hole = find(index, hash, position), mask = index->mask;
    for (uint32_t i = (hole + 1) & mask; index->slots[i]; i = (i + 1) & mask) {
        /* A slot may fill the hole unless its home lies between the hole and itself. */
        uint32_t home = slot_home(index, index->slots[i]);
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            index->slots[hole] = index->slots[i];
            hole = i;
        }
    }
    index->slots[hole] = 0;
    index->used--;
}

void index_replace(struct sw_index *index, uint64_t hash, uint32_t from, uint32_t to)
{
    uint32_t i = find(index, hash, from);
    index->slots[i] = (hash >> 32) << 32 | (to + 1);
}
