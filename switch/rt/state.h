/* A program's state in one switch: its tables, profiles and externs, as the program left them. */
#pragma once

#include "profile.h"

struct sw_value_set {
    uint32_t n, words;
    uint64_t *members; /* value words, then mask words, each */
};

bool state_init(struct sw_state *state, const struct sw_program *program, ns_t now);
void state_free(struct sw_state *state);
/* A table's entries, or its default action, have changed. */
void state_note(struct sw_state *state, uint32_t table);

/* A register array, of cells of up to 8 bytes or of whole words. */
static inline struct sw_cells state_register(const struct sw_state *state, uint32_t number)
{
    const struct sw_array_desc *desc = &state->program->registers[number];
    return (struct sw_cells){.at = (uint8_t *)state->registers + desc->at,
                             .cell_bytes = desc->cell_bytes,
                             .stride = desc->stride,
                             .count = desc->size};
}

/* Is the key a member? `words` is a constant in generated code. */
static inline bool value_set_has(const struct sw_value_set *set, const uint64_t *key, unsigned words)
{
    const uint64_t *member = set->members;
    for (uint32_t i = 0; i < set->n; i++, member += 2 * words) {
        uint64_t differs = 0;
        for (unsigned w = 0; w < words; w++)
            differs |= (key[w] ^ member[w]) & member[words + w];
        if (!differs)
            return true;
    }
    return false;
}
