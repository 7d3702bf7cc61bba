/* The traffic manager: eight queues a port, strict priority, 7 first, unless it is told otherwise.
 *
 * A queue is bounded in packets and in bytes. A port with a link rate sends one packet at a time
 * and is busy for as long as it, and the wire's overhead, take on the link; one without sends
 * whatever is queued as soon as it is serviced, which is how BMv2 behaves. A queue may also be
 * paced in packets a second, as BMv2's set_queue_rate does, and may obey a gate: a register of
 * the program in which cell [port * 8 + priority] is the time until which the queue stands still.
 * The gate is read whenever the queue is looked at, so writing the register is all it takes to
 * pause or to resume.
 *
 * A port may have a schedule. A queue with a quantum then shares what the strict ones leave by
 * deficit round robin: in its turn it is given its quantum, sends while it has anything left of it,
 * and what its last packet took beyond that is missing from its next turn. So shares are exact to
 * the byte whatever the sizes of packets, and a quantum may be smaller than a packet. What a queue
 * could not use, because it was empty or held, is gone: a turn missed is not made up for. Queues
 * and whole ports may be shaped to a rate with a token bucket; with one of no depth packets are
 * evenly spaced. Turns and shapers count what packets take of the link as they are sent, overhead
 * included; what egress drops costs nothing.
 *
 * A queue may go by credits: it stands still while what the other end of the link granted it, less
 * what it has sent, has no room for the largest frame. Both are cells of registers, of which the
 * program writes the first. How often and for how long queues waited is written into two more; one
 * that has waited for long is named in `asks`, for whoever serves the port to say so.
 *
 * The link is kept in picoseconds: a 64-byte frame lasts 1.28 ns at 400 Gb/s. When service comes
 * late, a packet still starts where the last one ended, so a slow caller loses no rate.
 */
#pragma once

#include "pkt.h"

typedef uint64_t ps_t; /* picoseconds */
#define TM_PS 1000u

#define TM_PACKETS_DEFAULT 1024
#define TM_BYTES_DEFAULT (64u << 20)
#define TM_OVERHEAD_DEFAULT 24 /* preamble and start 8, FCS 4, gap 12 */

struct tm_queue {
    _Alignas(64) struct pkt *head;
    struct pkt *tail;
    uint32_t packets, max_packets;
    bytes_t bytes, max_bytes;
    ps_t pace; /* between two departures; 0: none */
    ps_t paced_until;
};

struct tm_shaper {
    bps_t rate; /* 0: none */
    bytes_t burst;
    ps_t until; /* when the bucket will be full, less its depth */
};

struct tm_credit {
    uint32_t least;             /* 0: the queue needs none */
    uint32_t cell;              /* the other end's memory comes in so many bytes */
    ns_t ask_after;
    uint32_t *limit, *spent;    /* cells: up to which byte it may send, and which it has */
    uint64_t *waited;           /* cells: for how long, */
    uint32_t *waits;            /* and how often */
    ns_t since, ask_at;         /* while it waits; else SW_NEVER */
    ns_t came;                  /* when it last had waited: nothing leaves as if before */
};

struct tm_schedule {
    struct tm_share {
        bytes_t quantum; /* 0: strict */
        int64_t deficit; /* bytes left of its turn; below 0: owed */
        struct tm_shaper shaper;
        struct tm_credit credit;
    } shares[SW_QUEUES];
    struct tm_shaper whole; /* of all queues in `classes` together */
    uint8_t classes;
    uint8_t weighted; /* bit q: queue q has a quantum */
    uint8_t turn;     /* whose it is */
    uint8_t taken;    /* where the last packet came from */
    uint8_t credited; /* bit q: queue q goes by credits */
    uint8_t asks;     /* bit q: it has waited for them for long, and nobody has said so */
};

struct tm_port {
    ps_t busy_until;
    ns_t idle_at; /* when the link is free again; 0 without a rate */
    bps_t rate;   /* 0: unlimited */
    ps_t of_byte; /* how long one lasts; 0 if that is not whole */
    ns_t delay;
    uint32_t overhead;
    uint8_t backlog; /* bit q: queue q is not empty */
    bool is_down;    /* nobody grants credits there: queues that go by them wait for none */
    ns_t opened;     /* until then something else held all of it: nothing left before */
    struct tm_schedule *schedule; /* NULL: strict priority, nothing shaped */
    struct tm_queue queues[SW_QUEUES];
};

/* The time until which a queue, port * SW_QUEUES + priority, stands still; 0 without a gate. */
static inline ns_t tm_gate_time(const struct sw_cells *gate, unsigned queue)
{
    return gate->at && queue < gate->count ? gate->from + sw_cell_read(gate, queue) : 0;
}

void tm_init(struct tm_port *port);
/* What is being sent ends when it was to end. */
void tm_set_link(struct tm_port *port, bps_t rate, ns_t delay, uint32_t overhead);

/* How a queue is served; all zero: strictly, at any rate. False when memory is out. */
struct tm_service {
    bytes_t quantum;
    bps_t rate;
    bytes_t burst;
};
bool tm_serve(struct tm_port *port, unsigned priority, struct tm_service service);
/* Shape queues together, bit q: queue q. The others are neither held nor counted. */
bool tm_shape(struct tm_port *port, bps_t rate, bytes_t burst, uint8_t classes);
/* Let a queue go by credits; least 0: no more. False when memory is out. */
bool tm_hold(struct tm_port *port, unsigned priority, struct tm_credit credit);
/* Forget all of that. */
void tm_unschedule(struct tm_port *port);

static inline bool tm_has_room(const struct tm_queue *q, bytes_t size)
{
    return q->packets < q->max_packets && q->bytes + size <= q->max_bytes;
}

/* Take the packet; false if the queue is full, and the packet stays the caller's. */
static inline bool tm_put(struct tm_port *port, struct pkt *p, unsigned priority, bytes_t size, ns_t now)
{
    struct tm_queue *q = &port->queues[priority];
    if (!tm_has_room(q, size))
        return false;
    INVARIANT(!q->head == !q->packets && !q->head == !(port->backlog >> priority & 1));
    p->next = NULL;
    p->priority = (uint8_t)priority;
    p->enq_ns = now;
    p->enq_depth = q->packets;
    p->queued_len = (uint32_t)size;
    if (q->head)
        q->tail->next = p;
    else
        q->head = p;
    q->tail = p;
    q->packets++;
    q->bytes += size;
    port->backlog |= (uint8_t)(1u << priority);
    return true;
}

static inline ns_t tm_later(ns_t a, ns_t b) { return a > b ? a : b; }

static inline ns_t tm_whole_ns(ps_t t) { return t / TM_PS + (t % TM_PS != 0); }

/* When the queue's head may leave: not before the gate opens and its pace allows. */
static inline ns_t tm_queue_ready(const struct tm_port *port, unsigned number, unsigned priority,
                                  const struct sw_cells *gate)
{
    ns_t open = tm_gate_time(gate, number * SW_QUEUES + priority);
    ps_t paced_until = port->queues[priority].paced_until;
    ns_t paced = paced_until ? tm_whole_ns(paced_until) : 0;
    return open > paced ? open : paced;
}

/* Whether a queue's figures are those of the packets that are in it. */
static inline bool tm_is_as_counted(const struct tm_queue *q)
{
    uint32_t packets = 0;
    bytes_t bytes = 0;
    const struct pkt *last = NULL;
    for (const struct pkt *p = q->head; p; last = p, p = p->next) {
        packets++;
        bytes += p->queued_len;
    }
    return packets == q->packets && bytes == q->bytes && (!last || last == q->tail);
}

static inline struct pkt *tm_unlink(struct tm_port *port, unsigned priority)
{
    struct tm_queue *q = &port->queues[priority];
    struct pkt *p = q->head;
    INVARIANT(p && q->packets && q->bytes >= p->queued_len);
    INVARIANT_CHECKED(tm_is_as_counted(q));
    q->head = p->next;
    q->packets--;
    q->bytes -= p->queued_len;
    if (q->head) {
        pkt_fetch(q->head);
    } else {
        INVARIANT(!q->packets && !q->bytes);
        port->backlog &= (uint8_t)~(1u << priority);
    }
    return p;
}

/* The head of a queue that could have left from `ready` on. */
static inline struct pkt *tm_take_from(struct tm_port *port, unsigned priority, ns_t ready,
                                       ns_t now, ns_t *start)
{
    struct tm_queue *q = &port->queues[priority];
    struct pkt *p = tm_unlink(port, priority);
    if (q->pace) {
        ps_t base = p->enq_ns * TM_PS > q->paced_until ? p->enq_ns * TM_PS : q->paced_until;
        q->paced_until = base + q->pace;
    }
    /* Service may be late; the link was free from then on. */
    ns_t free_at = tm_later(tm_later(port->idle_at, p->enq_ns), tm_later(ready, port->opened));
    *start = port->rate ? free_at : now;
    return p;
}

/* tm_take of a port that has a schedule. */
struct pkt *tm_take_scheduled(struct tm_port *port, unsigned number, const struct sw_cells *gate,
                              ns_t now, ns_t *start, ns_t *wake);

/* The next packet to leave by `now`, or NULL: then *wake is when to ask again (SW_NEVER: not
 * before something changes). *start is when it starts on the link. */
static inline struct pkt *tm_take(struct tm_port *port, unsigned number,
                                  const struct sw_cells *gate, ns_t now, ns_t *start, ns_t *wake)
{
    *wake = SW_NEVER;
    if (port->idle_at > now) {
        *wake = port->idle_at;
        return NULL;
    }
    if (SW_UNLIKELY(port->schedule != NULL))
        return tm_take_scheduled(port, number, gate, now, start, wake);
    for (unsigned left = port->backlog; left;) {
        unsigned priority = 31 - (unsigned)__builtin_clz(left);
        left &= ~(1u << priority);
        ns_t ready = tm_queue_ready(port, number, priority, gate);
        if (ready <= now)
            return tm_take_from(port, priority, ready, now, start);
        *wake = ready < *wake ? ready : *wake;
    }
    return NULL;
}

/* The packet took `size` bytes of the link from `start` on; returns when its last bit arrives. */
ns_t tm_sent(struct tm_port *port, bytes_t size, ns_t start);
/* The same of what comes from none of the queues. */
ns_t tm_occupied(struct tm_port *port, bytes_t size, ns_t start);
