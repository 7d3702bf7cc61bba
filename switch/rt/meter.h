/* Meters: two token buckets, as BMv2's trTCM. */
#pragma once

#include "prog.h"

enum { METER_GREEN = 0, METER_YELLOW = 1, METER_RED = 2 };

#define METER_UNIT 1000000u /* tokens are millionths, so slow rates do not round away */

static inline bool bucket_take(struct sw_bucket *b, uint64_t amount, ns_t now)
{
    u128 tokens = b->tokens + (u128)(now - b->filled) * b->rate / (1000000000u / METER_UNIT);
    u128 most = (u128)b->burst * METER_UNIT;
    b->filled = now;
    b->tokens = (uint64_t)(tokens < most ? tokens : most);
    if (b->tokens < amount * METER_UNIT)
        return false;
    b->tokens -= amount * METER_UNIT;
    return true;
}

/* The peak bucket is asked first, and keeps what it gave even if the committed one refuses. */
static inline uint32_t meter_run(struct sw_meter *m, uint64_t amount, ns_t now)
{
    if (!m->configured)
        return METER_GREEN;
    if (!bucket_take(&m->peak, amount, now))
        return METER_RED;
    return bucket_take(&m->committed, amount, now) ? METER_GREEN : METER_YELLOW;
}

static inline void meter_set(struct sw_meter *m, const uint64_t rates[4], ns_t now)
{
    m->configured = true;
    m->committed = (struct sw_bucket){rates[0], rates[1], rates[1] * METER_UNIT, now};
    m->peak = (struct sw_bucket){rates[2], rates[3], rates[3] * METER_UNIT, now};
}
