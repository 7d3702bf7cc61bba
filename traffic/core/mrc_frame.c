/* From templates to MRC frames, and back. */
#include "mrc_wire.h"
#include "pattern.h"
#include "uet.h"

static uint8_t *store_bth(uint8_t *at, uint8_t opcode, uint32_t pad, uint32_t to, uint8_t bits,
                          uint64_t seq)
{
    at[0] = opcode;
    at[1] = (uint8_t)(pad << 4);
    be16_store(at + 2, UINT16_MAX); /* no partition */
    at[4] = 0;
    be24_store(at + 5, to);
    at[8] = bits;
    be24_store(at + 9, (uint32_t)seq & PSN_MASK);
    return at + WIRE_BTH;
}

/* Begin something that answers or asks; returns what is behind its BTH, zeroed. */
static uint8_t *begin(struct ep *ep, const struct qp *qp, uint8_t opcode, uint32_t to,
                      const struct uet_answer *answer, uint32_t bytes)
{
    uint8_t *at = uet_begin(ep, qp, qp->common->control, answer->way);
    at = store_bth(at, opcode, 0, to, answer->again ? MRC_RETX : 0, answer->seq);
    memset(at, 0, bytes);
    return at;
}

static void store_stamp(uint8_t *at, uint16_t stamp)
{
    be16_store(at, stamp);
    be16_store(at + 2, MRC_STAMP_KIND);
}

static void store_ids(uint8_t *at, const struct qp *qp)
{
    be16_store(at, (uint16_t)qp->number);
    be16_store(at + 2, (uint16_t)qp->remote);
}

static void store_entropy(uint8_t *at, const struct ep *ep, uint16_t entropy)
{
    uint16_t port = (uint16_t)(UET_FIRST_PORT + entropy);
    be16_store(at, port);
    be16_store(at + 2, ep->config.ip == 6 ? port : 0);
}

static uint8_t opcode_of(bool starts, bool ends)
{
    if (ends)
        return starts ? MRC_WRITE_ONLY_IMM : MRC_WRITE_LAST_IMM;
    return starts ? MRC_WRITE_FIRST : MRC_WRITE_MIDDLE;
}

static uint32_t data(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                     uint32_t *stored)
{
    const struct ep_message *message = segment->message;
    bool starts = segment->offset == 0, ends = segment->offset + segment->bytes == message->size;
    uint8_t *bth = uet_begin(ep, qp, qp->common->data, segment->entropy);
    uint32_t pad = -segment->bytes & 3;
    bool stamped = ep->config.timestamps;
    uint8_t bits = (uint8_t)(MRC_ACK_REQUEST | (segment->again ? MRC_RETX : 0) |
                             (stamped ? MRC_STAMPED : 0));
    uint8_t *at = store_bth(bth, opcode_of(starts, ends), pad, qp->remote, bits, segment->seq);
    be16_store(at, (uint16_t)message->number);
    be16_store(at + 2, (uint16_t)message->number);
    at += MRC_METH;
    if (stamped) {
        store_stamp(at, segment->stamp);
        at += MRC_TSETH;
    }
    be64_store(at, segment->offset);
    be32_store(at + 8, message->id);
    be32_store(at + 12, message->size);
    at += WIRE_RETH;
    if (ends) {
        be32_store(at, message->id);
        at += WIRE_IMMDT;
    }
    if (ep->config.payload == EP_PAYLOAD_NONE)
        return frame_close(ep, bth, at, segment->bytes + pad, stored);
    pattern_fill(at, message->id, segment->offset, segment->bytes);
    memset(at + segment->bytes, 0, pad);
    return frame_close(ep, bth, at + segment->bytes + pad, 0, stored);
}

static uint32_t ack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                    uint32_t *stored)
{
    uint8_t *seth = begin(ep, qp, MRC_SACK, qp->remote, answer, MRC_SETH);
    uint64_t cack = qp->expected - 1, from = uet_map_begin(qp, answer);
    be16_store(seth, (uint16_t)((answer->marked ? MRC_SKIP_ONCE : 0) |
                                (answer->to_probe ? MRC_PROBE_ANSWER : 0)));
    be16_store(seth + 2, answer->to_probe ? answer->opaque : (uint16_t)(answer->seq - cack));
    store_entropy(seth + 4, ep, answer->entropy);
    store_ids(seth + 8, qp);
    be24_store(seth + 13, (uint32_t)cack & PSN_MASK);
    seth[16] = UET_CC_NSCC << 4;
    be16_store(seth + 18, (uint16_t)(from - cack));
    be64_store(seth + 20, uet_map_from(qp->uet, from));
    be16_store(seth + 28, answer->stamp);
    be16_store(seth + 30, uet_early(qp) & 0x7FFF);
    be24_store(seth + 33, (uint32_t)(qp->uet->received / UET_CREDIT_UNIT) & 0xFFFFFF);
    return frame_close(ep, seth - WIRE_BTH, seth + MRC_SETH, 0, stored);
}

static uint32_t nack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                     uint32_t *stored)
{
    uint8_t *neth = begin(ep, qp, MRC_NACK, qp->remote, answer, MRC_NETH);
    be16_store(neth, answer->marked ? MRC_SKIP_ONCE : 0);
    neth[2] = answer->code;
    store_entropy(neth + 4, ep, answer->entropy);
    store_ids(neth + 8, qp);
    be24_store(neth + 13, (uint32_t)answer->seq & PSN_MASK);
    neth[16] = MRC_CC_NACK << 4;
    be16_store(neth + 18, answer->stamp);
    return frame_close(ep, neth - WIRE_BTH, neth + MRC_NETH, 0, stored);
}

/* Of what UET controls MRC has probes: of a way, or of what has come. */
static uint32_t control(struct ep *ep, const struct qp *qp, unsigned what,
                        const struct uet_answer *answer, uint32_t payload, uint32_t *stored)
{
    (void)what, (void)payload;
    uint8_t *peth = begin(ep, qp, MRC_PROBE_REQ, qp->remote, answer, MRC_PETH);
    be16_store(peth + 4, answer->opaque);
    store_ids(peth + 8, qp);
    if (ep->config.timestamps)
        store_stamp(peth + 12, answer->stamp);
    return frame_close(ep, peth - WIRE_BTH, peth + MRC_PETH, 0, stored);
}

static uint32_t node(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                     uint32_t *stored)
{
    bool asks = answer->kind == UET_SAY_EP_REQ;
    uint32_t bytes = asks ? MRC_ERTH : MRC_EETH;
    uint8_t *eth = begin(ep, qp, asks ? MRC_EP_REQ : MRC_EP_RSP, MRC_NODE, answer, bytes);
    if (asks) {
        eth[1] = answer->code;
        be32_store(eth + 4, answer->opaque);
        store_stamp(eth + 12, answer->stamp);
    } else {
        eth[1] = (uint8_t)(answer->code << 2);
        be16_store(eth + 28, answer->stamp);
    }
    return frame_close(ep, eth - WIRE_BTH, eth + bytes, 0, stored);
}

/* --- and back ---------------------------------------------------------------------------------- */

static void read_data(struct uet_packet *packet, unsigned opcode)
{
    uint32_t before = WIRE_BTH + MRC_METH;
    const uint8_t *bth = packet->pds;
    bool has_imm = opcode == MRC_WRITE_LAST_IMM || opcode == MRC_WRITE_ONLY_IMM;
    bool starts = opcode != MRC_WRITE_MIDDLE && opcode != MRC_WRITE_LAST &&
                  opcode != MRC_WRITE_LAST_IMM;
    uint32_t pad = bth[1] >> 4 & 3;
    packet->kind = UET_IS_DATA;
    if (bth[8] & MRC_STAMPED) {
        if (packet->there >= before + MRC_TSETH)
            packet->stamp = be16_load(bth + before);
        before += MRC_TSETH;
    }
    const uint8_t *reth = bth + before;
    uint32_t headers = before + WIRE_RETH + (has_imm ? WIRE_IMMDT : 0);
    if (packet->bytes < headers + pad || packet->there < headers)
        return;
    packet->offset = be64_load(reth);
    packet->key = be32_load(reth + 8);
    packet->whole = be32_load(reth + 12);
    packet->size = packet->bytes - headers - pad;
    packet->data = bth + headers;
    packet->has_content = (packet->offset == 0) == starts &&
                          (!has_imm || be32_load(reth + WIRE_RETH) == packet->key);
}

/* What answers says of the packet that it answers. */
static void read_answer(struct uet_packet *packet, const uint8_t *eth)
{
    unsigned flags = be16_load(eth) & 0x7F;
    packet->told_marked = flags & MRC_SKIP_ONCE;
    packet->told_bad = flags & MRC_ALWAYS_SKIP;
    packet->about = (uint16_t)(be16_load(eth + 4) - UET_FIRST_PORT);
    packet->from = be16_load(eth + 8);
    packet->psn = be24_load(eth + 13);
}

static void read_ack(struct uet_packet *packet, const uint8_t *seth)
{
    packet->kind = UET_IS_ACK;
    read_answer(packet, seth);
    packet->to_probe = be16_load(seth) & MRC_PROBE_ANSWER;
    packet->opaque = be16_load(seth + 2);
    packet->ahead = packet->to_probe ? 0 : (int16_t)packet->opaque;
    packet->map_ahead = be16_load(seth + 18);
    packet->map = be64_load(seth + 20);
    packet->stamp = be16_load(seth + 28);
}

static void read_nack(struct uet_packet *packet, const uint8_t *neth)
{
    packet->kind = UET_IS_NACK;
    read_answer(packet, neth);
    packet->code = neth[2];
}

static void read_probe(struct uet_packet *packet, const uint8_t *peth)
{
    packet->kind = UET_IS_PROBE;
    packet->opaque = be16_load(peth + 4);
    packet->from = be16_load(peth + 8);
    packet->stamp = be16_load(peth + 12);
}

static void read_node(struct uet_packet *packet, const uint8_t *eth, bool asks)
{
    packet->kind = asks ? UET_IS_EP_REQ : UET_IS_EP_RSP;
    packet->psn &= UINT16_MAX;
    packet->code = asks ? eth[1] & 3 : eth[1] >> 2 & 3;
    packet->stamp = be16_load(eth + (asks ? 12 : 28));
    packet->links = asks ? be32_load(eth + 4) : 0;
}

static void read(struct uet_packet *packet)
{
    const uint8_t *bth = packet->pds, *eth = bth + WIRE_BTH;
    uint32_t there = packet->there - WIRE_BTH;
    unsigned opcode = bth[0];
    packet->to = be24_load(bth + 5);
    packet->from = packet->whole = UET_UNTOLD;
    packet->psn = be24_load(bth + 9);
    packet->again = bth[8] & MRC_RETX;
    packet->about = packet->entropy;
    if (opcode >= MRC_WRITE_FIRST && opcode <= MRC_WRITE_ONLY_IMM)
        read_data(packet, opcode);
    else if (opcode == MRC_SACK && there >= MRC_SETH)
        read_ack(packet, eth);
    else if (opcode == MRC_NACK && there >= MRC_NETH)
        read_nack(packet, eth);
    else if (opcode == MRC_PROBE_REQ && there >= MRC_PETH)
        read_probe(packet, eth);
    else if (opcode == MRC_EP_REQ && there >= MRC_ERTH)
        read_node(packet, eth, true);
    else if (opcode == MRC_EP_RSP && there >= MRC_EETH)
        read_node(packet, eth, false);
}

const struct uet_format MRC_FORMAT = {
    ROCE_PORT, WIRE_BTH + MRC_METH + WIRE_RETH, WIRE_BTH, PSN_MASK, data, ack, nack, control, node,
    read,
};
