/* The event queue of the simulator: what happens next, in an order that never depends on chance.
 *
 * Events are totally ordered by (time, priority, tie-break, name). The tie-break is a scramble of the
 * seed, the time and the event's name, so that of packets that meet at the same instant no port
 * always wins, and yet a run can be repeated to the byte. It matters neither when an event was
 * scheduled nor in which of several queues it is. Scheduling into the past is refused.
 *
 *   now ──►  [ open: in order ] [ ][ ][ ][ ] ... a wheel of buckets, 16 us        heap: later
 *
 * Nearly everything is scheduled for the next few microseconds. It waits in the bucket of its
 * nanoseconds, unsorted; when its turn comes the bucket is opened, and put in order at once. What is
 * later than the wheel reaches waits in a heap. So scheduling costs the same however many events
 * there are, and whoever owns the events is told a little ahead which are next (`soon`): then what
 * they will want is in the cache when they happen.
 *
 * An event belongs to its owner, who embeds it and keeps it for as long as there is the queue: an
 * event that is scheduled again, or cancelled, leaves its old mention where that is, which is known
 * as old by its order.
 */
#ifndef EVQ_H
#define EVQ_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t ns_t;
#define EVQ_NEVER UINT64_MAX
#define EVQ_STEPS 3

struct evq_event;
typedef void (*evq_fn)(struct evq_event *event, ns_t now);

struct evq_event {
    evq_fn happen;
    uint32_t slot;  /* its place in the heap, plus one; 0: not there */
    uint32_t name;  /* not 0, and no other event's of its priority, in whichever queue */
    uint64_t order; /* priority 8, tie-break 16, name 40: one comparison; 0: not scheduled */
    ns_t time;      /* it is scheduled for */
};

struct evq_key {
    ns_t time;
    uint64_t order;
    struct evq_event *event;
};

struct evq {
    struct evq_key *open; /* the rest of the bucket of now, in order */
    uint32_t at, end, open_room;
    uint64_t opened; /* the number of the bucket opened last */
    struct evq_wheel *wheel;
    struct evq_key *heap;
    uint32_t heap_used, heap_room;
    uint32_t used; /* events scheduled */
    ns_t now;
    uint64_t seed;
    uint64_t happened;
    /* Called when an event is some steps away, EVQ_STEPS to 1, to bring to the cache what it will
     * want; it must change nothing. NULL: nobody cares. */
    void (*soon)(const struct evq_event *event, unsigned steps);
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

#endif
