/* From templates to UET frames. */
#include "pattern.h"
#include "uet.h"

/* Let a frame be of another plane than the first. */
static void move_to(struct ep *ep, const struct qp *qp, uint8_t plane)
{
    enum { MACS = 12 };
    const uint8_t *ends = qp->uet->planes + (plane - 1) * ends_bytes(ep);
    uint8_t *ip = ep->frame + WIRE_IP_AT;
    memcpy(ep->frame, ends, MACS);
    memcpy(ip + ip_source_at(ip), ends + MACS, 2 * ip_address_bytes(ip));
}

/* Begin a frame from a template, of which only Ethernet, IP and UDP count; returns its PDS. */
static uint8_t *begin(struct ep *ep, const struct qp *qp, const uint8_t *template, uint16_t entropy)
{
    uint8_t *ip = ep->frame + WIRE_IP_AT, *udp = ep->frame + udp_at(ep), plane = uet_port(ep, entropy);
    uint16_t port = (uint16_t)(UET_FIRST_PORT + entropy);
    memcpy(ep->frame, template, bth_at(ep));
    if (plane)
        move_to(ep, qp, plane);
    if (ip_is_v6(ip))
        be16_store(ip + 2, port); /* the flow label */
    be16_store(udp, port);
    be16_store(udp + 2, UET_PORT);
    return udp + WIRE_UDP;
}

static void store_ids(uint8_t *at, const struct qp *qp)
{
    be16_store(at, (uint16_t)qp->number);
    be16_store(at + 2, (uint16_t)qp->remote);
}

static uint8_t *store_ses(uint8_t *at, const struct uet_segment *segment)
{
    const struct ep_message *message = segment->message;
    bool starts = segment->offset == 0, ends = segment->offset + segment->bytes == message->size;
    memset(at, 0, UET_SES);
    at[0] = UET_SES_WRITE;
    at[1] = (uint8_t)(UET_SES_REL | (starts ? UET_SES_SOM : 0) | (ends ? UET_SES_EOM : 0));
    be16_store(at + 2, (uint16_t)message->id);
    be64_store(at + 24, message->id);
    if (!starts) {
        be32_store(at + 32, segment->bytes);
        be32_store(at + 36, segment->offset);
    }
    be32_store(at + 40, message->size);
    return at + UET_SES;
}

uint32_t uet_frame_data(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                        uint32_t *stored)
{
    uint8_t *pds = begin(ep, qp, qp->data, segment->entropy);
    uint8_t *at = pds + UET_PDS;
    bool asks = qp->cc == EP_CC_RCCC;
    int64_t clear = (int64_t)qp->una - 1 - (int64_t)segment->seq;
    uet_store_prologue(pds, asks ? UET_RUD_CC_REQ : UET_RUD_REQ, UET_NEXT_STD,
                       UET_ACK_REQUEST | (segment->again ? UET_RETX : 0));
    be16_store(pds + 2, (uint16_t)(clear < INT16_MIN ? INT16_MIN : clear));
    be32_store(pds + 4, (uint32_t)segment->seq);
    store_ids(pds + 8, qp);
    if (asks) {
        *at = 0;
        be24_store(at + 1, segment->credit_target);
        at += UET_PDS_CREDIT;
    }
    at = store_ses(at, segment);
    if (ep->config.payload == EP_PAYLOAD_NONE)
        return frame_close(ep, pds, at, segment->bytes, stored);
    pattern_fill(at, segment->message->id, segment->offset, segment->bytes);
    return frame_close(ep, pds, at + segment->bytes, 0, stored);
}

/* 64 bits of what has arrived, from one packet on. */
static uint64_t map_from(const struct uet *uet, uint64_t from)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < UET_SACK_BITS && from + i < uet->high; i++)
        bits |= (uint64_t)seqset_has(&uet->got, from + i) << i;
    return bits;
}

uint32_t uet_frame_ack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                       uint32_t *stored)
{
    const struct uet *uet = qp->uet;
    uint8_t *pds = begin(ep, qp, qp->control_header, answer->way);
    uint64_t cack = qp->expected - 1, from = qp->expected;
    if (answer->seq >= from + UET_SACK_BITS)
        from = answer->seq + 1 - UET_SACK_BITS;
    uint32_t early = uet->high > qp->expected ? (uint32_t)(uet->high - qp->expected) : 0;
    uet_store_prologue(pds, UET_ACK_CC_TYPE, UET_NEXT_NONE,
                       (answer->marked ? UET_MARKED : 0) | (answer->again ? UET_RETX : 0) |
                           (answer->to_probe ? UET_PROBE_ANSWER : 0));
    be16_store(pds + 2, answer->to_probe ? answer->opaque : (uint16_t)(answer->seq - cack));
    be32_store(pds + 4, (uint32_t)cack);
    store_ids(pds + 8, qp);
    pds[12] = (uint8_t)((qp->cc == EP_CC_RCCC ? UET_CC_CREDIT : UET_CC_NSCC) << 4);
    pds[13] = 0;
    be16_store(pds + 14, (uint16_t)(from - cack));
    be64_store(pds + 16, map_from(uet, from));
    memset(pds + 24, 0, 8);
    if (qp->cc == EP_CC_RCCC)
        be24_store(pds + 24, (uint32_t)(uet->granted / UET_CREDIT_UNIT) & 0xFFFFFF);
    else
        be24_store(pds + 27, (uint32_t)(uet->received / UET_CREDIT_UNIT) & 0xFFFFFF);
    be16_store(pds + 30, (uint16_t)(early < UINT16_MAX ? early : UINT16_MAX));
    return frame_close(ep, pds, pds + UET_ACK_CC, 0, stored);
}

uint32_t uet_frame_nack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                        uint32_t *stored)
{
    uint8_t *pds = begin(ep, qp, qp->control_header, answer->way);
    uet_store_prologue(pds, UET_NACK_TYPE, UET_NEXT_NONE,
                       (answer->marked ? UET_MARKED : 0) | (answer->again ? UET_RETX : 0));
    pds[2] = answer->code;
    pds[3] = 0;
    be32_store(pds + 4, (uint32_t)answer->seq);
    store_ids(pds + 8, qp);
    be32_store(pds + 12, (uint32_t)(qp->uet->high - 1));
    return frame_close(ep, pds, pds + UET_NACK, 0, stored);
}

uint32_t uet_frame_control(struct ep *ep, const struct qp *qp, unsigned what,
                           const struct uet_answer *answer, uint32_t payload, uint32_t *stored)
{
    uint8_t *pds = begin(ep, qp, qp->control_header, answer->way);
    uet_store_prologue(pds, UET_CTRL, what, 0);
    be16_store(pds + 2, answer->opaque);
    be32_store(pds + 4, (uint32_t)answer->seq);
    store_ids(pds + 8, qp);
    be32_store(pds + 12, payload);
    return frame_close(ep, pds, pds + UET_CONTROL, 0, stored);
}
