/* UET's receiving side: packets are placed where they say, answered one by one, and credit is granted.
 *
 * An answer names the packet it is for, and so the way that one took; it also tells all that came
 * before the first gap, and of 64 packets beyond it which have come. A cut packet is answered by a
 * NACK unless its whole came before. What a stranger sends, or a peer about what nobody posted, changes
 * nothing and is counted.
 *
 * Credit: flows whose peers would send more than they were granted stand in a ring, and each turn
 * grants one packet, a packet's time on our link after the one before and a hundredth more. All of a
 * host's flows share that one clock: together they bring a little less than the link does, so that a
 * queue which their first windows left drains (the pace is htsim's).
 */
#include "uet.h"

#include <stdlib.h>

#include "icrc.h"

enum { GRANTED_PERCENT = 99 }; /* of our link's rate */

void uet_owe(struct ep *ep, struct qp *qp, const struct uet_answer *answer, ns_t now)
{
    struct uet *uet = qp->uet;
    if (!uet->answers && !(uet->answers = malloc(UET_ANSWERS * sizeof *uet->answers)))
        return;
    if (uet->n_answers == UET_ANSWERS) {
        ep->counters.answers_withheld++; /* the peer finds out by itself, later */
        return;
    }
    uet->answers[(uet->first_answer + uet->n_answers++) % UET_ANSWERS] = *answer;
    qp->in->owed |= OWE_ACK;
    schedule_answer(ep, qp, now);
}

static bool several(const struct ep *ep) { return ep->config.ports > 1; }

uint8_t uet_port(const struct ep *ep, uint16_t entropy)
{
    uint8_t plane = uet_plane(ep, entropy);
    return ep->up >> plane & 1 || !ep->up ? plane : first_port(ep->up);
}

uint8_t uet_answer_port(const struct ep *ep, const struct qp *qp)
{
    const struct uet *uet = qp->uet;
    return uet_port(ep, uet->owes_grant || !uet->answers ? uet->heard
                                                         : uet->answers[uet->first_answer].entropy);
}

/* The way an answer takes: that of what it answers, unless that is known to be no good from here. */
static uint16_t way_back(const struct ep *ep, const struct qp *qp, uint16_t entropy)
{
    uint16_t ports = ep->config.ports, ways = ep->config.entropies;
    if (!qp->uet->ways || entropy >= ways)
        return entropy;
    const struct health *health = &qp->uet->entropy[uet_plane(ep, entropy)].health;
    if (!health->good || health->ways[entropy / ports].state < WAY_BAD)
        return entropy;
    do
        entropy = (uint16_t)((entropy + ports) % ways);
    while (health->ways[entropy / ports].state >= WAY_BAD);
    return entropy;
}

static uint32_t answer_frame(struct ep *ep, struct qp *qp, const struct uet_answer *answer,
                             uint32_t *stored)
{
    struct uet *uet = qp->uet;
    if (uet->owes_grant) {
        struct uet_answer grant = {.seq = qp->expected - 1, .way = several(ep) ? uet->heard : 0};
        return ep->format->control(ep, qp, UET_CTRL_CREDIT, &grant,
                                 (uint32_t)(uet->granted / UET_CREDIT_UNIT) & 0xFFFFFF, stored);
    }
    struct uet_answer its = *answer;
    its.way = its.entropy;
    if (its.kind == UET_SAY_PROBE)
        return ep->format->control(ep, qp, UET_CTRL_PROBE, &its, (uint32_t)its.seq, stored);
    if (its.kind == UET_SAY_CREDIT_REQ) {
        its.seq = qp->una;
        return ep->format->control(ep, qp, UET_CTRL_CREDIT_REQ, &its, uet_target(ep, qp), stored);
    }
    its.way = way_back(ep, qp, its.entropy);
    return its.kind == UET_SAY_NACK ? ep->format->nack(ep, qp, &its, stored)
                                    : ep->format->ack(ep, qp, &its, stored);
}

bool uet_answer(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    if (!uet->owes_grant && !uet->n_answers)
        return true;
    const struct uet_answer *answer = uet->answers ? &uet->answers[uet->first_answer] : NULL;
    uint32_t stored, wire = answer_frame(ep, qp, answer, &stored);
    uint8_t port = uet_answer_port(ep, qp), priority = answer_priority(ep, qp);
    if (schedule_send(ep, port, stored, wire, priority, qp->in->answer_ready, now) == PS_NEVER)
        return false;
    if (uet->owes_grant) {
        uet->owes_grant = false;
        ep->counters.tx_credits++;
    } else {
        ep->counters.tx_naks += answer->kind == UET_SAY_NACK;
        ep->counters.tx_acks += answer->kind == UET_SAY_ACK;
        ep->counters.tx_probes += answer->kind == UET_SAY_PROBE;
        uet->first_answer = (uint8_t)((uet->first_answer + 1) % UET_ANSWERS);
        uet->n_answers--;
    }
    if (!uet->n_answers)
        qp->in->owed &= (uint8_t)~OWE_ACK;
    if (uet->n_answers)
        qp->in->owed |= OWE_ACK;
    return true;
}

/* --- credit ------------------------------------------------------------------------------------ */

static void want_credit(struct ep *ep, struct qp *qp, uint32_t units, ns_t now)
{
    struct uet *uet = qp->uet;
    uint32_t known = (uint32_t)(uet->demand / UET_CREDIT_UNIT);
    uint32_t more = (units - known) & 0xFFFFFF;
    if (more >= 0x800000)
        return; /* an old one */
    uet->demand += (uint64_t)more * UET_CREDIT_UNIT;
    if (uet->in_demands || uet->granted >= uet->demand)
        return;
    uet->in_demands = true;
    uet->demands_next = NULL;
    if (ep->demands.head)
        ep->demands.tail->uet->demands_next = qp;
    else
        ep->demands.head = qp;
    ep->demands.tail = qp;
    if (ep->grant_at < ps_of_ns(now))
        ep->grant_at = ps_of_ns(now);
}

ns_t uet_grant_due(const struct ep *ep)
{
    return ep->demands.head ? ns_after_ps(ep->grant_at) : NS_NEVER;
}

void uet_grant(struct ep *ep, ns_t now)
{
    uint32_t packet = uet_frame_size(ep, ep->config.mtu);
    ps_t lasts = ps_for_bytes(packet + ep->config.overhead_bytes, ep_bps(ep));
    lasts = lasts * 100 / GRANTED_PERCENT;
    while (ep->demands.head && ep->grant_at <= ps_of_ns(now)) {
        struct qp *qp = ep->demands.head;
        struct uet *uet = qp->uet;
        ep->demands.head = uet->demands_next;
        uet->in_demands = false;
        uet->granted += (packet + UET_CREDIT_UNIT - 1) / UET_CREDIT_UNIT * UET_CREDIT_UNIT;
        uet->owes_grant = true;
        ep->grant_at += lasts;
        schedule_answer(ep, qp, now);
        if (uet->granted < uet->demand)
            want_credit(ep, qp, (uint32_t)(uet->demand / UET_CREDIT_UNIT) & 0xFFFFFF, now);
    }
}

/* --- data -------------------------------------------------------------------------------------- */

/* So far behind that whoever sent it could not have sent the last that came. */
static bool is_ancient(const struct qp *qp, uint64_t seq)
{
    return seq + 2 * ((uint64_t)qp->uet->got.mask + 1) < qp->expected;
}

static void take_data(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    struct uet *uet = qp->uet;
    uint64_t seq = uet_unwrap_as(ep, qp->expected, packet->psn);
    struct uet_answer answer = {
        .seq = seq,
        .entropy = packet->entropy,
        .marked = packet->marked,
        .again = packet->again,
    };
    bool known = seq < qp->expected;
    bool in_window = !known && seq <= qp->expected + uet->got.mask;
    known = known || (in_window && seqset_has(&uet->got, seq));
    if ((!known && !in_window) || is_ancient(qp, seq)) {
        ep->counters.rx_refused++;
        return;
    }
    struct ep_message *message = NULL;
    if (!packet->cut && !known) {
        if (packet->has_content && packet->key <= UINT32_MAX)
            message = responder_target(ep, qp, (uint32_t)packet->key, packet->offset, packet->size);
        if (!message || (packet->whole != UET_UNTOLD && packet->whole != message->size) ||
            !responder_place(ep, message, packet->offset, packet->data, packet->size)) {
            ep->counters.rx_refused++;
            return;
        }
    }
    ep->counters.np_ecn_marked_packets += packet->marked;
    uet->received += packet->was;
    if (packet->spends && uet_spends(qp))
        want_credit(ep, qp, packet->credit, now);
    if (packet->cut && !known) {
        answer.kind = UET_SAY_NACK;
        answer.code = packet->cut_at_last_hop ? UET_NACK_TRIMMED_LAST_HOP : UET_NACK_TRIMMED;
        uet_owe(ep, qp, &answer, now);
        return;
    }
    if (known) {
        ep->counters.cut_packets_known += packet->cut;
        ep->counters.duplicate_request += !packet->cut;
        uet_owe(ep, qp, &answer, now);
        return;
    }
    ep->counters.out_of_sequence += seq != qp->expected;
    seqset_add(&uet->got, seq);
    if (uet->high <= seq)
        uet->high = seq + 1;
    for (; seqset_has(&uet->got, qp->expected); qp->expected++)
        seqset_remove(&uet->got, qp->expected);
    uet_owe(ep, qp, &answer, now);
    if (message->received == message->size)
        responder_received(ep, qp, message, now);
}

/* A probe is answered by what is known of the packet it names. */
static void take_probe(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    uint64_t seq = uet_unwrap_as(ep, qp->expected, packet->psn);
    if (seq > qp->expected + qp->uet->got.mask || is_ancient(qp, seq)) {
        ep->counters.rx_refused++;
        return;
    }
    struct uet_answer answer = {.seq = seq < qp->expected ? qp->expected - 1 : seq,
                                .to_probe = true,
                                .opaque = packet->opaque,
                                .entropy = packet->entropy};
    answer.marked = uet_is_of_way(answer.opaque) && packet->marked; /* what is asked about a tail is no traffic */
    uet_owe(ep, qp, &answer, now);
}

/* Whoever asks may not have heard of what was granted. */
static void take_request(struct ep *ep, struct qp *qp, uint32_t units, ns_t now)
{
    want_credit(ep, qp, units, now);
    qp->uet->owes_grant = true;
    schedule_answer(ep, qp, now);
}

/* --- taking apart ------------------------------------------------------------------------------ */

static bool crc_matches(const struct ep *ep, const uint8_t *ip, const struct uet_packet *packet, uint32_t length)
{
    uint32_t crc;
    memcpy(&crc, packet->pds + packet->bytes, sizeof crc);
    return crc == icrc_of(ip, packet->pds, packet->bytes, length, ep->format->port);
}

/* The counter of what is wrong with it, NULL if nothing is. */
static uint64_t *take_apart(struct ep *ep, const uint8_t *frame, uint32_t stored,
                            struct uet_packet *packet)
{
    const uint8_t *ip = frame + WIRE_IP_AT, *end = frame + stored;
    const uint8_t *udp = frame + udp_at(ep);
    uint32_t of_ip = (uint32_t)(udp - ip);
    uint32_t length = ip_length(ip), was = of_ip + be16_load(udp + 4);
    bool whole = ep->config.payload == EP_PAYLOAD_PATTERN;
    packet->pds = udp + WIRE_UDP;
    packet->cut = length < was;
    packet->was = WIRE_ETHERNET + was;
    if (end - ip > (ptrdiff_t)length)
        end = ip + length;
    else if ((whole || packet->cut) && end - ip < (ptrdiff_t)length)
        return &ep->counters.rx_malformed;
    uint32_t least = of_ip + WIRE_UDP + UET_PDS + WIRE_ICRC;
    if (was < least || length > was || end - packet->pds < UET_PDS)
        return &ep->counters.rx_malformed;
    packet->bytes = was - of_ip - WIRE_UDP - WIRE_ICRC;
    packet->there = (uint32_t)(end - packet->pds);
    if (packet->there > packet->bytes)
        packet->there = packet->bytes; /* the CRC is none of them */
    if (whole && !packet->cut && !crc_matches(ep, ip, packet, length))
        return &ep->counters.rx_icrc_errors;
    packet->marked = (ip_tos(ip) & 3) == 3;
    packet->cut_at_last_hop = packet->cut && ip_tos(ip) >> 2 == ep->config.last_hop_dscp;
    packet->entropy = (uint16_t)(be16_load(udp) - UET_FIRST_PORT);
    ep->format->read(packet);
    return NULL;
}

static void take_known(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    qp->uet->heard = packet->entropy;
    if (packet->kind == UET_IS_DATA)
        take_data(ep, qp, packet, now);
    else if (packet->cut)
        ep->counters.rx_refused++; /* an answer: nobody has reason to cut it */
    else if (packet->kind == UET_IS_ACK)
        uet_acked(ep, qp, packet, now);
    else if (packet->kind == UET_IS_NACK)
        uet_nacked(ep, qp, packet, now);
    else if (packet->kind == UET_IS_PROBE)
        take_probe(ep, qp, packet, now);
    else if (packet->kind == UET_IS_CREDIT)
        uet_credited(ep, qp, packet, now);
    else if (packet->kind == UET_IS_CREDIT_REQ && uet_spends(qp))
        take_request(ep, qp, packet->credit, now);
    else if (packet->kind == UET_IS_NOTHING)
        ep->counters.rx_malformed++;
    else
        ep->counters.rx_refused++;
}

void uet_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now)
{
    struct uet_packet packet = {0};
    uint64_t *wrong = take_apart(ep, frame, stored, &packet);
    if (wrong) {
        ++*wrong;
        return;
    }
    struct qp *qp = ep_find_qp(ep, packet.to);
    ep->counters.rx_cut_packets += packet.cut;
    if (!qp || qp->error || !qp_is_from_plane(ep, qp, frame + WIRE_IP_AT) ||
        (packet.from != qp->remote && packet.from != UET_UNTOLD))
        ep->counters.rx_no_queue_pair++;
    else
        take_known(ep, qp, &packet, now);
}
