/* Scale-up Ethernet's transport: small stores, packed by destination, in order and reliable.
 *
 * A message is a row of commands that store 256 bytes each. What waits for one virtual channel of one
 * peer when a frame may leave goes together, commands of several messages too (opportunistic packing);
 * nothing waits for company. A PDU has a sequence number, its receiver takes PDUs in order only, and
 * tells by a NACK what it waits for: then all from there on goes again (go-back-n), in the same PDUs, for
 * a number means what it meant. As many as a fixed window may be unanswered.
 *
 *        una        next       sent                        sequence numbers, of PDUs
 *   ──────┼──────────┼──────────┼─────►
 *    starts[una]  starts[next]  starts[sent]      posted   commands
 *
 * So whatever one XPU stores to another by one channel becomes visible in the order in which it was
 * asked for. Between channels, and between peers, there is no order.
 */
#include "invariant.h"
#include "sue.h"

#include <stdlib.h>

#include "icrc.h"
#include "pattern.h"
#include "sue_wire.h"

static uint64_t *start_of(const struct sue *sue, uint64_t psn) { return &sue->starts[psn & sue->mask]; }

static uint64_t end_of(const struct ep_message *message) { return message->first + message->packets; }

/* How long a PDU may be: full commands for the MTU's bytes. */
static uint32_t room_of(const struct ep *ep)
{
    return ep->config.mtu + ep->config.mtu / SUE_STORE_MAX * SUE_COMMAND;
}

uint32_t sue_most_bytes(const struct ep_config *config)
{
    return SUE_HEADERS + config->mtu + config->mtu / SUE_STORE_MAX * SUE_COMMAND + SUE_RCRC;
}

/* --- frames ------------------------------------------------------------------------------------ */

static uint16_t short_address(const uint8_t *ipv4) { return be16_load(ipv4 + 2); }

/* Begin a frame: all before the PDU, from a template of IPv4, whose header is compressed. */
static uint8_t *begin(struct ep *ep, const struct qp *qp, const uint8_t *template, uint64_t psn,
                      enum sue_op op)
{
    const uint8_t *ip = template + WIRE_IP_AT;
    uint8_t *sunh = ep->frame + WIRE_ETHERNET, *rh = sunh + WIRE_SUNH;
    uint16_t source = short_address(ip + 12);
    ep->in_front = 0;
    memcpy(ep->frame, template, WIRE_TYPE_AT);
    memcpy(ep->frame, qp->flow.mac, sizeof qp->flow.mac);
    be16_store(ep->frame + WIRE_TYPE_AT, ETHERTYPE_SUNH);
    sunh[0] = ip_tos(ip) & 0xFC; /* nobody of ours hears of marks */
    sunh[1] = SUE_NEXT_HEADER;
    be16_store(sunh + 2, (uint16_t)(SUE_HOPS << 12 | (be16_load(qp->flow.port) & 0xFFF)));
    be16_store(sunh + 4, source);
    be16_store(sunh + 6, short_address(qp->flow.address));
    be16_store(rh, (uint16_t)(op << 12 | (source & 0x3FF)));
    be16_store(rh + 2, (uint16_t)psn);
    be16_store(rh + 4, (uint16_t)(qp->sue->channel << 14));
    be16_store(rh + 6, (uint16_t)(qp->expected - 1));
    return rh + SUE_RH;
}

/* Close a frame whose PDU has so many bytes behind its first word, `left_out` of them not there. */
static uint32_t close(struct ep *ep, uint8_t *pdu, uint32_t commands, uint32_t bytes, uint32_t left_out,
                      uint32_t *stored)
{
    uint8_t *rh = pdu - SUE_RH, *end = pdu + SUE_PDU + bytes - left_out;
    uint32_t wire = SUE_HEADERS + bytes + SUE_RCRC;
    pdu[0] = (uint8_t)commands;
    pdu[1] = 0;
    be16_store(pdu + 2, (uint16_t)bytes);
    *stored = (uint32_t)(end - ep->frame);
    if (ep->config.payload == EP_PAYLOAD_PATTERN) {
        be32_store(end, crc32_more(0, rh, (size_t)(end - rh)));
        *stored += SUE_RCRC;
    }
    if (wire < SUE_MIN) {
        memset(ep->frame + *stored, 0, SUE_MIN - *stored);
        wire = *stored = SUE_MIN;
    }
    return wire;
}

/* The message that a command is of. */
static const struct ep_message *message_of(const struct qp *qp, uint64_t command)
{
    const struct ep_message *message = qp->out->cursor;
    if (!message || command < message->first)
        message = qp->head;
    while (command >= end_of(message))
        message = message->next;
    return message;
}

struct stored {
    const struct ep_message *message;
    uint32_t offset, bytes;
    bool last;
};

static struct stored command_at(const struct ep_message *message, uint64_t command)
{
    uint32_t offset = (uint32_t)(command - message->first) * SUE_STORE_MAX;
    uint32_t left = message->size - offset;
    return (struct stored){message, offset, left < SUE_STORE_MAX ? left : SUE_STORE_MAX,
                           command + 1 == end_of(message)};
}

/* Up to where the commands from one on fit into a PDU. */
static uint64_t fill(const struct ep *ep, const struct qp *qp, uint64_t from)
{
    uint64_t to = from, most = qp->sue->posted;
    uint32_t room = room_of(ep);
    const struct ep_message *message = message_of(qp, from);
    most = most - from > SUE_COMMANDS_MAX ? from + SUE_COMMANDS_MAX : most;
    for (; to < most; to++) {
        if (to == end_of(message))
            message = message->next;
        uint32_t takes = SUE_COMMAND + command_at(message, to).bytes;
        if (takes > room)
            break;
        room -= takes;
    }
    return to;
}

/* A PDU of some commands; `*bytes` is what they store. */
static uint32_t frame_stores(struct ep *ep, const struct qp *qp, uint64_t psn, uint64_t from, uint64_t to,
                             uint32_t *bytes, uint32_t *stored)
{
    uint8_t *pdu = begin(ep, qp, qp->common->data, psn, SUE_ACK), *at = pdu + SUE_PDU;
    uint8_t *data = at + (to - from) * SUE_COMMAND;
    bool is_there = ep->config.payload == EP_PAYLOAD_PATTERN;
    const struct ep_message *message = message_of(qp, from);
    *bytes = 0;
    for (uint64_t command = from; command < to; command++, at += SUE_COMMAND) {
        if (command == end_of(message))
            message = message->next;
        struct stored what = command_at(message, command);
        at[0] = SUE_STORE;
        at[1] = what.last ? SUE_LAST : 0;
        be16_store(at + 2, (uint16_t)what.bytes);
        be32_store(at + 4, message->id);
        be32_store(at + 8, what.offset);
        if (is_there)
            pattern_fill(data + *bytes, message->id, what.offset, what.bytes);
        *bytes += what.bytes;
    }
    uint32_t commands = (uint32_t)(to - from);
    return close(ep, pdu, commands, commands * SUE_COMMAND + *bytes, is_there ? 0 : *bytes, stored);
}

/* --- out --------------------------------------------------------------------------------------- */

static bool can_send(const struct ep *ep, struct qp *qp)
{
    const struct sending *out = qp->out;
    const struct sue *sue = qp->sue;
    if (qp->error || !sue->starts)
        return false;
    return out->next < out->sent || (*start_of(sue, out->sent) < sue->posted &&
                                     out->sent - qp->una < ep->config.window);
}

static uint32_t send(struct ep *ep, struct qp *qp, uint8_t port, ns_t now)
{
    struct sending *out = qp->out;
    struct sue *sue = qp->sue;
    uint64_t psn = out->next, from = *start_of(sue, psn);
    bool again = psn < out->sent;
    uint64_t to = again ? *start_of(sue, psn + 1) : fill(ep, qp, from);
    INVARIANT(from < to && to <= sue->posted);
    uint32_t bytes, stored, wire = frame_stores(ep, qp, psn, from, to, &bytes, &stored);
    ps_t at = schedule_send(ep, port, stored, wire, qp->priority, qp->ready, now);
    if (at == PS_NEVER)
        return 0;
    qp->ready = at + ps_for_bytes(wire, qp->common->rate);
    ep->counters.tx_data_packets++;
    ep->counters.tx_data_bytes += bytes;
    ep->counters.retransmitted_packets += again;
    ep->counters.retransmitted_bytes += again ? bytes : 0;
    out->rewound = false;
    out->next++;
    if (!again) {
        out->sent++;
        *start_of(sue, out->sent) = to;
        out->posted -= to - from - 1;
        while (out->cursor && to >= end_of(out->cursor))
            out->cursor = out->cursor->next;
    }
    if (qp->in)
        qp->in->owed &= (uint8_t)~OWE_ACK; /* every PDU says what has come */
    if (out->rto_at == NS_NEVER) {
        requester_await(ep, qp, now, true);
        schedule_rto(ep, qp);
    }
    return wire;
}

static void post(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now)
{
    struct sue *sue = qp->sue;
    if (!sue->starts) {
        uint32_t places = 2;
        while (places <= ep->config.window)
            places *= 2;
        sue->starts = calloc(places, sizeof *sue->starts);
        sue->mask = places - 1;
    }
    if (!sue->starts) {
        qp_fail(ep, qp, EP_REMOTE_OPERATION, now);
        ep_event(ep, EP_FAILED, qp, message, now);
        return;
    }
    message->qp = qp;
    message->next = NULL;
    message->packets = message->size ? (message->size + SUE_STORE_MAX - 1) / SUE_STORE_MAX : 1;
    message->first = sue->posted;
    sue->posted += message->packets;
    qp->out->posted += message->packets; /* as if each of them went alone */
    if (qp->head)
        qp->tail->next = message;
    else
        qp->head = message;
    qp->tail = message;
    if (!qp->out->cursor)
        qp->out->cursor = message;
    schedule_data(ep, qp, now);
}

/* The peer has all PDUs before one. */
static void acknowledge(struct ep *ep, struct qp *qp, uint64_t upto, ns_t now)
{
    struct sending *out = qp->out;
    if (upto <= qp->una || upto > out->sent)
        return;
    qp->una = out->acked = upto;
    if (out->next < upto)
        out->next = upto;
    requester_await(ep, qp, now, true);
    if (upto == out->sent)
        out->rto_at = NS_NEVER;
    else
        schedule_rto(ep, qp);
    requester_complete(ep, qp, *start_of(qp->sue, upto), now);
    schedule_data(ep, qp, now);
}

static void refused(struct ep *ep, struct qp *qp, uint64_t expected, ns_t now)
{
    struct sending *out = qp->out;
    ep->counters.packet_seq_err++;
    if (expected < qp->una || expected >= out->sent)
        return; /* old */
    out->silent = out->retries = 0;
    acknowledge(ep, qp, expected, now);
    out->next = qp->una;
    schedule_data(ep, qp, now);
}

static void timeout(struct ep *ep, struct qp *qp, ns_t now)
{
    if (!requester_timed_out(ep, qp, now))
        return;
    qp->out->next = qp->una;
    schedule_data(ep, qp, now);
}

/* --- in ---------------------------------------------------------------------------------------- */

/* A frame taken apart: its commands, and what they store. */
struct pdu {
    const uint8_t *commands, *data;
    uint32_t count, data_bytes;
};

static void owe(struct ep *ep, struct qp *qp, uint8_t what, ns_t now)
{
    qp->in->owed |= what;
    schedule_answer(ep, qp, now);
}

/* Carry out the next command of a PDU, whose data begins at `data`: whether it is right. */
static bool carry_out(struct ep *ep, struct qp *qp, const uint8_t *command, const uint8_t *data, ns_t now)
{
    uint32_t bytes = be16_load(command + 2), id = be32_load(command + 4), offset = be32_load(command + 8);
    struct ep_message *message = responder_target(ep, qp, id, offset, bytes);
    bool last = command[1] & SUE_LAST;
    if (!message || command[0] != SUE_STORE || offset != message->received ||
        last != (offset + bytes == message->size)) {
        qp_fail(ep, qp, EP_LOCAL_PROTECTION, now);
        return false;
    }
    if (ep->config.payload == EP_PAYLOAD_PATTERN && !pattern_matches(data, id, offset, bytes)) {
        qp_fail(ep, qp, EP_LOCAL_DATA, now);
        return false;
    }
    message->received += bytes;
    ep->counters.rx_data_bytes += bytes;
    if (last)
        responder_received(ep, qp, message, now);
    return true;
}

static void in_order(struct ep *ep, struct qp *qp, const struct pdu *pdu, ns_t now)
{
    struct sue *sue = qp->sue;
    const uint8_t *command = pdu->commands, *data = pdu->data;
    bool ends = false;
    qp->expected++;
    qp->in->nak_sent = false;
    qp->in->owed &= (uint8_t)~OWE_NAK;
    ep->counters.rx_data_packets++;
    for (uint32_t i = 0; i < pdu->count; i++, command += SUE_COMMAND) {
        if (!carry_out(ep, qp, command, data, now))
            return;
        data += be16_load(command + 2);
        ends |= command[1] & SUE_LAST;
    }
    if (ends || ++sue->unanswered >= ep->config.ack_every) {
        sue->unanswered = 0;
        owe(ep, qp, OWE_ACK, now);
    }
}

static void take_stores(struct ep *ep, struct qp *qp, const struct pdu *pdu, uint32_t psn, ns_t now)
{
    uint64_t seq = sue_unwrap(qp->expected, psn);
    struct receiving *in = receiving(ep, qp);
    if (!in) {
        ep->counters.rx_discards++;
        return;
    }
    if (seq == qp->expected) {
        in_order(ep, qp, pdu, now);
        return;
    }
    ep->counters.discarded_bytes += pdu->data_bytes;
    if (seq < qp->expected) {
        ep->counters.duplicate_request++;
        owe(ep, qp, OWE_ACK, now);
        return;
    }
    ep->counters.out_of_sequence++;
    if (!in->nak_sent) {
        in->nak_sent = true;
        owe(ep, qp, OWE_NAK, now);
    }
}

static bool answer(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    if (!(in->owed & (OWE_ACK | OWE_NAK)))
        return true;
    bool refuses = in->owed & OWE_NAK;
    bool as_data = ep->config.acks == EP_ACKS_DATA;
    uint8_t *pdu = begin(ep, qp, as_data ? qp->common->data : qp->common->control, qp->out->sent,
                         refuses ? SUE_NACK : SUE_ACK);
    uint32_t stored, wire = close(ep, pdu, 0, 0, 0, &stored);
    if (schedule_send(ep, first_port(qp->ports), stored, wire, answer_priority(ep, qp), in->answer_ready,
                      now) == PS_NEVER)
        return false;
    ep->counters.tx_naks += refuses;
    ep->counters.tx_acks += !refuses;
    in->owed &= (uint8_t)~(OWE_ACK | OWE_NAK);
    return true;
}

/* Find a PDU's parts. False if they do not add up. */
static bool read_pdu(const struct ep *ep, const uint8_t *at, const uint8_t *end, struct pdu *pdu)
{
    bool whole = ep->config.payload == EP_PAYLOAD_PATTERN;
    uint32_t bytes = be16_load(at + 2), controls = at[0] * SUE_COMMAND;
    const uint8_t *commands = at + SUE_PDU;
    if (bytes < controls || end - commands < (ptrdiff_t)(whole ? bytes + SUE_RCRC : controls))
        return false;
    *pdu = (struct pdu){commands, commands + controls, at[0], bytes - controls};
    uint32_t listed = 0;
    for (uint32_t i = 0; i < pdu->count; i++)
        listed += be16_load(commands + i * SUE_COMMAND + 2);
    return listed == pdu->data_bytes;
}

void sue_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now)
{
    const uint8_t *sunh = frame + WIRE_ETHERNET, *rh = sunh + WIRE_SUNH, *at = rh + SUE_RH;
    struct pdu pdu;
    if (be16_load(frame + WIRE_TYPE_AT) != ETHERTYPE_SUNH || stored < SUE_HEADERS ||
        sunh[1] != SUE_NEXT_HEADER) {
        ep->counters.rx_other++;
        return;
    }
    bool is_from = (be16_load(rh) & 0x3FF) == (be16_load(sunh + 4) & 0x3FF);
    if (rh[0] >> 6 || (rh[0] >> 4 & 3) > SUE_NACK || !is_from || !read_pdu(ep, at, frame + stored, &pdu)) {
        ep->counters.rx_malformed++;
        return;
    }
    const uint8_t *end = at + SUE_PDU + be16_load(at + 2);
    if (ep->config.payload == EP_PAYLOAD_PATTERN && be32_load(end) != crc32_more(0, rh, (size_t)(end - rh))) {
        ep->counters.rx_icrc_errors++;
        return;
    }
    uint32_t key = (uint32_t)be16_load(sunh + 4) << 2 | rh[4] >> 6;
    uint32_t index = idmap_find(&ep->sue_by_peer, key);
    struct qp *qp = index == IDMAP_NONE ? NULL : &ep->qps[index];
    if (!qp || qp->error || be16_load(sunh + 6) != short_address(qp->common->data + WIRE_IP_AT + 12)) {
        ep->counters.rx_no_queue_pair++;
        return;
    }
    uint64_t upto = sue_unwrap(qp->una, be16_load(rh + 6)) + 1;
    if ((rh[0] >> 4 & 3) == SUE_NACK) {
        refused(ep, qp, upto, now);
    } else {
        ep->counters.rx_acks += !pdu.count;
        acknowledge(ep, qp, upto, now);
    }
    if (pdu.count && !qp->error)
        take_stores(ep, qp, &pdu, be16_load(rh + 2), now);
}

const char *sue_prepare(struct ep *ep, struct qp *qp, uint32_t index)
{
    uint32_t peer = (uint32_t)short_address(qp->flow.address) << 2, channel = 0;
    while (channel < SUE_CHANNELS && idmap_find(&ep->sue_by_peer, peer | channel) != IDMAP_NONE)
        channel++;
    if (channel == SUE_CHANNELS)
        return "two XPUs have four virtual channels at most: let channels share them (queue_pairs)";
    if (!idmap_add(&ep->sue_by_peer, peer | channel, index))
        return "memory is short";
    qp->sue = &ep->sue[index];
    qp->sue->channel = (uint8_t)channel;
    return NULL;
}

static struct cc_link link(const struct ep *ep, const struct qp *qp)
{
    return (struct cc_link){.rate = qp->common->rate, .base_rtt = ep->config.base_rtt,
                            .packet = sue_most_bytes(&ep->config), .hops = ep->config.hops};
}

static uint8_t answer_port(const struct ep *ep, const struct qp *qp)
{
    (void)ep;
    return first_port(qp->ports);
}

const struct transport SUE = {
    .can_send = can_send,
    .send = send,
    .post = post,
    .link = link,
    .answer_port = answer_port,
    .answer = answer,
    .timeout = timeout,
};
