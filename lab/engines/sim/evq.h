/* The event queue of the simulator: what happens next, in an order that never depends on chance.
 *
 * Events are totally ordered by (time, priority, tie-break, name). The tie-break is a scramble of the
 * seed, the time and the event's name, so that of packets that meet at the same instant no port
 * always wins, and yet a run can be repeated to the byte. It matters neither when an event was
 * scheduled nor in which of several queues it is. Scheduling into the past is refused.
 *
 *            ┌── c ──┐          the next event of all
 *          ┌ a ┐   ┌ c ┐        the earlier of two, and so on
 *          a   b   c   d        a place for each event
 *
 * Events play a tournament: each has a place, and the earlier of two goes on to the next level. Who
 * is scheduled, or happened, plays its own matches again, one a level; how they end is chosen without
 * a branch, which nobody could foresee. There are as many places as there are events of who owns
 * the queue, scheduled or not: few, a switch's channels and hosts.
 *
 * An event belongs to its owner, who embeds it and keeps it for as long as there is the queue, which
 * is the only one that it is ever in.
 */
#pragma once

#include "base.h"

#define EVQ_NEVER UINT64_MAX

struct evq_event;
typedef void (*evq_fn)(struct evq_event *event, ns_t now);

struct evq_event {
    evq_fn happen;
    uint32_t place; /* in its queue, plus one; 0: it was never scheduled */
    uint32_t name;  /* not 0, and no other event's of its priority, in whichever queue */
    uint64_t order; /* priority 8, tie-break 16, name 40: one comparison; 0: not scheduled */
    ns_t time;      /* it is scheduled for */
};

struct evq {
    u128 *keys; /* by place: time and order; all ones where nothing is scheduled */
    struct evq_event **events;
    uint32_t *winners; /* by match: [1] the last one's, [2i] and [2i + 1] meet in [i], and behind
                        * those of matches the places themselves */
    uint32_t places, used;
    ns_t now;
    uint64_t seed;
    uint64_t happened;
};

bool evq_init(struct evq *queue, uint64_t seed); /* false when memory is out */
void evq_free(struct evq *queue);

/* Have an event happen at a time, or move it there. False, and nothing changed, when the time is
 * past or memory is out. Among events of one instant a lower priority number goes first. */
bool evq_schedule(struct evq *queue, struct evq_event *event, ns_t time, uint8_t priority);
void evq_cancel(struct evq *queue, struct evq_event *event); /* harmless when not scheduled */

/* Let lots be drawn from now on as they would be so much later. */
void evq_pretend(struct evq *queue, ns_t later);

/* When the next event is due, but for the one that is happening; EVQ_NEVER if there is none. */
ns_t evq_next(const struct evq *queue);

/* Let everything up to and including `until` happen. Returns how many events that were. Afterwards the
 * time is `until`; that of the last event, if it is never. */
uint64_t evq_run(struct evq *queue, ns_t until);
