/* An open-addressing hash from keys to positions: the one hash table of the run-time.
 *
 * A slot is eight bytes: the high half is the high half of the hash, the low half the position
 * plus one, zero meaning empty. Keys stay with whoever owns the positions; the half hash makes
 * looking there in vain rare, and lets the table grow without seeing a key. Eight slots share a cache line, and probing is linear. Deleting
 * moves later slots of the run back, so there are no tombstones and a table never degrades.
 */
#pragma once

#include "base.h"

struct sw_index {
    uint64_t *slots;
    uint32_t mask; /* slots - 1 */
    uint32_t used;
};

/* Room for one more entry; false when memory is out. Call before index_put. */
bool index_reserve(struct sw_index *index);
void index_free(struct sw_index *index);

/* Where a key with this hash starts to be looked for. */
static inline uint32_t index_home(const struct sw_index *index, uint64_t hash)
{
    return (uint32_t)(hash >> 32) & index->mask;
}

/* The slots are consulted with: for (i = home; (s = slots[i]); i = (i + 1) & mask). */
static inline bool index_maybe(uint64_t slot, uint64_t hash)
{
    return (uint32_t)(slot >> 32) == (uint32_t)(hash >> 32);
}
static inline uint32_t index_position(uint64_t slot) { return (uint32_t)slot - 1; }

void index_put(struct sw_index *index, uint64_t hash, uint32_t position);
/* Forget a position that is there. */
void index_remove(struct sw_index *index, uint64_t hash, uint32_t position);
/* Let a position that is there be another. */
void index_replace(struct sw_index *index, uint64_t hash, uint32_t from, uint32_t to);
