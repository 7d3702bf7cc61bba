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

bool uet_is_from_peer(const struct ep *ep, const struct qp *qp, const uint8_t *ip)
{
    enum { MACS = 12 };
    uint32_t source = ip_source_at(ip), bytes = ip_address_bytes(ip);
    if (qp_is_from_peer(qp, ip))
        return true;
    for (uint32_t plane = 1; plane < ep->config.ports; plane++) {
        const uint8_t *ours = qp->uet->planes + (plane - 1) * ends_bytes(ep) + MACS;
        if (!memcmp(ip + source, ours + bytes, bytes) && !memcmp(ip + source + bytes, ours, bytes))
            return true;
    }
    return false;
}

/* Where a queue pair's packets are carried by an entropy and a plane; NULL: nowhere. The plane is not the
 * entropy's own if that has no link. */
static const uint8_t *list_of(const struct ep *ep, const struct qp *qp, uint16_t entropy, uint8_t plane)
{
    if (!qp->uet->lists || entropy >= ep->config.entropies || plane != uet_plane(ep, entropy))
        return NULL;
    const uint8_t *list = qp->uet->lists + (size_t)entropy * WIRE_IPV6_ADDRESS;
    return list[0] ? list : NULL;
}

/* Put a carrier of micro-segments in front, with the packet's own class, mark, flow label and source. */
static void carry(struct ep *ep, const uint8_t *list)
{
    uint8_t *ip = ep->frame + WIRE_IP_AT, *carrier = ip - WIRE_IPV6;
    memcpy(ep->frame - WIRE_IPV6, ep->frame, WIRE_ETHERNET);
    memcpy(carrier, ip, WIRE_IPV6 - WIRE_IPV6_ADDRESS);
    memcpy(carrier + WIRE_IPV6 - WIRE_IPV6_ADDRESS, list, WIRE_IPV6_ADDRESS);
    carrier[6] = IP_IPV6;
    ep->in_front = WIRE_IPV6;
}

uint8_t *uet_begin(struct ep *ep, const struct qp *qp, const uint8_t *template, uint16_t entropy)
{
    uint8_t *ip = ep->frame + WIRE_IP_AT, *udp = ep->frame + udp_at(ep), plane = uet_port(ep, qp, entropy);
    uint16_t port = (uint16_t)(UET_FIRST_PORT + entropy);
    memcpy(ep->frame, template, bth_at(ep));
    stamp_flow(ep->frame, &qp->flow);
    if (plane)
        move_to(ep, qp, plane);
    if (ip_is_v6(ip))
        be16_store(ip + 2, port); /* the flow label */
    be16_store(udp, port);
    be16_store(udp + 2, ep->format->port);
    ep->in_front = 0;
    const uint8_t *list = list_of(ep, qp, entropy, plane);
    if (template == qp->common->control && qp_answers_as_data(ep, qp))
        ip_set_tos(ip, ip_tos(qp->common->data + WIRE_IP_AT));
    if (list)
        carry(ep, list);
    return ep->tss ? tss_begin(ep, qp, udp + WIRE_UDP) : udp + WIRE_UDP;
}

static void store_ids(uint8_t *at, const struct qp *qp)
{
    be16_store(at, (uint16_t)qp->number);
    be16_store(at + 2, (uint16_t)qp->remote);
}

/* job: of a connection whose packets name it by nothing else; 0: they do. */
static uint8_t *store_ses(uint8_t *at, unsigned next, const struct uet_segment *segment, uint32_t job)
{
    const struct ep_message *message = segment->message;
    bool starts = segment->offset == 0, ends = segment->offset + segment->bytes == message->size;
    uint32_t length = uet_ses_bytes(next);
    memset(at, 0, length);
    at[0] = UET_SES_WRITE;
    at[1] = (uint8_t)(UET_SES_REL | (starts ? UET_SES_SOM : 0) | (ends ? UET_SES_EOM : 0));
    be16_store(at + 2, (uint16_t)(next == UET_NEXT_STD ? message->id : message->size));
    be24_store(at + 5, job);
    if (next == UET_NEXT_SMALL)
        be64_store(at + 12, (uint64_t)message->id << 32);
    else
        be64_store(at + 24, message->id);
    if (next != UET_NEXT_STD)
        return at + length;
    if (!starts) {
        be32_store(at + 32, segment->bytes);
        be32_store(at + 36, segment->offset);
    }
    be32_store(at + 40, message->size);
    return at + length;
}

static uint32_t close_data(struct ep *ep, uint8_t *pds, uint8_t *at,
                           const struct uet_segment *segment, uint32_t *stored)
{
    if (ep->config.payload == EP_PAYLOAD_NONE)
        return frame_close(ep, pds, at, segment->bytes, stored);
    pattern_fill(at, segment->message->id, segment->offset, segment->bytes);
    return frame_close(ep, pds, at + segment->bytes, 0, stored);
}

static uint32_t data(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                     uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->data, segment->entropy);
    uint8_t *at = pds + UET_PDS;
    bool asks = uet_spends(qp), ordered = uet_delivers(ep, EP_ROD);
    int64_t clear = (int64_t)qp->una - 1 - (int64_t)segment->seq;
    unsigned type = ordered ? (asks ? UET_ROD_CC_REQ : UET_ROD_REQ)
                            : (asks ? UET_RUD_CC_REQ : UET_RUD_REQ);
    unsigned next = uet_next(ep, segment->message);
    uet_store_prologue(pds, type, next, UET_ACK_REQUEST | (segment->again ? UET_RETX : 0));
    be16_store(pds + 2, (uint16_t)(clear < INT16_MIN ? INT16_MIN : clear));
    be32_store(pds + 4, (uint32_t)segment->seq);
    store_ids(pds + 8, qp);
    if (asks) {
        *at = 0;
        be24_store(at + 1, segment->credit_target);
        at += UET_PDS_CREDIT;
    }
    return close_data(ep, pds, store_ses(at, next, segment, 0), segment, stored);
}

/* A packet's id: of the end that sends data. */
static void store_packet_id(uint8_t *at, uint32_t initiator, uint64_t seq)
{
    be32_store(at, initiator << 16 | (uint32_t)(seq & UINT16_MAX));
}

static uint32_t data_rudi(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                          uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->data, segment->entropy);
    unsigned next = uet_next(ep, segment->message);
    uet_store_prologue(pds, UET_RUDI_REQ, next, segment->again ? UET_RETX : 0);
    be16_store(pds + 2, 0);
    store_packet_id(pds + 4, qp->number, segment->seq);
    uint8_t *at = store_ses(pds + UET_PDS_RUDI, next, segment, qp->remote);
    return close_data(ep, pds, at, segment, stored);
}

static uint32_t data_uud(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                         uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->data, segment->entropy);
    unsigned next = uet_next(ep, segment->message);
    uet_store_prologue(pds, UET_UUD_REQ, next, 0);
    be16_store(pds + 2, 0);
    uint8_t *at = store_ses(pds + UET_PDS_UUD, next, segment, qp->remote);
    return close_data(ep, pds, at, segment, stored);
}

uint64_t uet_map_from(const struct uet *uet, uint64_t from)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < UET_SACK_BITS && from + i < uet->high; i++)
        bits |= (uint64_t)seqset_has(&uet->got, from + i) << i;
    return bits;
}

uint64_t uet_map_begin(const struct qp *qp, const struct uet_answer *answer)
{
    uint64_t from = qp->expected;
    return answer->seq >= from + UET_SACK_BITS ? answer->seq + 1 - UET_SACK_BITS : from;
}

uint16_t uet_early(const struct qp *qp)
{
    uint64_t early = qp->uet->high > qp->expected ? qp->uet->high - qp->expected : 0;
    return early < UINT16_MAX ? (uint16_t)early : UINT16_MAX;
}

static uint32_t ack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                    uint32_t *stored)
{
    const struct uet *uet = qp->uet;
    uint8_t *pds = uet_begin(ep, qp, qp->common->control, answer->way);
    uint64_t cack = qp->expected - 1, from = uet_map_begin(qp, answer);
    uet_store_prologue(pds, UET_ACK_CC_TYPE, UET_NEXT_NONE,
                       (answer->marked ? UET_MARKED : 0) | (answer->again ? UET_RETX : 0) |
                           (answer->to_probe ? UET_PROBE_ANSWER : 0));
    be16_store(pds + 2, answer->to_probe ? answer->opaque : (uint16_t)(answer->seq - cack));
    be32_store(pds + 4, (uint32_t)cack);
    store_ids(pds + 8, qp);
    pds[12] = (uint8_t)((uet_spends(qp) ? UET_CC_CREDIT : UET_CC_NSCC) << 4);
    pds[13] = 0;
    be16_store(pds + 14, (uint16_t)(from - cack));
    be64_store(pds + 16, uet_map_from(uet, from));
    memset(pds + 24, 0, 8);
    if (uet_spends(qp))
        be24_store(pds + 24, (uint32_t)(uet->granted / UET_CREDIT_UNIT) & 0xFFFFFF);
    else
        be24_store(pds + 27, (uint32_t)(uet->received / UET_CREDIT_UNIT) & 0xFFFFFF);
    be16_store(pds + 30, uet_early(qp));
    return frame_close(ep, pds, pds + UET_ACK_CC, 0, stored);
}

static uint32_t nack(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                     uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->control, answer->way);
    uet_store_prologue(pds, UET_NACK_TYPE, UET_NEXT_NONE,
                       (answer->marked ? UET_MARKED : 0) | (answer->again ? UET_RETX : 0));
    pds[2] = answer->code;
    pds[3] = 0;
    be32_store(pds + 4, (uint32_t)answer->seq);
    store_ids(pds + 8, qp);
    be32_store(pds + 12, (uint32_t)(answer->code == UET_NACK_ROD_OOO ? qp->expected
                                                                     : qp->uet->high - 1));
    return frame_close(ep, pds, pds + UET_NACK, 0, stored);
}

static unsigned answer_flags(const struct uet_answer *answer)
{
    return (answer->marked ? UET_MARKED : 0) | (answer->again ? UET_RETX : 0);
}

static uint32_t respond_rudi(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                             uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->control, answer->way);
    uet_store_prologue(pds, UET_RUDI_RESP, UET_NEXT_NONE, answer_flags(answer));
    be16_store(pds + 2, 0);
    store_packet_id(pds + 4, qp->remote, answer->seq);
    return frame_close(ep, pds, pds + UET_PDS_RUDI, 0, stored);
}

static uint32_t nack_rudi(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                          uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->control, answer->way);
    uet_store_prologue(pds, UET_NACK_TYPE, UET_NEXT_NONE, answer_flags(answer) | UET_NACK_OF_RUDI);
    pds[2] = answer->code;
    pds[3] = 0;
    store_packet_id(pds + 4, qp->remote, answer->seq);
    memset(pds + 8, 0, UET_NACK - 8);
    return frame_close(ep, pds, pds + UET_NACK, 0, stored);
}

static uint32_t control(struct ep *ep, const struct qp *qp, unsigned what,
                        const struct uet_answer *answer, uint32_t payload, uint32_t *stored)
{
    uint8_t *pds = uet_begin(ep, qp, qp->common->control, answer->way);
    uet_store_prologue(pds, UET_CTRL, what, 0);
    be16_store(pds + 2, answer->opaque);
    be32_store(pds + 4, (uint32_t)answer->seq);
    store_ids(pds + 8, qp);
    be32_store(pds + 12, payload);
    return frame_close(ep, pds, pds + UET_CONTROL, 0, stored);
}

/* --- and back ---------------------------------------------------------------------------------- */

/* Of a message in one packet. */
static void read_short(struct uet_packet *packet, const uint8_t *ses, unsigned next)
{
    uint64_t place = ses[1] & UET_SES_HD ? 0 : be64_load(ses + 12);
    bool is_whole = (ses[1] & (UET_SES_SOM | UET_SES_EOM)) == (UET_SES_SOM | UET_SES_EOM);
    packet->key = next == UET_NEXT_SMALL ? place >> 32 : be64_load(ses + 24);
    packet->offset = next == UET_NEXT_SMALL ? place & UINT32_MAX : place;
    packet->whole = be16_load(ses + 2) & UET_LENGTH_MASK;
    packet->has_content = is_whole && packet->whole == packet->size;
}

static void read_content(struct uet_packet *packet, uint32_t before)
{
    const uint8_t *pds = packet->pds, *ses = pds + before;
    unsigned next = be16_load(pds) >> 7 & 0xF;
    uint32_t length = uet_ses_bytes(next), headers = before + length;
    if (!length || packet->bytes < headers || packet->there < headers ||
        (ses[0] & 0x3F) != UET_SES_WRITE)
        return;
    packet->size = packet->bytes - headers;
    packet->data = pds + headers;
    if (next != UET_NEXT_STD) {
        read_short(packet, ses, next);
        return;
    }
    bool starts = ses[1] & UET_SES_SOM;
    packet->key = be64_load(ses + 24);
    packet->whole = be32_load(ses + 40);
    packet->offset = starts ? 0 : be32_load(ses + 36);
    packet->has_content = starts || be32_load(ses + 32) == packet->size;
}

static void read_data(struct uet_packet *packet)
{
    uint32_t before = UET_PDS + (packet->spends ? UET_PDS_CREDIT : 0);
    if (packet->there < before)
        return;
    packet->kind = UET_IS_DATA;
    if (packet->spends)
        packet->credit = be24_load(packet->pds + UET_PDS + 1);
    read_content(packet, before);
}

/* Of a packet with no PDC, as far as its job is there. */
static void read_connectionless(struct uet_packet *packet, uint32_t pds_bytes)
{
    enum { JOB_ENDS = 8 };
    if (packet->there < pds_bytes + JOB_ENDS)
        return;
    packet->kind = UET_IS_DATA;
    packet->to = be24_load(packet->pds + pds_bytes + 5);
    read_content(packet, pds_bytes);
}

static void read_ack(struct uet_packet *packet, unsigned flags)
{
    const uint8_t *pds = packet->pds;
    packet->kind = UET_IS_ACK;
    packet->to_probe = flags & UET_PROBE_ANSWER;
    packet->opaque = be16_load(pds + 2);
    packet->ahead = packet->to_probe ? 0 : (int16_t)packet->opaque;
    packet->map_ahead = be16_load(pds + 14);
    packet->map = be64_load(pds + 16);
    packet->spends = pds[12] >> 4 == UET_CC_CREDIT;
    packet->credit = be24_load(pds + 24);
}

static void read_control(struct uet_packet *packet, unsigned what)
{
    const uint8_t *pds = packet->pds;
    packet->opaque = be16_load(pds + 2);
    packet->credit = be32_load(pds + 12) & 0xFFFFFF;
    if (what == UET_CTRL_PROBE)
        packet->psn = be32_load(pds + 12);
    packet->kind = what == UET_CTRL_PROBE        ? UET_IS_PROBE
                   : what == UET_CTRL_CREDIT     ? UET_IS_CREDIT
                   : what == UET_CTRL_CREDIT_REQ ? UET_IS_CREDIT_REQ
                                                 : UET_IS_UNASKED;
}

/* What all begin with: the type. */
static unsigned read_prologue(struct uet_packet *packet)
{
    uint16_t prologue = be16_load(packet->pds);
    packet->again = prologue & UET_RETX;
    packet->told_marked = prologue & UET_MARKED;
    packet->about = packet->entropy;
    packet->whole = UET_UNTOLD;
    packet->to = packet->from = UET_UNTOLD;
    return prologue >> 11;
}

static void read_nack(struct uet_packet *packet)
{
    packet->kind = UET_IS_NACK;
    packet->code = packet->pds[2];
    packet->wanted = be32_load(packet->pds + 12);
}

/* Of a connection whose data is of these types. */
static void read_of(struct uet_packet *packet, unsigned request, unsigned request_cc)
{
    const uint8_t *pds = packet->pds;
    unsigned type = read_prologue(packet);
    packet->to = be16_load(pds + 10);
    packet->from = be16_load(pds + 8);
    packet->psn = be32_load(pds + 4);
    packet->spends = type == request_cc;
    if (type == request || type == request_cc)
        read_data(packet);
    else if (type == UET_ACK_CC_TYPE && packet->there >= UET_ACK_CC)
        read_ack(packet, be16_load(pds));
    else if (type == UET_NACK_TYPE && packet->there >= UET_NACK)
        read_nack(packet);
    else if (type == UET_CTRL && packet->there >= UET_CONTROL)
        read_control(packet, be16_load(pds) >> 7 & 0xF);
}

static void read_rud(struct uet_packet *packet) { read_of(packet, UET_RUD_REQ, UET_RUD_CC_REQ); }
static void read_rod(struct uet_packet *packet) { read_of(packet, UET_ROD_REQ, UET_ROD_CC_REQ); }

static void read_rudi(struct uet_packet *packet)
{
    unsigned type = read_prologue(packet);
    uint32_t id = be32_load(packet->pds + 4);
    packet->to = id >> 16;
    packet->psn = id & UINT16_MAX;
    if (type == UET_RUDI_REQ)
        read_connectionless(packet, UET_PDS_RUDI);
    else if (type == UET_RUDI_RESP)
        packet->kind = UET_IS_ACK;
    else if (type == UET_NACK_TYPE && packet->there >= UET_NACK &&
             be16_load(packet->pds) & UET_NACK_OF_RUDI)
        read_nack(packet);
}

static void read_uud(struct uet_packet *packet)
{
    if (read_prologue(packet) == UET_UUD_REQ)
        read_connectionless(packet, UET_PDS_UUD);
}

static const struct uet_format RUD = {
    UET_PORT, UET_PDS + UET_SES, UET_PDS, UINT32_MAX, data, ack, nack, control, NULL, read_rud,
}, ROD = {
    UET_PORT, UET_PDS + UET_SES, UET_PDS, UINT32_MAX, data, ack, nack, control, NULL, read_rod,
}, RUDI = {
    UET_PORT, UET_PDS_RUDI + UET_SES, UET_PDS_RUDI, UINT16_MAX, data_rudi, respond_rudi, nack_rudi,
    NULL, NULL, read_rudi,
}, UUD = {
    UET_PORT, UET_PDS_UUD + UET_SES, UET_PDS_UUD, UINT32_MAX, data_uud, NULL, NULL, NULL, NULL,
    read_uud,
};

const struct uet_format *const UET_FORMATS[] = {&RUD, &ROD, &RUDI, &UUD};
