/* UET's receiving side: packets are placed where they say, and answered one by one.
 *
 * An answer names the packet it is for, and so the way that one took; it also tells all that came
 * before the first gap, and of 64 packets beyond it which have come. A cut packet is answered by a
 * NACK unless its whole came before. What a stranger sends, or a peer about what nobody posted, changes
 * nothing and is counted.
 *
 * With RUDI a target needs none of that: it would place a packet again as well. What is noted of packets
 * that came is what a program knows that waits for its message to be whole.
 */
#include "uet.h"

#include <stdlib.h>

#include "icrc.h"

/* --- data -------------------------------------------------------------------------------------- */

/* So far behind that whoever sent it could not have sent the last that came. */
static bool is_ancient(const struct qp *qp, uint64_t seq)
{
    return seq + 2 * ((uint64_t)qp->uet->got.mask + 1) < qp->expected;
}

/* Put what a packet has in its place; its message, or NULL if that may not be. */
static struct ep_message *place(struct ep *ep, struct qp *qp, const struct uet_packet *packet)
{
    struct ep_message *message = NULL;
    if (packet->has_content && packet->key <= UINT32_MAX)
        message = responder_target(ep, qp, (uint32_t)packet->key, packet->offset, packet->size);
    if (!message || (packet->whole != UET_UNTOLD && packet->whole != message->size) ||
        !responder_place(ep, message, packet->offset, packet->data, packet->size)) {
        ep->counters.rx_refused++;
        return NULL;
    }
    return message;
}

/* UUD: whatever comes is taken, and counts, as often as it comes; of what was cut nothing is left. */
static void take_datagram(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    struct ep_message *message = packet->cut ? NULL : place(ep, qp, packet);
    ep->counters.np_ecn_marked_packets += packet->marked;
    if (message && message->received >= message->size)
        responder_received(ep, qp, message, now);
}

/* ROD: what comes before its turn is not taken, cut or not, and each is told of. */
static void refuse_early(struct ep *ep, struct qp *qp, struct uet_answer *answer, ns_t now)
{
    ep->counters.out_of_sequence++;
    answer->kind = UET_SAY_NACK;
    answer->code = UET_NACK_ROD_OOO;
    uet_owe(ep, qp, answer, now);
}

static void take_data(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now)
{
    struct uet *uet = qp->uet;
    if (uet_delivers(ep, EP_UUD)) {
        take_datagram(ep, qp, packet, now);
        return;
    }
    uint64_t seq = uet_unwrap_as(ep, qp->expected, packet->psn);
    struct uet_answer answer = {
        .seq = seq,
        .entropy = packet->entropy,
        .stamp = packet->stamp,
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
    bool early = uet_delivers(ep, EP_ROD) && seq > qp->expected;
    struct ep_message *message = NULL;
    if (!packet->cut && !known && !early && !(message = place(ep, qp, packet)))
        return;
    ep->counters.np_ecn_marked_packets += packet->marked;
    uet->received += packet->was;
    if (packet->spends && uet_spends(qp))
        uet_want_credit(ep, qp, packet->credit, now);
    if (uet->reverse)
        mrc_seek_way(ep, qp, now);
    if (early) {
        refuse_early(ep, qp, &answer, now);
        return;
    }
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
                                .stamp = packet->stamp,
                                .entropy = packet->entropy};
    answer.marked = uet_is_of_way(answer.opaque) && packet->marked; /* what is asked about a tail is no traffic */
    uet_owe(ep, qp, &answer, now);
}

/* Whoever asks may not have heard of what was granted. */
static void take_request(struct ep *ep, struct qp *qp, uint32_t units, ns_t now)
{
    uet_want_credit(ep, qp, units, now);
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
    uint32_t header = ep->tss ? tss_header_bytes(ep->config.ports > 1) : 0;
    uint32_t closing = ep->tss ? TSS_ICV : WIRE_ICRC;
    packet->pds = udp + WIRE_UDP + header;
    packet->cut = length < was;
    packet->was = WIRE_ETHERNET + was;
    if (end - ip > (ptrdiff_t)length)
        end = ip + length;
    else if ((whole || packet->cut) && end - ip < (ptrdiff_t)length)
        return &ep->counters.rx_malformed;
    uint32_t least = of_ip + WIRE_UDP + header + ep->format->least + closing;
    if (was < least || length > was || end - packet->pds < (ptrdiff_t)ep->format->least)
        return &ep->counters.rx_malformed;
    packet->bytes = was - of_ip - WIRE_UDP - header - closing;
    packet->there = (uint32_t)(end - packet->pds);
    if (packet->there > packet->bytes)
        packet->there = packet->bytes; /* the CRC is none of them */
    if (ep->tss) {
        uint64_t *wrong = tss_open(ep, ip, packet);
        if (wrong)
            return wrong;
    } else if (whole && !packet->cut && !crc_matches(ep, ip, packet, length))
        return &ep->counters.rx_icrc_errors;
    packet->marked = (ip_tos(ip) & 3) == 3;
    packet->cut_at_last_hop = packet->cut && ip_tos(ip) >> 2 == ep->config.last_hop_dscp;
    packet->entropy = (uint16_t)(be16_load(udp) - UET_FIRST_PORT);
    ep->format->read(packet);
    packet->spends &= !ep->tss || !packet->cut; /* nobody vouches for what a switch has cut */
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
    ep->counters.rx_cut_packets += packet.cut;
    if (packet.kind == UET_IS_EP_REQ || packet.kind == UET_IS_EP_RSP) {
        mrc_take(ep, frame + WIRE_IP_AT, &packet, now);
        return;
    }
    struct qp *qp = qp_find(ep, packet.to);
    if (!qp || qp->error || !uet_is_from_peer(ep, qp, frame + WIRE_IP_AT) ||
        !tss_is_from_peer(ep, qp, &packet) ||
        (packet.from != qp->remote && packet.from != UET_UNTOLD))
        ep->counters.rx_no_queue_pair++;
    else
        take_known(ep, qp, &packet, now);
}
