/* A map from 32-bit ids to 32-bit indices, made once and read often: open addressing, two thirds full. */
#pragma once

#include <stdlib.h>

#include "units.h"

#define IDMAP_NONE UINT32_MAX

struct idmap {
    struct idmap_slot {
        uint32_t id, index; /* index IDMAP_NONE: free */
    } *slots;
    uint32_t size;
};

/* Room for `n` ids. False when memory is short. */
static inline bool idmap_init(struct idmap *map, uint32_t n)
{
    map->size = n + n / 2 + 1;
    size_t bytes = map->size * sizeof *map->slots;
    map->slots = malloc(bytes);
    if (!map->slots)
        return false;
    memset(map->slots, 0xFF, bytes);
    return true;
}

static inline void idmap_free(struct idmap *map) { free(map->slots); }

static inline struct idmap_slot *idmap_slot(const struct idmap *map, uint32_t id)
{
    uint32_t mixed = id * 0x9E3779B1u;
    struct idmap_slot *slot = map->slots + ((uint64_t)mixed * map->size >> 32);
    while (slot->index != IDMAP_NONE && slot->id != id)
        if (++slot == map->slots + map->size)
            slot = map->slots;
    return slot;
}

static inline uint32_t idmap_find(const struct idmap *map, uint32_t id)
{
    return idmap_slot(map, id)->index;
}

/* False if the id is there already. The caller never adds more than it made room for. */
static inline bool idmap_add(struct idmap *map, uint32_t id, uint32_t index)
{
    struct idmap_slot *slot = idmap_slot(map, id);
    if (slot->index != IDMAP_NONE)
        return false;
    *slot = (struct idmap_slot){id, index};
    return true;
}
