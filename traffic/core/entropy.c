#include "entropy.h"

enum { PENALTY_MARK = 1, PENALTY_CUT = 4, PENALTY_LOST = 15, PENALTY_MAX = 15 };
enum { DRAWN_AFTER_FREEZE = 16 };
#define FROZEN_NS 10000000u

static uint32_t draw(struct entropy *e)
{
    e->random ^= e->random << 13;
    e->random ^= e->random >> 17;
    e->random ^= e->random << 5;
    return e->random;
}

/* The upper bits of what an xorshift draws are the better ones. */
static uint16_t draw_value(struct entropy *e)
{
    return (uint16_t)((uint64_t)draw(e) * e->values >> 32);
}

void entropy_init(struct entropy *e, enum entropy_policy policy, uint16_t values, uint32_t seed,
                  struct way *ways)
{
    *e = (struct entropy){
        .policy = (uint8_t)policy,
        .values = values,
        .random = (seed + 1) * 0x9E3779B1u,
    };
    if (!e->random)
        e->random = 1;
    e->order = draw_value(e);
    health_init(&e->health, ways, values);
}

static uint16_t in_turn(struct entropy *e)
{
    uint16_t value = e->turn ^ e->order;
    if (++e->turn == e->values) {
        e->turn = 0;
        e->order = draw_value(e);
    }
    return value;
}

static uint16_t not_skipped(struct entropy *e)
{
    uint16_t value = in_turn(e);
    for (uint32_t tries = (uint32_t)e->values * PENALTY_MAX; e->skip[value] && tries; tries--) {
        e->skip[value]--;
        value = in_turn(e);
    }
    return value;
}

/* Switches that choose by an entropy's bits choose by the first ones: let these change most. */
static uint16_t scattered(struct entropy *e)
{
    uint16_t turn = e->turn, order = e->order, value = 0;
    for (uint16_t bit = 1; bit < e->values; bit <<= 1, turn >>= 1)
        value = (uint16_t)(value << 1 | (turn & 1));
    in_turn(e);
    return value ^ order;
}

static uint16_t healthy(struct entropy *e)
{
    uint16_t value = scattered(e);
    for (uint32_t tries = 2u * e->values; tries && !health_takes(&e->health, value); tries--)
        value = scattered(e);
    return value;
}

static uint16_t recycled(struct entropy *e, ns_t now)
{
    if (e->frozen_until) {
        if (now < e->frozen_until && e->filled) {
            uint8_t at = e->fresh ? (uint8_t)(e->next - e->fresh) : (uint8_t)draw(e);
            e->fresh -= e->fresh != 0;
            return e->ring[at % e->filled];
        }
        if (now >= e->frozen_until) {
            e->frozen_until = 0;
            e->to_draw = DRAWN_AFTER_FREEZE;
        }
    }
    if (e->to_draw || !e->fresh) {
        e->to_draw -= e->to_draw != 0;
        return draw_value(e);
    }
    return e->ring[(uint8_t)(e->next - e->fresh--) % ENTROPY_RING];
}

uint16_t entropy_next(struct entropy *e, ns_t now)
{
    switch (e->policy) {
    case ENTROPY_OBLIVIOUS:
        return in_turn(e);
    case ENTROPY_BITMAP:
        return not_skipped(e);
    case ENTROPY_REPS:
        return recycled(e, now);
    case ENTROPY_MRC:
        return healthy(e);
    default:
        return e->order;
    }
}

static void penalise(struct entropy *e, uint16_t value, unsigned turns)
{
    if (value >= e->values)
        return;
    unsigned sum = e->skip[value] + turns;
    e->skip[value] = (uint8_t)(sum < PENALTY_MAX ? sum : PENALTY_MAX);
}

void entropy_arrived(struct entropy *e, uint16_t value, bool marked)
{
    if (e->policy == ENTROPY_MRC) {
        if (marked)
            health_skip(&e->health, value);
    } else if (marked) {
        penalise(e, value, PENALTY_MARK);
    } else if (value < e->values) {
        e->ring[e->next++ % ENTROPY_RING] = value; /* 256 is a multiple of the ring */
        e->fresh += e->fresh < ENTROPY_RING;
        e->filled += e->filled < ENTROPY_RING;
    }
}

void entropy_cut(struct entropy *e, uint16_t value)
{
    penalise(e, value, PENALTY_CUT);
    if (e->policy == ENTROPY_MRC)
        health_skip(&e->health, value);
}

void entropy_lost(struct entropy *e, uint16_t value, ns_t round_trip, ns_t now)
{
    if (e->policy == ENTROPY_MRC)
        health_lost(&e->health, value, round_trip, now);
    penalise(e, value, PENALTY_LOST);
    if (e->policy == ENTROPY_REPS && !e->frozen_until)
        e->frozen_until = now + FROZEN_NS;
}
