/* Credits: what an adapter may send into a switch's buffer, where nobody is paused.
 *
 * For each class that goes by credits both ends count bytes, round and round at 2^32: the adapter
 * what it has sent (`spent`), the switch what has left its buffer again. The switch tells the sum of
 * that and of the buffer's size: `limit`. The class stands still while limit - spent has no room for
 * the largest frame; if that lasts, because frames or words were lost, the adapter says how much it
 * has spent. p4src/credit.p4 is the other end, and has the frame's layout. An adapter takes in all
 * that its link brings, and grants nothing.
 */
#pragma once

#include "units.h"

#define CREDIT_WIRE 60u

struct credit_config {
    uint8_t classes; /* bit i: priority i goes by credits */
    uint32_t size;   /* of the buffer that each has at the other end */
    uint32_t least;  /* it stands still with less: the largest frame */
    uint32_t cell;   /* the buffer comes in so many bytes */
    ns_t ask_after;
};

struct credit {
    struct credit_config config;
    struct credit_class {
        uint32_t limit, spent;
        ns_t since, ask_at; /* while it waits for credits; else NS_NEVER */
    } of[8];
};

void credit_init(struct credit *credit, const struct credit_config *config);

/* Whether a class has none left. */
static inline bool credit_lacks(const struct credit *credit, uint8_t priority)
{
    const struct credit_class *of = &credit->of[priority];
    return credit->config.classes >> priority & 1 &&
           (int32_t)(of->limit - of->spent) < (int32_t)credit->config.least;
}

/* So much was sent: who waited for that waits no more. Returns how long it had. */
ns_t credit_spend(struct credit *credit, uint8_t priority, uint32_t bytes, ns_t now);
/* A class that has something to send waits, or does not; returns how long it had, if that ended. */
ns_t credit_wait(struct credit *credit, uint8_t priority, bool waits, ns_t now);
/* The class that is to ask first, and when; 8, NS_NEVER. */
uint8_t credit_asker(const struct credit *credit, ns_t *when);

/* Whether a frame is word of credits, of any kind. */
bool credit_is_word(const uint8_t *frame, uint32_t stored);
/* Go by what it says; false if nobody who knows us can have said it. */
bool credit_hear(struct credit *credit, const uint8_t *frame);
/* Say how much a class has spent. */
void credit_ask(struct credit *credit, uint8_t priority, uint8_t frame[CREDIT_WIRE], ns_t now);
