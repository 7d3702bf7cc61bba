/* Which way the next packet goes: its entropy, of which a fabric of equally good ways takes a hash.
 *
 *   single     always the same: a flow keeps one way, as without spraying
 *   oblivious  all of them in turn, in an order drawn anew for every round
 *   bitmap     the same, but those that lead into congestion are passed over for a while: a mark
 *              costs one turn, a cut packet four, a lost one fifteen
 *   reps       those that came back unmarked are used again, once each and the oldest first; as long
 *              as there are none, one is drawn. After a loss, for a while, only such as came back
 *              are, old ones too; then some are drawn again (REPS, arXiv 2407.21625: a ring of 8)
 *
 *   mrc        all of them in turn but those that lose, which are probed until they are better
 *              (health.h)
 *
 * Orders, penalties and REPS' constants are those of UET's reference simulator (htsim): a random
 * exclusive-or over the numbers, 1, 4 and 15, 8 entries, 10 ms frozen and 16 drawn after that.
 */
#pragma once

#include "health.h"

enum entropy_policy { ENTROPY_OBLIVIOUS, ENTROPY_BITMAP, ENTROPY_REPS, ENTROPY_SINGLE, ENTROPY_MRC };

enum { ENTROPY_MAX = 256, ENTROPY_RING = 8 };

struct entropy {
    uint8_t policy;
    uint16_t values, turn, order; /* a power of two of them; `order` is what turns are xored with */
    uint32_t random;
    uint8_t skip[ENTROPY_MAX];       /* bitmap: turns to pass over */
    uint16_t ring[ENTROPY_RING];      /* reps: what came back, */
    uint8_t next, fresh, filled;      /* where the next goes, how many are unused, and are there */
    uint8_t to_draw;                  /* how many to draw whatever came back */
    ns_t frozen_until;
    struct health health; /* mrc */
};

/* `ways`: of mrc, as many as there are values; the caller's. */
void entropy_init(struct entropy *entropy, enum entropy_policy policy, uint16_t values,
                  uint32_t seed, struct way *ways);

uint16_t entropy_next(struct entropy *entropy, ns_t now);

/* What became of a packet that had one: it arrived, perhaps marked, or came as far as its last hop; it
 * was cut before; it was lost. */
void entropy_arrived(struct entropy *entropy, uint16_t value, bool marked);
void entropy_cut(struct entropy *entropy, uint16_t value);
void entropy_lost(struct entropy *entropy, uint16_t value, ns_t round_trip, ns_t now);
