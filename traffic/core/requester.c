/* Messages out: cut into packets, kept in flight within a window, sent again when lost.
 *
 *        una        acked      next       sent       posted
 *   ──────┼──────────┼──────────┼──────────┼──────────┼──────►  sequence numbers
 *    done │ revocable│ in flight│ to resend│ never out│
 *
 * Go-back-n moves `next` back to the packet that the NAK names, or to `una` on a time-out; `acked`
 * equals `una`. Go-back-0 must send the whole message again, so `una` only ever rests on the first
 * packet of a message and `acked` falls back to it.
 *
 * Selective leaves `next` alone and walks `resend` through the holes in what the peer says it has. A
 * hole may be a packet on a slower way, so what is missing is lost only if it is still missing a
 * while after something behind it was known to have arrived: loss by time, as RACK has it (RFC 8985).
 * The adaptive while is the longest round trip measured of late, in which queues and pauses on the way
 * show. Where the fabric is known to lead packets of a flow different ways, or holes were seen to
 * fill by themselves, it is four times that, and four times as long as such holes lasted. It doubles
 * when the peer had what was sent again. A hole that was filled is lost again if a
 * round trip and such a while later it still is one. Behind a message's last packet nothing follows
 * that could show its loss: for that there is the time-out.
 *
 * The time-out runs while an ACK that was asked for is outstanding, not for every packet in flight:
 * a slow queue pair may take long to reach the next packet that asks. It counts against the retry
 * limit, and progress clears the count. An adaptive one begins short, doubles with each in a row and
 * never exceeds `rto`; then what counts is how long the silence lasts in all, `rto` x `retry_limit`
 * of it and no more, as NVIDIA's adapters have it ("Adaptive Retransmission: Parameters Control",
 * docs.nvidia.com, with progress setting the time-out back to the first). A NAK is no silence: the
 * peer lives, so NAKs alone never exhaust the limit (go-back-0 on a lossy path may restart for ever,
 * which is what happens to adapters that work so).
 */
#include "invariant.h"
#include "transport.h"

static uint64_t end_of(const struct ep_message *message)
{
    return message->first + message->packets;
}

/* In packets. A congestion control's is in bytes: one more may leave as long as those in flight do not
 * fill it. */
static uint32_t window_of(const struct ep *ep, const struct qp *qp)
{
    const struct cc *cc = qp->out->cc;
    if (!cc)
        return ep->config.window;
    double packets = cc->window / (double)cc->link.packet;
    return packets < ep->config.window ? (uint32_t)packets + 1 : ep->config.window;
}

/* The next hole to fill, UINT64_MAX if there is none. */
static uint64_t next_hole(struct qp *qp)
{
    struct selective *s = qp->selective;
    if (s->lost_again)
        return qp->una;
    if (s->resend < qp->una)
        s->resend = qp->una;
    while (s->resend < s->lost_before && seqset_has(&s->sacked, s->resend))
        s->resend++;
    return s->resend < s->lost_before ? s->resend : UINT64_MAX;
}

static bool has_hole(struct qp *qp) { return qp->selective && next_hole(qp) != UINT64_MAX; }

static bool can_send(const struct ep *ep, struct qp *qp)
{
    const struct sending *out = qp->out;
    if (qp->error)
        return false;
    if (!out)
        return qp->head;
    return has_hole(qp) ||
           (out->next < out->posted && out->next - out->acked < window_of(ep, qp));
}

/* An answer is asked for with every so manieth packet at least. */
static uint32_t ask_every(const struct ep *ep, const struct sending *out)
{
    uint32_t usual = ep->config.ack_every;
    return out->cc && out->cc->ask_every < usual ? out->cc->ask_every : usual;
}

static void move_cursor(struct qp *qp)
{
    struct sending *out = qp->out;
    while (out->cursor && out->next >= end_of(out->cursor))
        out->cursor = out->cursor->next;
}

static struct segment segment_at(const struct ep *ep, struct qp *qp, uint64_t seq, bool again)
{
    struct sending *out = qp->out;
    const struct ep_message *message = again ? qp->head : out->cursor;
    while (seq >= end_of(message))
        message = message->next;
    uint32_t index = (uint32_t)(seq - message->first), offset = index * ep->config.mtu;
    uint32_t left = message->size - offset, bytes = left < ep->config.mtu ? left : ep->config.mtu;
    bool first = index == 0, last = index + 1 == message->packets;
    struct segment segment = {.seq = seq, .offset = offset, .bytes = bytes, .message = message};

    if (ep->config.recovery == EP_SELECTIVE) {
        segment.opcode = last ? BTH_WRITE_ONLY_IMM : BTH_WRITE_ONLY;
        segment.length = bytes;
    } else {
        segment.opcode = first ? last ? BTH_WRITE_ONLY_IMM : BTH_WRITE_FIRST
                               : last ? BTH_WRITE_LAST_IMM : BTH_WRITE_MIDDLE;
        segment.length = message->size;
    }
    segment.ack_request = last || again || out->since_request + 1 >= ask_every(ep, out) ||
                          seq + 1 - out->acked >= window_of(ep, qp);
    return segment;
}

/* What is in flight, as if every packet were a full one. */
static bytes_t in_flight(const struct qp *qp)
{
    return (qp->out->next - qp->out->acked) * qp->out->cc->link.packet;
}

/* How fast it may send now. */
static bps_t allowed(const struct qp *qp, ns_t now)
{
    struct cc *cc = qp->out->cc;
    bps_t most = qp->common->rate, rate = cc && cc->ops->rate ? cc->ops->rate(cc, now) : most;
    return rate < most ? rate : most;
}

static void pace(struct qp *qp, ps_t at, uint32_t wire, ns_t now)
{
    struct sending *out = qp->out;
    bps_t rate = allowed(qp, now);
    if (out->cc && out->cc->ops->sent)
        out->cc->ops->sent(out->cc, wire, in_flight(qp) + wire, now);
    qp->ready = at + ps_for_bytes(wire, rate);
    out->left_at = at;
    out->left = wire;
}

/* Let the wait that what left last imposes be as long as its rate now has it. */
static void pace_anew(struct ep *ep, struct qp *qp, ns_t now)
{
    const struct sending *out = qp->out;
    ps_t soonest = ps_of_ns(now);
    if (!ep->config.follow_rate || !out->left || qp->ready <= soonest)
        return;
    ps_t ready = out->left_at + ps_for_bytes(out->left, allowed(qp, now));
    qp->ready = ready > soonest ? ready : soonest;
    schedule_sooner(ep, qp);
}

/* Time the round trip of a packet, if its answer is asked for and will be that to this transmission. */
static void stamp(struct sending *out, const struct segment *segment, ns_t at)
{
    struct stamps *stamps = out->stamps;
    if (!stamps || segment->seq < out->cc->time_from)
        return;
    if (segment->seq < out->sent)
        stamps->count = 0; /* what is sent again may be what answers are about */
    else if (segment->ack_request && stamps->count < STAMPS)
        stamps->ring[(stamps->first + stamps->count++) % STAMPS] =
            (struct stamp){.seq = segment->seq, .at = at};
}

/* How long the newest took of those that have been answered. */
static ns_t measure(struct sending *out, ns_t now)
{
    struct stamps *stamps = out->stamps;
    ns_t took = CC_UNTOLD;
    while (stamps && stamps->count && stamps->ring[stamps->first].seq < out->acked) {
        ns_t at = stamps->ring[stamps->first].at;
        took = now > at ? now - at : 0;
        stamps->first = (uint8_t)((stamps->first + 1) % STAMPS);
        stamps->count--;
    }
    return took;
}

/* Tell a queue pair's control of an answer; all before `before` had been acknowledged. */
static void tell(const struct qp *qp, const struct packet *packet, uint64_t before, ns_t now)
{
    struct sending *out = qp->out;
    struct cc *cc = out->cc;
    struct csig csig = {0};
    if (packet->tag_bytes)
        csig = csig_read(packet->tag, packet->tag_bytes);
    struct cc_ack ack = {
        .now = now,
        .bytes = out->acked > before ? (out->acked - before) * cc->link.packet : 0,
        .in_flight = in_flight(qp),
        .round_trip = measure(out, now),
        .acked = out->acked,
        .next = out->next,
        .marked = packet->echoes,
        .stack = packet->int_bytes ? &packet->stack : NULL,
        .csig = packet->tag_bytes ? &csig : NULL,
    };
    cc->ops->acked(cc, &ack);
}

void requester_await(const struct ep *ep, struct qp *qp, ns_t now, bool progress)
{
    struct sending *out = qp->out;
    const struct ep_config *config = &ep->config;
    ns_t first = config->rto_first ? config->rto_first : config->rto;
    out->rto = progress || !out->rto || !config->rto_first ? first : 2 * out->rto;
    if (config->rto && out->rto > config->rto)
        out->rto = config->rto;
    out->rto_at = out->rto ? now + out->rto : NS_NEVER;
    if (progress)
        out->silent = out->retries = 0;
}

static bool gives_up(const struct ep *ep, struct qp *qp)
{
    struct sending *out = qp->out;
    const struct ep_config *config = &ep->config;
    out->silent += out->rto;
    if (config->rto_first)
        return config->rto && out->silent >= config->rto * config->retry_limit;
    return out->retries++ >= config->retry_limit;
}

/* An ACK was asked for: from now on its absence means something. */
static void await_answer(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    struct sending *out = qp->out;
    if (out->requested <= seq)
        out->requested = seq + 1;
    if (out->rto_at == NS_NEVER) {
        requester_await(ep, qp, now, true);
        schedule_rto(ep, qp);
    }
}

enum { MULTIPATH = 4, MAX_PATIENCE = 6, MAX_TRIES = 6 };

/* How long a packet may be overtaken, by what was measured; `age` is what a packet that is being
 * timed has taken so far. */
static ns_t wait_by(const struct ep *ep, const struct qp *qp, ns_t age)
{
    const struct selective *s = qp->selective;
    if (ep->config.reorder != EP_REORDER_ADAPTIVE)
        return ep->config.reorder;
    ns_t round_trip = s->round_trip > age ? s->round_trip : age;
    ns_t by_trips = s->lateness || ep->config.multipath ? MULTIPATH * round_trip : round_trip;
    ns_t by_holes = MULTIPATH * s->lateness;
    return (by_trips > by_holes ? by_trips : by_holes) << s->patience;
}

static ns_t wait_for_hole(const struct ep *ep, const struct qp *qp, ns_t now)
{
    const struct selective *s = qp->selective;
    return wait_by(ep, qp, s->is_timed ? now - s->timed_at : 0);
}

static void set_alarm(struct ep *ep, struct qp *qp)
{
    struct selective *s = qp->selective;
    s->alarm_at = s->again_at;
    if (s->n_seen && s->seen[s->first_seen].until < s->alarm_at)
        s->alarm_at = s->seen[s->first_seen].until;
    schedule_alarm(ep, qp);
}

/* One packet at a time, and only such as are sent once. */
static void time_round_trip(struct selective *s, uint64_t seq, ns_t now)
{
    if (s->is_timed)
        return;
    s->is_timed = true;
    s->timed = seq;
    s->timed_at = now;
}

/* The most of late: what is more counts at once, what is less by and by. */
static void note_most(ns_t *most, ns_t now)
{
    *most = *most < now ? now : *most - (*most - now) / 16;
}

static void measure_round_trip(struct selective *s, ns_t took)
{
    note_most(&s->round_trip, took);
    s->is_timed = false;
}

static void note_filled(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    struct selective *s = qp->selective;
    if (s->is_timed && seq == s->timed) { /* which of the two is answered cannot be told */
        s->is_timed = false;
        if (s->round_trip < now - s->timed_at)
            s->round_trip = now - s->timed_at; /* so long it took at least */
    }
    if (seq == qp->una) {
        s->lost_again = false;
        s->again_at = now + ((s->round_trip + wait_for_hole(ep, qp, now)) << s->tries);
        if (s->tries < MAX_TRIES)
            s->tries++;
        set_alarm(ep, qp);
    }
    if (s->resend == seq)
        s->resend++;
}

static uint32_t send(struct ep *ep, struct qp *qp, uint8_t port, ns_t now)
{
    struct sending *out = sending(ep, qp);
    if (!out) { /* memory may come back */
        ep->stalled = true;
        return 0;
    }
    bool filling = has_hole(qp);
    uint64_t seq = filling ? next_hole(qp) : out->next;
    struct segment segment = segment_at(ep, qp, seq, filling);
    uint32_t stored, wire = frame_data(ep, qp, &segment, &stored);
    ps_t at = schedule_send(ep, port, stored, wire, qp->priority, qp->ready, now);
    if (at == PS_NEVER)
        return 0;

    pace(qp, at, wire, now);
    stamp(out, &segment, ns_after_ps(at));
    out->rewound = false;
    out->since_request = segment.ack_request ? 0 : out->since_request + 1;
    ep->counters.tx_data_packets++;
    ep->counters.tx_data_bytes += segment.bytes;
    if (seq < out->sent) {
        ep->counters.retransmitted_packets++;
        ep->counters.retransmitted_bytes += segment.bytes;
    }
    if (filling) {
        note_filled(ep, qp, seq, now);
    } else {
        if (qp->selective)
            time_round_trip(qp->selective, seq, now);
        out->next++;
        move_cursor(qp);
    }
    if (out->sent < out->next)
        out->sent = out->next;
    if (segment.ack_request)
        await_answer(ep, qp, seq, now);
    return wire;
}

void requester_append(struct ep *ep, struct qp *qp, struct ep_message *message)
{
    struct sending *out = qp->out;
    message->qp = qp;
    message->next = NULL;
    message->packets = message->size ? (message->size + ep->config.mtu - 1) / ep->config.mtu : 1;
    message->first = qp_posted(qp);
    if (qp->head)
        qp->tail->next = message;
    else
        qp->head = message;
    qp->tail = message;
    if (!out)
        return;
    out->posted += message->packets;
    if (!out->cursor)
        out->cursor = message;
}

static void post(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now)
{
    requester_append(ep, qp, message);
    schedule_data(ep, qp, now);
}

void requester_complete(struct ep *ep, struct qp *qp, uint64_t acked, ns_t now)
{
    while (qp->head && end_of(qp->head) <= acked) {
        struct ep_message *message = qp->head;
        qp->head = message->next;
        message->done = true;
        ep->counters.messages_sent++;
        ep_event(ep, EP_SENT, qp, message, now);
    }
}

enum { EVIDENCE = sizeof ((struct selective *)0)->seen / sizeof(struct evidence) };

static void forget_evidence(struct selective *s)
{
    s->first_seen = (uint8_t)((s->first_seen + 1) % EVIDENCE);
    s->n_seen--;
}

/* Everything before `settled` has arrived; before `una` all had. */
static void settle_holes(struct ep *ep, struct qp *qp, uint64_t settled, ns_t now)
{
    struct selective *s = qp->selective;
    for (uint64_t seq = qp->una; seq < settled; seq++)
        seqset_remove(&s->sacked, seq);
    if (s->is_timed && s->timed < settled)
        measure_round_trip(s, now - s->timed_at);
    const struct evidence *seen = &s->seen[s->first_seen];
    if (s->n_seen && seen->before > qp->una && s->resend <= qp->una)
        note_most(&s->lateness, now - seen->at); /* it was on its way */
    while (s->n_seen && s->seen[s->first_seen].before <= settled)
        forget_evidence(s);
    s->lost_again = false;
    s->tries = 0;
    /* The new first hole, if it was filled, may have been so before: a round trip from now tells. */
    s->again_at = NS_NEVER;
    if (settled < s->resend)
        s->again_at = now + s->round_trip + wait_for_hole(ep, qp, now);
}

/* Whether what a queue pair knows while it sends lies as the picture on top has it. */
static inline bool is_in_order(const struct qp *qp)
{
    const struct sending *out = qp->out;
    return qp->una <= out->acked && out->acked <= out->next && out->next <= out->posted &&
           out->sent <= out->posted;
}

/* Everything before `upto` has arrived. */
static void acknowledge(struct ep *ep, struct qp *qp, uint64_t upto, ns_t now)
{
    struct sending *out = qp->out;
    if (upto <= out->acked)
        return;
    uint64_t settled = upto;
    if (ep->config.recovery == EP_GO_BACK_0)
        for (const struct ep_message *m = qp->head; m && m->first <= upto; m = m->next)
            settled = end_of(m) <= upto ? end_of(m) : m->first;
    if (qp->selective && qp->una < settled)
        settle_holes(ep, qp, settled, now);
    qp->una = settled;
    if (out->next < qp->una)
        out->next = qp->una;
    move_cursor(qp);
    out->acked = upto < out->next ? upto : out->next;
    requester_await(ep, qp, now, true);
    if (qp->una >= out->requested)
        out->rto_at = NS_NEVER;
    else
        schedule_rto(ep, qp);
    INVARIANT(is_in_order(qp));
    requester_complete(ep, qp, settled, now);
}

static void go_back(struct qp *qp, uint64_t to)
{
    struct sending *out = qp->out;
    INVARIANT(is_in_order(qp) && qp->una <= to && to <= out->sent);
    out->next = out->acked = to;
    out->cursor = qp->head;
    move_cursor(qp);
    out->since_request = 0;
}

bool requester_timed_out(struct ep *ep, struct qp *qp, ns_t now)
{
    struct sending *out = qp->out;
    out->rto_at = NS_NEVER;
    if (qp->error || qp->una >= out->sent)
        return false;
    if (out->rewound) { /* what the last one asked for could not leave yet: a pause, no silence */
        out->rto_at = now + out->rto;
        return false;
    }
    ep->counters.local_ack_timeout_err++;
    if (gives_up(ep, qp)) {
        qp_fail(ep, qp, EP_RETRY_EXCEEDED, now);
        return false;
    }
    requester_await(ep, qp, now, false);
    out->rewound = true;
    return true;
}

static void timeout(struct ep *ep, struct qp *qp, ns_t now)
{
    if (!requester_timed_out(ep, qp, now))
        return;
    if (qp->selective) {
        qp->selective->resend = qp->una;
        qp->selective->lost_before = qp->out->sent;
    } else {
        go_back(qp, qp->una);
    }
    schedule_data(ep, qp, now);
}

/* Something behind the holes has arrived that had not: they are lost if they last. What is seen in a
 * short while is seen as one, at the end of that. */
static void note_evidence(const struct ep *ep, struct qp *qp, ns_t now)
{
    struct selective *s = qp->selective;
    ns_t wait = wait_for_hole(ep, qp, now), together = wait / (EVIDENCE - 1);
    struct evidence *last = &s->seen[(s->first_seen + s->n_seen + EVIDENCE - 1) % EVIDENCE];
    if (!s->n_seen || (s->n_seen < EVIDENCE && last->at + together <= now)) {
        s->seen[(s->first_seen + s->n_seen++) % EVIDENCE] = (struct evidence){
            .before = s->sack_end, .at = now, .until = now + together + wait};
        return;
    }
    last->before = s->sack_end;
    if (last->until < now + wait)
        last->until = now + wait;
}

/* Take in the map of what arrived early. False if it is cut short. */
static bool read_map(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now)
{
    const uint8_t *at = packet->body + packet->answer_bytes;
    struct selective *s = qp->selective;
    uint32_t left = packet->body_bytes - packet->answer_bytes;
    if (!left)
        return true;
    if (left < WIRE_SACK || packet->there < packet->answer_bytes + left)
        return false;
    uint32_t words = at[3] & (WIRE_SACK_TWICE - 1u);
    if (left < WIRE_SACK + 8 * words)
        return false;
    if (at[3] & WIRE_SACK_TWICE && s->patience < MAX_PATIENCE)
        s->patience++;
    uint64_t first = psn_unwrap(qp->una, be24_load(at)), end = s->sack_end;
    for (uint32_t word = 0; word < words; word++) {
        uint64_t bits = be64_load(at + WIRE_SACK + 8 * word);
        for (; bits; bits &= bits - 1) {
            uint64_t seq = first + 64 * word + (uint32_t)__builtin_ctzll(bits);
            if (seq <= qp->una || seq >= qp->out->sent)
                continue;
            seqset_add(&s->sacked, seq);
            if (end <= seq)
                end = seq + 1;
        }
    }
    if (s->is_timed && s->timed >= qp->una && seqset_has(&s->sacked, s->timed))
        measure_round_trip(s, now - s->timed_at);
    if (end > s->sack_end) {
        s->sack_end = end;
        note_evidence(ep, qp, now);
    }
    return true;
}

static void alarm(struct ep *ep, struct qp *qp, ns_t now)
{
    struct selective *s = qp->selective;
    s->alarm_at = NS_NEVER;
    if (qp->error)
        return;
    while (s->n_seen && s->seen[s->first_seen].until <= now) {
        struct evidence *seen = &s->seen[s->first_seen];
        ns_t until = seen->at + wait_by(ep, qp, 0);
        if (seen->before > qp->una && until > now) { /* round trips have become longer meanwhile */
            seen->until = until;
            break;
        }
        if (s->lost_before < seen->before)
            s->lost_before = seen->before;
        forget_evidence(s);
    }
    if (s->again_at <= now) {
        s->again_at = NS_NEVER;
        s->lost_again = qp->una < s->resend && qp->una < qp->out->sent;
    }
    set_alarm(ep, qp);
    schedule_data(ep, qp, now);
}

/* A NAK for a sequence error: `expected` is what the peer waits for.
 *
 * It clears what counts against the limit, as progress does: who sends it is there, and hears us.
 * InfiniBand's retry counter counts what is sent again for a NAK too, with time-outs; ours is one of
 * silences. Both give up where nobody answers; an adapter of theirs does so also where the same packet
 * is lost each time and only what comes behind it arrives. */
static void sequence_error(struct ep *ep, struct qp *qp, uint64_t expected, ns_t now)
{
    struct sending *out = qp->out;
    ep->counters.packet_seq_err++;
    if (expected < qp->una || expected >= out->sent)
        return; /* old: it was answered, or overtaken by an ACK */
    out->silent = out->retries = 0;
    acknowledge(ep, qp, expected, now);
    if (!qp->selective)
        go_back(qp, qp->una);
}

void requester_answer(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now)
{
    if (packet->body_bytes < WIRE_AETH) {
        ep->counters.rx_malformed++;
        return;
    }
    struct sending *out = sending(ep, qp);
    if (!out) {
        ep->counters.rx_discards++;
        return;
    }
    uint32_t aeth = be32_load(packet->body);
    uint64_t before = out->acked, seq = psn_unwrap(before, packet->psn);

    switch (aeth >> 24) {
    case AETH_NAK_SEQUENCE:
        sequence_error(ep, qp, seq, now);
        break;
    case AETH_NAK_INVALID_REQUEST:
        qp_fail(ep, qp, EP_REMOTE_INVALID, now);
        return;
    case AETH_NAK_REMOTE_ACCESS:
        qp_fail(ep, qp, EP_REMOTE_ACCESS, now);
        return;
    case AETH_NAK_REMOTE_OPERATION:
        qp_fail(ep, qp, EP_REMOTE_OPERATION, now);
        return;
    default:
        if (aeth >> 29) { /* neither an ACK nor a NAK that a WRITE can get */
            ep->counters.rx_malformed++;
            return;
        }
        ep->counters.rx_acks++;
        if (seq < out->sent)
            acknowledge(ep, qp, seq + 1, now);
    }
    if (qp->selective) {
        if (!read_map(ep, qp, packet, now))
            ep->counters.rx_malformed++;
        set_alarm(ep, qp);
    }
    if (out->cc && out->cc->ops->acked) {
        tell(qp, packet, before, now);
        pace_anew(ep, qp, now);
    }
    schedule_data(ep, qp, now);
    sending_over(ep, qp);
}

void requester_cnp(struct ep *ep, struct qp *qp, ns_t now)
{
    if (!cc_hears(qp->cc, CC_MARKS)) {
        ep->counters.rp_cnp_ignored++;
        return;
    }
    if (!sending(ep, qp)) {
        ep->counters.rx_discards++;
        return;
    }
    ep->counters.rp_cnp_handled++;
    qp->out->cc->ops->notified(qp->out->cc, now);
}

static uint8_t answer_port(const struct ep *ep, const struct qp *qp)
{
    (void)ep;
    return first_port(qp->ports);
}

static void ports_changed(struct ep *ep, struct qp *qp, ns_t now)
{
    if (!ep->config.bonded)
        return;
    bool stays = ep->up >> qp->common->own_port & 1 || !ep->up;
    qp->ports = (uint8_t)(1u << (stays ? qp->common->own_port : first_port(ep->up)));
    schedule_data(ep, qp, now);
}

static struct cc_link link(const struct ep *ep, const struct qp *qp)
{
    return (struct cc_link){
        .rate = qp->common->rate,
        .base_rtt = ep->config.base_rtt,
        .packet = qp->common->data_bytes + ep->config.mtu + WIRE_ICRC + /* hops' telemetry aside */
                  (cc_hears(qp->cc, CC_CSIG) ? ep->config.csig : 0u),
        .hops = ep->config.hops,
    };
}

const struct transport ROCE = {
    .can_send = can_send,
    .send = send,
    .post = post,
    .link = link,
    .answer_port = answer_port,
    .answer = responder_answer,
    .timeout = timeout,
    .alarm = alarm,
    .ports_changed = ports_changed,
    .notify = responder_notify,
};
