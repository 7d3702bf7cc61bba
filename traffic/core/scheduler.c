/* Who sends next, and when to wake.
 *
 * A queue pair with data to send is in exactly one place: in the ring of its priority when it may
 * send now, or in the pace heap when its rate makes it wait. One whose next packet is due before
 * the wire is free stays in its ring, so that pacing costs nothing at the link's rate. Each queue
 * pair with packets in flight is in the time-out heap as well, once, under a time that may be too
 * early: acknowledgements move the time-out without touching the heap, and a queue pair that comes
 * up too early goes back in.
 *
 * With several ports, data leaves by one that is free, and of a ring the first queue pair goes that
 * may use it. Answers cannot choose: the first leaves whose port is free, in front of all data.
 *
 * A frame is accounted at the instant it could have left, which is `now` unless the host is late.
 * Only lateness is made up for: time that was spent idle, paused or behind a closed window is gone.
 */
#include "invariant.h"
#include "transport.h"
#include "uet.h"

static void ring_join(struct ep *ep, struct qp *qp)
{
    struct ring *ring = &ep->rings[qp->priority];
    qp->in_ring = true;
    qp->ring_next = NULL;
    if (ring->head)
        ring->tail->ring_next = qp;
    else
        ring->head = qp;
    ring->tail = qp;
    ep->has_data |= (uint8_t)(1u << qp->priority);
}

/* The head of a ring. */
static void ring_leave(struct ep *ep, uint8_t priority)
{
    struct ring *ring = &ep->rings[priority];
    INVARIANT(ring->head && ring->head->in_ring);
    ring->head->in_ring = false;
    ring->head = ring->head->ring_next;
    if (!ring->head)
        ep->has_data &= (uint8_t)~(1u << priority);
}

/* The head stays it: it is still its turn. */
static void ring_stay(struct ep *ep, struct qp *qp)
{
    struct ring *ring = &ep->rings[qp->priority];
    qp->in_ring = true;
    qp->ring_next = ring->head;
    if (!ring->head)
        ring->tail = qp;
    ring->head = qp;
    ep->has_data |= (uint8_t)(1u << qp->priority);
}

/* When a port is free. */
static ps_t soonest(const struct ep *ep)
{
    if (ep->config.ports == 1)
        return ep->lanes[0].free;
    ps_t free = PS_NEVER;
    for (unsigned left = ep->up; left; left &= left - 1) {
        ps_t its = free_for_data(&ep->lanes[__builtin_ctz(left)]);
        free = its < free ? its : free;
    }
    return free;
}

static void wait_or_join(struct ep *ep, struct qp *qp, ps_t now)
{
    if (qp->ready > now && qp->ready > soonest(ep)) {
        qp->in_pace = true;
        heap_push(&ep->pace, (struct heap_item){qp->ready, {qp}});
    } else {
        if (qp->out)
            qp->out->deficit = (int32_t)ep->config.mtu;
        ring_join(ep, qp);
    }
}

void schedule_data(struct ep *ep, struct qp *qp, ns_t now)
{
    if (qp->in_ring || qp->in_pace || !ep->transport->can_send(ep, qp))
        return;
    if (qp->ready < ps_of_ns(now))
        qp->ready = ps_of_ns(now);
    wait_or_join(ep, qp, ps_of_ns(now));
}

/* One that is to wait longer than it was goes back in when it comes up. */
void schedule_sooner(struct ep *ep, struct qp *qp)
{
    if (!qp->in_pace)
        return;
    uint32_t place = 0; /* few wait at a host */
    while (ep->pace.items[place].owner != qp)
        place++;
    if (qp->ready < ep->pace.items[place].key)
        heap_rise(&ep->pace, place, (struct heap_item){qp->ready, {qp}});
}

uint8_t answer_priority(const struct ep *ep, const struct qp *qp)
{
    return qp_answers_as_data(ep, qp) ? qp->priority : ep->config.control_priority;
}

void schedule_answer(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    uint8_t priority = answer_priority(ep, qp);
    struct ring *ring = &ep->answers[priority];
    if (in->in_answers)
        return;
    in->in_answers = true;
    in->answer_ready = ps_of_ns(now);
    in->answers_next = NULL;
    if (ring->head)
        ring->tail->in->answers_next = qp;
    else
        ring->head = qp;
    ring->tail = qp;
    ep->has_answers |= (uint8_t)(1u << priority);
}

void schedule_notice(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    if (in->in_notices)
        return;
    in->in_notices = true;
    in->notice_ready = ps_of_ns(now);
    in->notices_next = NULL;
    if (ep->notices.head)
        ep->notices.tail->in->notices_next = qp;
    else
        ep->notices.head = qp;
    ep->notices.tail = qp;
}

/* Let it come up at a time, or sooner; `*seen_to` is when it comes up if it is in there already. */
static void schedule_at(struct heap *heap, struct qp *qp, ns_t at, bool is_in, ns_t *seen_to)
{
    if (!is_in) {
        heap_push(heap, (struct heap_item){at, {qp}});
    } else if (at < *seen_to) { /* seldom enough for a search */
        uint32_t place = 0;
        while (heap->items[place].owner != qp)
            place++;
        heap_rise(heap, place, (struct heap_item){at, {qp}});
    } else {
        return;
    }
    *seen_to = at;
}

void schedule_rto(struct ep *ep, struct qp *qp)
{
    schedule_at(&ep->rto, qp, qp->out->rto_at, qp->in_rto, &qp->rto_seen_to);
    qp->in_rto = true;
}

void schedule_alarm(struct ep *ep, struct qp *qp)
{
    struct selective *s = qp->selective;
    if (s->alarm_at == NS_NEVER)
        return;
    schedule_at(&ep->alarms, qp, s->alarm_at, s->in_alarms, &s->alarm_seen_to);
    s->in_alarms = true;
}

/* The class of what is said of the link itself, pauses and credits: it is never held, nor takes any
 * credits. */
#define LINK_PRIORITY 7

static bool paused(const struct ep *ep, uint8_t port, uint8_t priority, ns_t now)
{
    return ep->lanes[port].paused_until[priority] > now;
}

/* Whether a class may not send now: it is told to wait, or has no credits. */
bool schedule_is_held(const struct ep *ep, uint8_t port, uint8_t priority, ns_t now)
{
    return paused(ep, port, priority, now) || credit_lacks(&ep->credit, priority);
}

ns_t ep_held_until(const struct ep *ep, uint8_t port, uint8_t priority, ns_t now)
{
    if (credit_lacks(&ep->credit, priority))
        return NS_NEVER;
    return paused(ep, port, priority, now) ? ep->lanes[port].paused_until[priority] : 0;
}

ns_t ep_credit_since(const struct ep *ep, uint8_t priority, ns_t now)
{
    ns_t since = ep->credit.of[priority].since;
    return credit_lacks(&ep->credit, priority) && since != NS_NEVER ? since : now;
}

void note_paused(struct ep *ep, struct lane *lane, uint8_t priority, ns_t took)
{
    ep->counters.paused_ns[priority] += took;
    lane->counters.paused_ns[priority] += took;
}

void schedule_pause(struct ep *ep, uint8_t port, const uint8_t *pfc, ns_t now)
{
    struct lane *lane = &ep->lanes[port];
    uint32_t enabled = be16_load(pfc + 16);
    for (uint8_t priority = 0; priority < LINK_PRIORITY; priority++) {
        if (!(enabled >> priority & 1))
            continue;
        ns_t *until = &lane->paused_until[priority], *since = &lane->paused_since[priority];
        ns_t quanta = be16_load(pfc + 18 + 2 * priority);
        if (*since != NS_NEVER && *until <= now) { /* the last one ran out meanwhile */
            note_paused(ep, lane, priority, *until - *since);
            *since = NS_NEVER;
        }
        if (quanta && *since == NS_NEVER) {
            *since = now;
            ep->counters.rx_pause_transitions++;
        } else if (!quanta && *since != NS_NEVER) {
            note_paused(ep, lane, priority, now - *since);
            *since = NS_NEVER;
        }
        *until = now + ns_after_ps(quanta * ps_for_bytes(PFC_QUANTUM_BYTES, lane->rate));
    }
}

static ps_t later(ps_t a, ps_t b) { return a > b ? a : b; }

/* Hand ep->frame, with what stands before it, to the wire. Returns when its first bit left, PS_NEVER
 * if the host refused it. */
ps_t schedule_send(struct ep *ep, uint8_t port, uint32_t stored, uint32_t wire, uint8_t priority,
                   ps_t ready, ns_t now)
{
    struct lane *lane = &ep->lanes[port];
    ps_t late = ps_of_ns(ep->config.catch_up) - 1, at = ps_of_ns(now);
    at = at > late ? at - late : 0;
    at = later(at, ready);
    at = later(at, lane->free);
    at = later(at, ps_of_ns(lane->paused_until[priority]));
    if (!ep->port.transmit(ep->port.transmit_ctx, ep->frame - ep->in_front, stored, wire, port,
                           priority, ns_after_ps(at))) {
        ep->stalled = true;
        return PS_NEVER;
    }
    INVARIANT(at >= lane->free); /* one frame after the other */
    lane->free = at + ps_for_bytes(wire + ep->config.overhead_bytes, lane->rate);
    ep->counters.credit_waited_ns += credit_spend(&ep->credit, priority, wire, now);
    ep->counters.tx_packets++;
    ep->counters.tx_bytes += wire;
    lane->counters.tx_packets++;
    lane->counters.tx_bytes += wire;
    return at;
}

static void release_paced(struct ep *ep, ps_t now)
{
    while (heap_key(&ep->pace) <= now) {
        struct qp *qp = heap_pop(&ep->pace).owner;
        INVARIANT(qp->in_pace);
        qp->in_pace = false;
        if (!qp->in_ring && ep->transport->can_send(ep, qp))
            wait_or_join(ep, qp, now);
    }
}

static void time_out(struct ep *ep, ns_t now)
{
    while (heap_key(&ep->rto) <= now) {
        struct qp *qp = heap_pop(&ep->rto).owner;
        INVARIANT(qp->in_rto);
        qp->in_rto = false;
        if (qp->out && qp->out->rto_at <= now)
            ep->transport->timeout(ep, qp, now);
        if (qp->out && qp->out->rto_at != NS_NEVER)
            schedule_rto(ep, qp);
    }
}

static void ring_alarms(struct ep *ep, ns_t now)
{
    while (heap_key(&ep->alarms) <= now) {
        struct qp *qp = heap_pop(&ep->alarms).owner;
        INVARIANT(qp->selective && qp->selective->in_alarms);
        qp->selective->in_alarms = false;
        if (qp->selective->alarm_at <= now)
            ep->transport->alarm(ep, qp, now);
        schedule_alarm(ep, qp);
    }
}

static bool send_notice(struct ep *ep, ns_t now)
{
    struct qp *qp = ep->notices.head;
    struct receiving *in = qp->in;
    if (!ep->transport->notify(ep, qp, now))
        return false;
    ep->notices.head = in->notices_next;
    in->in_notices = false;
    receiving_over(ep, qp);
    return true;
}

static bool send_answer(struct ep *ep, uint8_t priority, ns_t now)
{
    struct ring *ring = &ep->answers[priority];
    struct qp *qp = ring->head;
    struct receiving *in = qp->in;
    if (!ep->transport->answer(ep, qp, now))
        return false;
    ring->head = in->answers_next;
    if (!ring->head)
        ep->has_answers &= (uint8_t)~(1u << priority);
    in->in_answers = false;
    if (in->owed & (OWE_ACK | OWE_NAK))
        schedule_answer(ep, qp, now);
    else
        receiving_over(ep, qp);
    return true;
}

/* Whether its answer may leave by its port: what is handed over before that is free would not hear of
 * a pause that comes meanwhile. */
static bool may_answer(const struct ep *ep, const struct qp *qp, uint8_t priority, ns_t now)
{
    uint8_t port = ep->transport->answer_port(ep, qp);
    return ep->lanes[port].free <= ps_of_ns(now) && !schedule_is_held(ep, port, priority, now);
}

/* Let the first that may answer be the head. */
static bool bring_answer_forward(const struct ep *ep, struct ring *ring, uint8_t priority, ns_t now)
{
    struct qp *before = NULL, *found = ring->head;
    while (found && !may_answer(ep, found, priority, now)) {
        before = found;
        found = found->in->answers_next;
    }
    if (found && before) {
        before->in->answers_next = found->in->answers_next;
        if (ring->tail == found)
            ring->tail = before;
        found->in->answers_next = ring->head;
        ring->head = found;
    }
    return found;
}

#define NO_PRIORITY 8

/* Whose answers are next; NO_PRIORITY if none may be sent. */
static uint8_t next_answers(struct ep *ep, ns_t now)
{
    for (unsigned left = ep->has_answers; left;) {
        uint8_t priority = (uint8_t)(31 - __builtin_clz(left));
        if (bring_answer_forward(ep, &ep->answers[priority], priority, now))
            return priority;
        left &= ~(1u << priority);
    }
    return NO_PRIORITY;
}

/* Let the one behind `before` be the head. */
static void lead(struct ring *ring, struct qp *before)
{
    struct qp *found = before->ring_next;
    before->ring_next = found->ring_next;
    if (ring->tail == found)
        ring->tail = before;
    found->ring_next = ring->head;
    ring->head = found;
}

static bool may_use(const struct ep *ep, struct qp *qp, uint8_t port)
{
    return qp->ports >> port & 1 && ep->transport->can_send(ep, qp);
}

/* Let the first that may use a port, and has something to send, be the head. */
static bool bring_forward(const struct ep *ep, struct ring *ring, uint8_t port)
{
    struct qp *before = ring->head;
    while (before != ring->tail && !may_use(ep, before->ring_next, port))
        before = before->ring_next;
    if (before == ring->tail)
        return false;
    lead(ring, before);
    return true;
}

/* Let of those the one be the head that comes next by number, round from which sent last. */
static void bring_next(const struct ep *ep, struct ring *ring, uint8_t port)
{
    struct qp *before_next = NULL;
    uint32_t room = ep->qp_room, least = UINT32_MAX;
    for (struct qp *before = NULL, *qp = ring->head; qp; before = qp, qp = qp->ring_next) {
        uint32_t away = ((uint32_t)(qp - ep->qps) + room - ep->last_sent + room - 1) % room;
        if (away < least && may_use(ep, qp, port)) {
            least = away;
            before_next = before;
        }
    }
    if (before_next)
        lead(ring, before_next);
}

/* Whose turn it is, or NO_PRIORITY; heads that have nothing left to send leave on the way. */
static uint8_t next_ring(struct ep *ep, uint8_t port, ns_t now)
{
    unsigned twice = ep->has_data * 0x101u; /* from `turn` on they come one after the other */
    for (unsigned left = twice >> ep->turn & 0xFF; left; left &= left - 1) {
        uint8_t priority = (ep->turn + (unsigned)__builtin_ctz(left)) & 7;
        struct ring *ring = &ep->rings[priority];
        while (ring->head && !ep->transport->can_send(ep, ring->head))
            ring_leave(ep, priority);
        if (!ring->head || schedule_is_held(ep, port, priority, now))
            continue;
        if (ep->config.by_number)
            bring_next(ep, ring, port);
        if (ring->head->ports >> port & 1 || bring_forward(ep, ring, port)) {
            ep->turn = (priority + 1) & 7;
            return priority;
        }
    }
    return NO_PRIORITY;
}

static bool send_data(struct ep *ep, uint8_t priority, uint8_t port, ns_t now)
{
    struct qp *qp = ep->rings[priority].head;
    uint32_t bytes = ep->transport->send(ep, qp, port, now);
    if (!bytes)
        return false;
    struct sending *out = qp->out; /* it has sent */
    ep->last_sent = (uint32_t)(qp - ep->qps);
    ring_leave(ep, priority);
    if (!ep->transport->can_send(ep, qp))
        return true;
    out->deficit -= (int32_t)bytes;
    if (qp->ready > ps_of_ns(now) && qp->ready > soonest(ep)) {
        qp->in_pace = true;
        heap_push(&ep->pace, (struct heap_item){qp->ready, {qp}});
    } else if (out->deficit > 0) {
        ring_stay(ep, qp);
    } else {
        out->deficit += (int32_t)ep->config.mtu;
        ring_join(ep, qp);
    }
    return true;
}

#define MAX_QUANTA 0xFFFF

static bool send_pause(struct ep *ep, uint8_t classes, uint16_t quanta, ns_t now)
{
    uint32_t wire = frame_pause(ep, classes, quanta);
    if (schedule_send(ep, 0, wire, wire, LINK_PRIORITY, 0, now) == PS_NEVER)
        return false;
    ep->counters.tx_pfc_frames++;
    ep->counters.tx_xoff_frames += quanta > 0;
    return true;
}

/* A pause is sent again when half of what it grants at the link's speed is over. */
static ns_t renewal(const struct ep *ep, ns_t now)
{
    return now + ns_after_ps(MAX_QUANTA * ps_for_bytes(PFC_QUANTUM_BYTES, ep->config.link_bps) / 2);
}

/* A fault, not a protocol: nothing of ours asks for it, and it ends when it was told to. */
static bool send_storm(struct ep *ep, ns_t now)
{
    if (!send_pause(ep, 0xFF, MAX_QUANTA, now))
        return false;
    ep->storm_next = renewal(ep, now);
    if (ep->storm_next >= ep->config.storm_until)
        ep->storm_next = NS_NEVER;
    return true;
}

/* When the sender is to be told something of how full the receive buffer is; 0: at once. */
static ns_t asking_due(const struct ep *ep)
{
    if (!ep->config.pause_classes || ep->rx_buffer.full_enough == ep->asked)
        return ep->asked ? ep->asks_again : NS_NEVER;
    return 0;
}

static bool send_asking(struct ep *ep, ns_t now)
{
    bool asks = ep->rx_buffer.full_enough;
    if (!send_pause(ep, ep->config.pause_classes, asks ? MAX_QUANTA : 0, now))
        return false;
    ep->asked = asks;
    ep->asks_again = renewal(ep, now);
    return true;
}

/* Note which classes wait for credits, and since when. */
static void note_credits(struct ep *ep, ns_t now)
{
    for (uint8_t priority = 0; ep->config.credit.classes >> priority; priority++) {
        bool waits = (ep->rings[priority].head || ep->answers[priority].head) &&
                     credit_lacks(&ep->credit, priority);
        ep->counters.credit_waits += waits && ep->credit.of[priority].since == NS_NEVER;
        ep->counters.credit_waited_ns += credit_wait(&ep->credit, priority, waits, now);
    }
}

static bool send_question(struct ep *ep, uint8_t priority, ns_t now)
{
    ep->in_front = 0;
    credit_ask(&ep->credit, priority, ep->frame, now);
    if (schedule_send(ep, 0, CREDIT_WIRE, CREDIT_WIRE, LINK_PRIORITY, 0, now) == PS_NEVER)
        return false;
    ep->counters.tx_credit_questions++;
    return true;
}

/* By a port that is free, the ports taking turns. */
static bool send_some_data(struct ep *ep, ns_t now)
{
    for (uint8_t i = 0; i < ep->config.ports; i++) {
        uint8_t port = (ep->port_turn + i) & (ep->config.ports - 1);
        if (!(ep->up >> port & 1) || free_for_data(&ep->lanes[port]) > ps_of_ns(now))
            continue;
        uint8_t priority = next_ring(ep, port, now);
        if (priority != NO_PRIORITY) {
            ep->port_turn = (port + 1) & (ep->config.ports - 1);
            return send_data(ep, priority, port, now);
        }
    }
    return false;
}

static bool may_notify(const struct ep *ep, ns_t now)
{
    uint8_t port = first_port(ep->notices.head->ports);
    return ep->lanes[port].free <= ps_of_ns(now) &&
           !paused(ep, port, ep->config.control_priority, now);
}

static bool send_one(struct ep *ep, ns_t now)
{
    ns_t ask_at;
    if (ep->config.ports == 1 && ep->lanes[0].free > ps_of_ns(now))
        return false;
    if (ep->storm_next <= now)
        return send_storm(ep, now);
    if (ep->config.credit.classes) {
        uint8_t asker = credit_asker(&ep->credit, &ask_at);
        if (ask_at <= now)
            return send_question(ep, asker, now);
    }
    if (asking_due(ep) <= now)
        return send_asking(ep, now);
    if (ep->notices.head && may_notify(ep, now))
        return send_notice(ep, now);
    uint8_t priority = next_answers(ep, now);
    if (priority != NO_PRIORITY)
        return send_answer(ep, priority, now);
    bool has_parts = ep->inc && ep->inc->can_send(ep, now);
    if (has_parts && (ep->is_inc_turn = !ep->is_inc_turn))
        return ep->inc->send(ep, now);
    return send_some_data(ep, now) || (has_parts && ep->inc->send(ep, now));
}

/* When what waits in a ring may leave by one of the ports that lead where it goes. */
static ns_t data_due(const struct ep *ep, uint8_t priority, ns_t now)
{
    const struct ring *ring = &ep->rings[priority];
    uint8_t wanted = 0;
    ns_t due = NS_NEVER;
    if (!ring->head)
        return NS_NEVER;
    for (struct qp *qp = ring->head; (wanted & ep->up) != ep->up; qp = qp->ring_next) {
        if (qp == ring->head || ep->transport->can_send(ep, qp))
            wanted |= qp->ports;
        if (qp == ring->tail)
            break;
    }
    for (unsigned left = wanted & ep->up; left; left &= left - 1) {
        const struct lane *lane = &ep->lanes[__builtin_ctz(left)];
        ns_t paused = lane->paused_until[priority];
        due = ns_least(due, paused > now ? paused : ns_after_ps(free_for_data(lane)));
    }
    return due;
}

static ns_t answers_due(const struct ep *ep, uint8_t priority, ns_t now)
{
    ns_t due = NS_NEVER;
    uint8_t seen = 0, all = (uint8_t)((1u << ep->config.ports) - 1);
    for (const struct qp *qp = ep->answers[priority].head; qp && seen != all;
         qp = qp->in->answers_next) {
        uint8_t port = ep->transport->answer_port(ep, qp);
        const struct lane *lane = &ep->lanes[port];
        ns_t paused = lane->paused_until[priority];
        seen |= (uint8_t)(1u << port);
        due = ns_least(due, paused > now ? paused : ns_after_ps(lane->free));
    }
    return due;
}

static ns_t wake(const struct ep *ep, ns_t now)
{
    ns_t at = ns_least(ns_after_ps(heap_key(&ep->pace)),
                      heap_key(&ep->rto)), free = ns_after_ps(soonest(ep));
    at = ns_least(at, heap_key(&ep->alarms));
    uint8_t control = ep->config.control_priority;

    at = ns_least(at, ep->storm_next > free ? ep->storm_next : free);
    at = ns_least(at, asking_due(ep) > free ? asking_due(ep) : free);
    at = ns_least(at, rx_buffer_due(&ep->rx_buffer));
    at = ns_least(at, uet_grant_due(ep));
    at = ns_least(at, ep->repeat_at);
    if (ep->inc)
        at = ns_least(at, ep->inc->due(ep, now));
    if (ep->notices.head) {
        const struct lane *lane = &ep->lanes[first_port(ep->notices.head->ports)];
        ns_t until = lane->paused_until[control];
        at = ns_least(at, until > now ? until : ns_after_ps(lane->free));
    }
    if (ep->config.credit.classes) {
        ns_t ask_at;
        credit_asker(&ep->credit, &ask_at);
        at = ns_least(at, ask_at > free ? ask_at : free);
    }
    for (unsigned left = ep->has_data; left; left &= left - 1) {
        uint8_t priority = (uint8_t)__builtin_ctz(left);
        if (!credit_lacks(&ep->credit, priority))
            at = ns_least(at, data_due(ep, priority, now));
    }
    for (unsigned left = ep->has_answers; left; left &= left - 1) {
        uint8_t priority = (uint8_t)__builtin_ctz(left);
        if (!credit_lacks(&ep->credit, priority))
            at = ns_least(at, answers_due(ep, priority, now));
    }
    if (ep->stalled)
        at = ns_least(at, now + 10000);
    return at > now ? at : now + 1;
}

ns_t schedule_all(struct ep *ep, ns_t now)
{
    ep->stalled = false;
    do {
        release_paced(ep, ps_of_ns(now));
        time_out(ep, now);
        ring_alarms(ep, now);
        if (ep->inc)
            ep->inc->time_out(ep, now);
        if (ep->transport->grant)
            ep->transport->grant(ep, now);
    } while (send_one(ep, now));
    if (ep->config.credit.classes)
        note_credits(ep, now);
    return wake(ep, now);
}
