/* From templates to frames: lengths, sequence numbers, opcodes, payload, checksums. */
#include "pattern.h"
#include "qp.h"

#include "icrc.h"
#include "tss.h"

static void stamp_bth(uint8_t *bth, const struct qp *qp, uint8_t opcode, uint32_t pad,
                      bool ack_request, uint64_t seq)
{
    bth[0] = opcode;
    bth[1] = (uint8_t)((bth[1] & ~0x30) | pad << 4);
    be24_store(bth + 5, qp->remote);
    bth[8] = ack_request ? BTH_ACK_REQUEST : 0;
    be24_store(bth + 9, (uint32_t)seq & PSN_MASK);
}

void close_ipv4(uint8_t *ip, uint32_t length)
{
    uint32_t sum = 0;
    be16_store(ip + 2, (uint16_t)length);
    be16_store(ip + 10, 0);
    for (int i = 0; i < WIRE_IPV4; i += 2)
        sum += be16_load(ip + i);
    sum = (sum & 0xFFFF) + (sum >> 16);
    be16_store(ip + 10, (uint16_t)~((sum & 0xFFFF) + (sum >> 16)));
}

uint32_t frame_close(struct ep *ep, uint8_t *bth, uint8_t *end, uint32_t behind, uint32_t *stored)
{
    uint8_t *ip = ep->frame + WIRE_IP_AT, *udp = ep->frame + udp_at(ep);
    uint32_t closing = ep->tss ? TSS_ICV : WIRE_ICRC;
    uint32_t length = (uint32_t)(end - ip) + behind + closing;
    uint32_t telemetry = (uint32_t)(bth - udp) - WIRE_UDP;

    if (ip_is_v6(ip))
        be16_store(ip + 4, (uint16_t)(length - WIRE_IPV6));
    else
        close_ipv4(ip, length);
    be16_store(udp + 4, (uint16_t)(length - (uint32_t)(udp - ip)));

    if (ep->in_front)
        be16_store(ip - WIRE_IPV6 + 4, (uint16_t)length);
    *stored = (uint32_t)(end - ep->frame) + ep->in_front;
    if (ep->config.payload == EP_PAYLOAD_PATTERN && ep->tss) {
        tss_seal(ep, bth, end);
        *stored += TSS_ICV;
    } else if (ep->config.payload == EP_PAYLOAD_PATTERN) {
        uint16_t port = telemetry ? be16_load(udp + WIRE_UDP + 2) : be16_load(udp + 2);
        uint32_t icrc = icrc_of(ip, bth, (size_t)(end - bth), length - telemetry, port);
        memcpy(end, &icrc, sizeof icrc); /* little-endian, as the hosts we run on */
        *stored += WIRE_ICRC;
    }
    return WIRE_ETHERNET + length + ep->in_front;
}

/* Put a CSIG tag between Ethernet's addresses and type, if the flow is to hear of that way; returns
 * what that adds to the frame. */
static uint32_t put_tag(struct ep *ep, const struct qp *qp, uint64_t seq, uint32_t *stored)
{
    uint32_t bytes = cc_hears(qp->cc, CC_CSIG) ? ep->config.csig : 0;
    if (!bytes)
        return 0;
    memcpy(ep->frame - bytes, ep->frame, WIRE_TYPE_AT);
    csig_ask(ep->frame - bytes + WIRE_TYPE_AT, bytes, qp->out->cc->signals[seq & 1]);
    ep->in_front = bytes;
    *stored += bytes;
    return bytes;
}

uint32_t frame_data(struct ep *ep, const struct qp *qp, const struct segment *segment,
                    uint32_t *stored)
{
    uint8_t *bth = ep->frame + qp->common->data_bytes - WIRE_BTH, *at = bth + WIRE_BTH;
    uint32_t pad = -segment->bytes & 3;

    ep->in_front = 0;
    memcpy(ep->frame, qp->common->data, qp->common->data_bytes);
    stamp_flow(ep->frame, &qp->flow);
    stamp_bth(bth, qp, segment->opcode, pad, segment->ack_request, segment->seq);
    if (opcode_starts(segment->opcode)) {
        be64_store(at, segment->offset);
        be32_store(at + 8, segment->message->id);
        be32_store(at + 12, segment->length);
        at += WIRE_RETH;
    }
    if (opcode_has_imm(segment->opcode)) {
        be32_store(at, segment->message->id);
        at += WIRE_IMMDT;
    }
    uint32_t left_out = ep->config.payload == EP_PAYLOAD_NONE ? segment->bytes + pad : 0;
    if (ep->config.payload != EP_PAYLOAD_NONE) {
        pattern_fill(at, segment->message->id, segment->offset, segment->bytes);
        memset(at + segment->bytes, 0, pad);
        at += segment->bytes + pad;
    }
    uint32_t wire = frame_close(ep, bth, at, left_out, stored);
    return wire + put_tag(ep, qp, segment->seq, stored);
}

/* Start a control frame, with the INT header on board that is to be echoed; returns its BTH. */
static uint8_t *control_frame(struct ep *ep, const struct qp *qp, struct echo *echo)
{
    uint8_t *bth = ep->frame + bth_at(ep);
    ep->in_front = 0;
    memcpy(ep->frame, qp->common->control, bth_at(ep));
    stamp_flow(ep->frame, &qp->flow);
    if (echo && echo->bytes) {
        uint8_t *udp = ep->frame + udp_at(ep);
        memcpy(bth, echo->header, echo->bytes);
        memcpy(bth + 2, udp + 2, 2); /* the shim keeps the port that INT replaces */
        be16_store(udp + 2, ep->config.int_port);
        bth += echo->bytes;
        echo->bytes = 0;
    }
    memcpy(bth, qp->common->control + bth_at(ep), WIRE_BTH);
    return bth;
}

/* 64 bits of the packets that came early, from one on. */
static uint64_t map_word(const struct selective *has, uint64_t from)
{
    uint32_t words = (has->early.mask + 1) / 64, at = (uint32_t)from & has->early.mask;
    uint64_t bits = has->early.words[at / 64] >> at % 64;
    if (at % 64)
        bits |= has->early.words[(at / 64 + 1) % words] << (64 - at % 64);
    if (has->high - from < 64)
        bits &= ((uint64_t)1 << (has->high - from)) - 1;
    return bits;
}

/* Write down what came early, of more than a map holds the part about what came last; returns the
 * bytes that takes. */
static uint32_t stamp_map(uint8_t *at, const struct qp *qp)
{
    enum { MAX = 64 * WIRE_SACK_WORDS };
    struct selective *has = qp->selective;
    if (!has || (has->high <= qp->expected && !has->twice))
        return 0;
    uint64_t from = qp->expected;
    if (has->high > from + MAX && has->recent >= from + MAX)
        from = has->recent + 1 - MAX;
    uint32_t words = 0;
    for (; words < WIRE_SACK_WORDS && from + 64 * words < has->high; words++)
        be64_store(at + WIRE_SACK + 8 * words, map_word(has, from + 64 * words));
    be24_store(at, (uint32_t)from & PSN_MASK);
    at[3] = (uint8_t)(words | (has->twice ? WIRE_SACK_TWICE : 0));
    has->twice = false;
    return WIRE_SACK + 8 * words;
}

/* Let an answer carry the tag back that came last; returns the bytes that takes. */
static uint32_t reflect(uint8_t *bth, uint8_t *at, struct receiving *in)
{
    uint32_t bytes = in->csig_bytes;
    if (!bytes)
        return 0;
    bth[4] |= BTH_REFLECTS;
    memcpy(at, in->csig, bytes);
    in->csig_bytes = 0;
    return bytes;
}

uint32_t frame_ack(struct ep *ep, const struct qp *qp, uint64_t seq, uint8_t syndrome,
                   uint32_t *stored)
{
    uint8_t *bth = control_frame(ep, qp, qp->in->echo), *end = bth + WIRE_BTH + WIRE_AETH;
    if (ep->config.acks == EP_ACKS_DATA)
        ip_set_tos(ep->frame + WIRE_IP_AT, ip_tos(qp->common->data + WIRE_IP_AT));
    stamp_bth(bth, qp, BTH_ACK, 0, false, seq);
    if (qp->in->marked)
        bth[4] |= BTH_BECN;
    be32_store(bth + WIRE_BTH, (uint32_t)syndrome << 24 | (qp->msn & PSN_MASK));
    end += reflect(bth, end, qp->in);
    end += stamp_map(end, qp);
    return frame_close(ep, bth, end, 0, stored);
}

uint32_t frame_cnp(struct ep *ep, const struct qp *qp, uint32_t *stored)
{
    uint8_t *bth = control_frame(ep, qp, NULL);
    stamp_bth(bth, qp, BTH_CNP, 0, false, 0);
    bth[4] |= BTH_BECN;
    memset(bth + WIRE_BTH, 0, WIRE_CNP_PAD);
    return frame_close(ep, bth, bth + WIRE_BTH + WIRE_CNP_PAD, 0, stored);
}

uint32_t frame_pause(struct ep *ep, uint8_t classes, uint16_t quanta)
{
    static const uint8_t addresses[] = {0x01, 0x80, 0xC2, 0, 0, 0x01, /* the next bridge */
                                        0x02, 0,    0,    0, 0, 0};   /* an adapter */
    ep->in_front = 0;
    memset(ep->frame, 0, WIRE_PFC);
    memcpy(ep->frame, addresses, sizeof addresses);
    be16_store(ep->frame + 12, ETHERTYPE_MAC_CONTROL);
    be16_store(ep->frame + 14, PFC_OPCODE);
    be16_store(ep->frame + 16, classes);
    for (int priority = 0; priority < 8; priority++)
        be16_store(ep->frame + 18 + 2 * priority, classes >> priority & 1 ? quanta : 0);
    return WIRE_PFC;
}
