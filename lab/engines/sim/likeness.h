/* How things are, as far as anything to come depends on it, written down to be compared.
 *
 * Cell after cell, always in the same order: what has to be the same for all to go on as it did, what may
 * have moved on with the time, and what only grows, so that nothing depends on how large it is: numbers of
 * packets, what was counted. Three such states, one period after the other, are alike if every cell kept to
 * that both times. Then what follows the last is what followed those before.
 */
#pragma once

#include "plan.h"
#include "sw.h"

enum likeness_kind {
    LIKE_SAME,
    LIKE_TIME,        /* the same, or later by as much as has passed; */
    LIKE_SHORT_TIME,  /* of 32 bits */
    LIKE_COUNT,       /* as much more as before, modulo 2^64, */
    LIKE_SHORT_COUNT, /* or 2^32 */
};

struct likeness {
    uint64_t *values; /* NULL: cells are only counted */
    uint8_t *kinds;
    uint64_t n;
};

static inline void like(struct likeness *to, enum likeness_kind kind, uint64_t value)
{
    if (to->values) {
        to->values[to->n] = value;
        to->kinds[to->n] = (uint8_t)kind;
    }
    to->n++;
}

/* A switch that holds no packet; of registers that are `tallies`, by number, only that they grow. `lots`:
 * what its generator of random numbers will say matters. */
void liken_switch(struct likeness *to, const struct sw *sw, const uint8_t *tallies, bool lots);

/* A host but for what it has still to do; false if any of its messages is under way. */
bool liken_host(struct likeness *to, struct plan *plan);

/* How many cells keep to it, from the first on. */
uint64_t likeness_of(const uint64_t *const states[3], const uint8_t *kinds, uint64_t count, ns_t period);
