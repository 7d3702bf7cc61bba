/* Messages out: cut into packets, kept in flight within a window, sent again when lost.
 *
 *        una        acked      next       sent       posted
 *   ──────┼──────────┼──────────┼──────────┼──────────┼──────►  sequence numbers
 *    done │ revocable│ in flight│ to resend│ never out│
 *
 * Go-back-n moves `next` back to the packet that the NAK names, or to `una` on a time-out; `acked`
 * equals `una`. Go-back-0 must send the whole message again, so `una` only ever rests on the first
 * packet of a message and `acked` falls back to it. Selective leaves `next` alone and walks
 * `resend` through the holes in what the peer says it has: a hole is lost when a packet more than
 * `reorder` later has arrived, or when time is out. Each hole is filled once; that the filling was
 * lost as well is noticed for the first hole, when a packet that left after it arrives before it.
 *
 * The time-out runs while an ACK that was asked for is outstanding, not for every packet in flight:
 * a slow queue pair may take long to reach the next packet that asks. It counts against the retry
 * limit, and progress clears the count. An adaptive one begins short, doubles with each in a row and
 * never exceeds `rto`; then what counts is how long the silence lasts in all, `rto` x `retry_limit`
 * of it and no more, as NVIDIA's adapters have it ("Adaptive Retransmission: Parameters Control",
 * docs.nvidia.com, with progress setting the time-out back to the first). A NAK is no silence: the peer lives, so NAKs alone never
 * exhaust the limit (go-back-0 on a lossy path may restart for ever, which is what happens to
 * adapters that work so).
 */
#include "qp.h"

static uint64_t end_of(const struct ep_message *message)
{
    return message->first + message->packets;
}

/* What a full packet of a queue pair is long, hops' telemetry aside. */
static bytes_t full_packet(const struct ep *ep, const struct qp *qp)
{
    return qp->data_bytes + ep->config.mtu + WIRE_ICRC;
}

/* In packets. HPCC's is in bytes: one more may leave as long as those in flight do not fill it. */
static uint32_t window_of(const struct ep *ep, const struct qp *qp)
{
    if (qp->cc != EP_CC_HPCC)
        return ep->config.window;
    double packets = qp->control.hpcc->window / (double)full_packet(ep, qp);
    return packets < ep->config.window ? (uint32_t)packets + 1 : ep->config.window;
}

/* The next hole to fill, UINT64_MAX if there is none. */
static uint64_t next_hole(const struct ep *ep, struct qp *qp)
{
    if (qp->lost_again)
        return qp->una;
    uint64_t before = qp->sack_end > ep->config.reorder ? qp->sack_end - ep->config.reorder : 0;
    if (before < qp->lost_before)
        before = qp->lost_before;
    if (qp->resend < qp->una)
        qp->resend = qp->una;
    while (qp->resend < before && seqset_has(&qp->sacked, qp->resend))
        qp->resend++;
    return qp->resend < before ? qp->resend : UINT64_MAX;
}

static bool has_hole(const struct ep *ep, struct qp *qp)
{
    return ep->config.recovery == EP_SELECTIVE && next_hole(ep, qp) != UINT64_MAX;
}

bool requester_can_send(const struct ep *ep, struct qp *qp)
{
    if (qp->error)
        return false;
    return has_hole(ep, qp) || (qp->next < qp->posted && qp->next - qp->acked < window_of(ep, qp));
}

static void move_cursor(struct qp *qp)
{
    while (qp->cursor && qp->next >= end_of(qp->cursor))
        qp->cursor = qp->cursor->next;
}

static struct segment segment_at(const struct ep *ep, struct qp *qp, uint64_t seq, bool again)
{
    const struct ep_message *message = again ? qp->head : qp->cursor;
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
    segment.ack_request = last || again || qp->cc == EP_CC_HPCC ||
                          qp->since_request + 1 >= ep->config.ack_every ||
                          seq + 1 - qp->acked >= window_of(ep, qp);
    return segment;
}

static void pace(struct ep *ep, struct qp *qp, ps_t at, uint32_t wire, ns_t now)
{
    bps_t rate = qp->rate, allowed = rate;
    if (qp->cc == EP_CC_DCQCN)
        allowed = dcqcn_sent(&qp->control.dcqcn, &ep->config.dcqcn, now, wire);
    else if (qp->cc == EP_CC_HPCC)
        allowed = hpcc_rate(qp->control.hpcc, &ep->config.hpcc);
    qp->ready = at + ps_for_bytes(wire, allowed < rate ? allowed : rate);
}

/* Let time be out when this one is, from now on; progress begins with the first again. */
static void start_timeout(const struct ep *ep, struct qp *qp, ns_t now, bool progress)
{
    const struct ep_config *config = &ep->config;
    ns_t first = config->rto_first ? config->rto_first : config->rto;
    qp->rto = progress || !qp->rto || !config->rto_first ? first : 2 * qp->rto;
    if (config->rto && qp->rto > config->rto)
        qp->rto = config->rto;
    qp->rto_at = qp->rto ? now + qp->rto : NS_NEVER;
    if (progress)
        qp->silent = qp->retries = 0;
}

/* Another time-out without progress: whether it was one too many. */
static bool gives_up(const struct ep *ep, struct qp *qp)
{
    const struct ep_config *config = &ep->config;
    qp->silent += qp->rto;
    if (config->rto_first)
        return config->rto && qp->silent >= config->rto * config->retry_limit;
    return qp->retries++ >= config->retry_limit;
}

/* An ACK was asked for: from now on its absence means something. */
static void await_answer(struct ep *ep, struct qp *qp, uint64_t seq, ns_t now)
{
    if (qp->requested <= seq)
        qp->requested = seq + 1;
    if (qp->rto_at == NS_NEVER) {
        start_timeout(ep, qp, now, true);
        schedule_rto(ep, qp);
    }
}

uint32_t requester_send(struct ep *ep, struct qp *qp, ns_t now)
{
    bool filling = has_hole(ep, qp);
    uint64_t seq = filling ? next_hole(ep, qp) : qp->next;
    struct segment segment = segment_at(ep, qp, seq, filling);
    uint32_t stored, wire = frame_data(ep, qp, &segment, &stored);
    ps_t at = schedule_send(ep, stored, wire, qp->priority, qp->ready, now);
    if (at == PS_NEVER)
        return 0;

    pace(ep, qp, at, wire, now);
    qp->rewound = false;
    qp->since_request = segment.ack_request ? 0 : qp->since_request + 1;
    ep->counters.tx_data_packets++;
    ep->counters.tx_data_bytes += segment.bytes;
    if (seq < qp->sent) {
        ep->counters.retransmitted_packets++;
        ep->counters.retransmitted_bytes += segment.bytes;
    }
    if (filling) {
        if (seq == qp->una) {
            qp->resent_at = qp->sent;
            qp->lost_again = false;
        }
        if (qp->resend == seq)
            qp->resend++;
    } else {
        qp->next++;
        move_cursor(qp);
    }
    if (qp->sent < qp->next)
        qp->sent = qp->next;
    if (segment.ack_request)
        await_answer(ep, qp, seq, now);
    return wire;
}

void requester_post(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now)
{
    message->qp = qp;
    message->next = NULL;
    message->packets = message->size ? (message->size + ep->config.mtu - 1) / ep->config.mtu : 1;
    message->first = qp->posted;
    qp->posted += message->packets;
    if (qp->head)
        qp->tail->next = message;
    else
        qp->head = message;
    qp->tail = message;
    if (!qp->cursor)
        qp->cursor = message;
    schedule_data(ep, qp, now);
}

/* Let go of the messages that end at or before `acked`, in order. */
static void complete(struct ep *ep, struct qp *qp, uint64_t acked, ns_t now)
{
    while (qp->head && end_of(qp->head) <= acked) {
        struct ep_message *message = qp->head;
        qp->head = message->next;
        message->done = true;
        ep->counters.messages_sent++;
        ep_event(ep, EP_SENT, qp, message, now);
    }
}

/* Everything before `upto` has arrived. */
static void acknowledge(struct ep *ep, struct qp *qp, uint64_t upto, ns_t now)
{
    if (upto <= qp->acked)
        return;
    uint64_t settled = upto;
    if (ep->config.recovery == EP_GO_BACK_0)
        for (const struct ep_message *m = qp->head; m && m->first <= upto; m = m->next)
            settled = end_of(m) <= upto ? end_of(m) : m->first;
    if (ep->config.recovery == EP_SELECTIVE)
        for (uint64_t seq = qp->una; seq < settled; seq++)
            seqset_remove(&qp->sacked, seq);
    if (qp->una < settled) {
        qp->lost_again = false;
        qp->resent_at = qp->sent; /* at the latest, if the new `una` went out again already */
    }
    qp->una = settled;
    if (qp->next < qp->una)
        qp->next = qp->una;
    move_cursor(qp);
    qp->acked = upto < qp->next ? upto : qp->next;
    start_timeout(ep, qp, now, true);
    if (qp->una >= qp->requested)
        qp->rto_at = NS_NEVER;
    else
        schedule_rto(ep, qp);
    complete(ep, qp, settled, now);
}

static void go_back(struct qp *qp, uint64_t to)
{
    qp->next = qp->acked = to;
    qp->cursor = qp->head;
    move_cursor(qp);
    qp->since_request = 0;
}

void requester_timeout(struct ep *ep, struct qp *qp, ns_t now)
{
    qp->rto_at = NS_NEVER;
    if (qp->error || qp->una >= qp->sent)
        return;
    if (qp->rewound) { /* what the last one asked for could not leave yet: a pause, no silence */
        qp->rto_at = now + qp->rto;
        return;
    }
    ep->counters.local_ack_timeout_err++;
    if (gives_up(ep, qp)) {
        qp_fail(ep, qp, EP_RETRY_EXCEEDED, now);
        return;
    }
    start_timeout(ep, qp, now, false);
    qp->rewound = true;
    if (ep->config.recovery == EP_SELECTIVE) {
        qp->resend = qp->una;
        qp->lost_before = qp->sent;
    } else {
        go_back(qp, qp->una);
    }
    schedule_data(ep, qp, now);
}

/* Selective: the peer lacks `una` and has `arrived`. */
static void arrived_early(const struct ep *ep, struct qp *qp, uint64_t arrived)
{
    if (arrived <= qp->una || arrived >= qp->sent)
        return;
    seqset_add(&qp->sacked, arrived);
    if (qp->sack_end < arrived)
        qp->sack_end = arrived;
    /* `una` went out again, yet what first left after that has overtaken it: lost again. */
    if (qp->resend > qp->una && arrived >= qp->resent_at + ep->config.reorder)
        qp->lost_again = true;
}

/* A NAK for a sequence error: `expected` is what the peer waits for. */
static void sequence_error(struct ep *ep, struct qp *qp, uint64_t expected, uint32_t msn, ns_t now)
{
    ep->counters.packet_seq_err++;
    if (expected < qp->una || expected >= qp->sent)
        return; /* old: it was answered, or overtaken by an ACK */
    qp->silent = qp->retries = 0;
    acknowledge(ep, qp, expected, now);
    if (ep->config.recovery == EP_SELECTIVE)
        arrived_early(ep, qp, psn_unwrap(qp->una, msn));
    else
        go_back(qp, qp->una);
}

void requester_answer(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now)
{
    if (packet->body_bytes < WIRE_AETH) {
        ep->counters.rx_malformed++;
        return;
    }
    uint32_t aeth = be32_load(packet->body);
    uint64_t seq = psn_unwrap(qp->acked, packet->psn);

    switch (aeth >> 24) {
    case AETH_NAK_SEQUENCE:
        sequence_error(ep, qp, seq, aeth & PSN_MASK, now);
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
        if (seq < qp->sent)
            acknowledge(ep, qp, seq + 1, now);
    }
    if (qp->cc == EP_CC_HPCC && packet->int_bytes)
        hpcc_ack(qp->control.hpcc, &ep->config.hpcc, &packet->stack, full_packet(ep, qp), qp->acked,
                 qp->next, now);
    schedule_data(ep, qp, now);
}

void requester_cnp(struct ep *ep, struct qp *qp, ns_t now)
{
    if (qp->cc != EP_CC_DCQCN) {
        ep->counters.rp_cnp_ignored++;
        return;
    }
    ep->counters.rp_cnp_handled++;
    dcqcn_cnp(&qp->control.dcqcn, &ep->config.dcqcn, now);
}
