/* Sorted arrays of replica lists. */
#include "pre.h"

#include <stdlib.h>

void pre_free(struct pre_table *table)
{
    for (uint32_t i = 0; i < table->n; i++)
        free(table->sets[i].replicas);
    free(table->sets);
    memset(table, 0, sizeof *table);
}

static uint32_t place(const struct pre_table *table, uint32_t id)
{
    uint32_t low = 0, high = table->n;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (table->sets[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct pre_set *pre_find(const struct pre_table *table, uint32_t id)
{
    uint32_t at = place(table, id);
    return at < table->n && table->sets[at].id == id ? &table->sets[at] : NULL;
}

bool pre_set(struct pre_table *table, const struct pre_set *set)
{
    uint32_t at = place(table, set->id);
    size_t size = set->n * sizeof *set->replicas;
    struct pre_replica *replicas = malloc(size ? size : 1);
    if (!replicas)
        return false;
    if (size)
        memcpy(replicas, set->replicas, size);
    if (at == table->n || table->sets[at].id != set->id) {
        if (table->n == table->room) {
            uint32_t room = table->room ? table->room * 2 : 8;
            struct pre_set *sets = realloc(table->sets, room * sizeof *sets);
            if (!sets) {
                free(replicas);
                return false;
            }
            table->sets = sets;
            table->room = room;
        }
        memmove(table->sets + at + 1, table->sets + at, (table->n++ - at) * sizeof *table->sets);
    } else {
        free(table->sets[at].replicas);
    }
    table->sets[at] = *set;
    table->sets[at].replicas = replicas;
    return true;
}

void pre_remove(struct pre_table *table, uint32_t id)
{
    uint32_t at = place(table, id);
    if (at == table->n || table->sets[at].id != id)
        return;
    free(table->sets[at].replicas);
    memmove(table->sets + at, table->sets + at + 1, (--table->n - at) * sizeof *table->sets);
}
