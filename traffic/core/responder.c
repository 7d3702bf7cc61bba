/* Messages in: taken in order (or placed early, if recovery is selective), and answered.
 *
 * A message's id is its rkey and its memory starts at address 0, so a RETH says which bytes of
 * which message a packet holds. In the ordered modes the packets behind the first follow by
 * sequence number; in selective mode every packet has a RETH of its own and is put in its place
 * whenever it comes, the set `early` remembering what came before its turn; a message is complete
 * when all of it is there.
 *
 * Answers are owed, not sent: several packets may be answered by one ACK if the wire is busy.
 *
 * In go-back-0 a gap throws away what the message has received so far; the receiver then waits for
 * its first packet again.
 */
#include "pattern.h"
#include "qp.h"

static void owe(struct ep *ep, struct qp *qp, uint8_t what, ns_t now)
{
    qp->in->owed |= what;
    if (what == OWE_CNP)
        schedule_notice(ep, qp, now);
    else
        schedule_answer(ep, qp, now);
}

static void refuse(struct ep *ep, struct qp *qp, uint8_t syndrome, enum ep_error error, ns_t now)
{
    qp->in->nak_syndrome = syndrome;
    owe(ep, qp, OWE_NAK, now);
    qp_fail(ep, qp, error, now);
}

struct ep_message *responder_target(const struct ep *ep, const struct qp *qp, uint32_t id,
                                    uint64_t offset, uint32_t length)
{
    struct ep_message *message = ep->port.expected(ep->port.ctx, id);
    if (!message || message->qp != qp || message->done)
        return NULL;
    return offset <= message->size && length <= message->size - offset ? message : NULL;
}

/* The message that a RETH names, if the peer may write it there; NULL if not. */
static struct ep_message *target(const struct ep *ep, const struct qp *qp, const uint8_t *reth,
                                 bool whole)
{
    uint64_t va = be64_load(reth);
    uint32_t length = be32_load(reth + 12);
    struct ep_message *message = responder_target(ep, qp, be32_load(reth + 8), va, length);
    bool fits = message && (!whole || (va == 0 && length == message->size));
    return fits ? message : NULL;
}

void responder_received(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now)
{
    message->done = true;
    qp->msn++;
    ep->counters.messages_received++;
    ep_event(ep, EP_RECEIVED, qp, message, now);
}

bool responder_place(struct ep *ep, struct ep_message *message, uint64_t offset,
                     const uint8_t *data, uint32_t n)
{
    if (ep->config.payload == EP_PAYLOAD_PATTERN && !pattern_matches(data, message->id, offset, n))
        return false;
    message->received += n;
    ep->counters.rx_data_packets++;
    ep->counters.rx_data_bytes += n;
    return true;
}

struct content {
    const uint8_t *reth, *data;
    uint32_t bytes;
};

static bool content_of(const struct packet *packet, struct content *content)
{
    uint32_t headers = (opcode_starts(packet->opcode) ? WIRE_RETH : 0u) +
                       (opcode_has_imm(packet->opcode) ? WIRE_IMMDT : 0u) + packet->pad;
    if (packet->body_bytes < headers)
        return false;
    content->reth = packet->body;
    content->data = packet->body + headers - packet->pad;
    content->bytes = packet->body_bytes - headers;
    return true;
}

/* Forget the message being written: its first packet is expected again. */
static void restart(struct ep *ep, struct qp *qp)
{
    struct receiving *in = qp->in;
    struct ep_message *message = in->writing;
    if (!message)
        return;
    ep->counters.discarded_bytes += message->received;
    ep->counters.rx_data_bytes -= message->received;
    message->received = 0;
    qp->expected = in->writing_first;
    in->writing = NULL;
}

static void in_order(struct ep *ep, struct qp *qp, const struct packet *packet,
                     const struct content *content, ns_t now)
{
    struct receiving *in = qp->in;
    if (opcode_starts(packet->opcode)) {
        if (in->writing) {
            refuse(ep, qp, AETH_NAK_INVALID_REQUEST, EP_LOCAL_INVALID, now);
            return;
        }
        in->writing = target(ep, qp, content->reth, true);
        if (!in->writing) {
            refuse(ep, qp, AETH_NAK_REMOTE_ACCESS, EP_LOCAL_PROTECTION, now);
            return;
        }
        in->writing_first = qp->expected;
        in->offset = 0;
    }
    struct ep_message *message = in->writing;
    bool ends = opcode_ends(packet->opcode);
    if (!message || content->bytes > message->size - in->offset ||
        (ends ? in->offset + content->bytes != message->size : content->bytes != ep->config.mtu)) {
        refuse(ep, qp, AETH_NAK_INVALID_REQUEST, EP_LOCAL_INVALID, now);
        return;
    }
    if (!responder_place(ep, message, in->offset, content->data, content->bytes)) {
        refuse(ep, qp, AETH_NAK_REMOTE_OPERATION, EP_LOCAL_DATA, now);
        return;
    }
    in->offset += content->bytes;
    qp->expected++;
    in->nak_sent = false;
    in->owed &= (uint8_t)~OWE_NAK;
    if (packet->ack_request)
        owe(ep, qp, OWE_ACK, now);
    if (ends) {
        in->writing = NULL;
        responder_received(ep, qp, message, now);
    }
}

static void ordered(struct ep *ep, struct qp *qp, const struct packet *packet,
                    const struct content *content, ns_t now)
{
    struct receiving *in = qp->in;
    uint64_t seq = psn_unwrap(qp->expected, packet->psn);
    bool again = ep->config.recovery == EP_GO_BACK_0 && in->writing && seq == in->writing_first;

    if (again)
        restart(ep, qp);
    if (seq == qp->expected) {
        in_order(ep, qp, packet, content, now);
        return;
    }
    ep->counters.discarded_bytes += content->bytes;
    if (seq < qp->expected) {
        ep->counters.duplicate_request++;
        owe(ep, qp, OWE_ACK, now);
        return;
    }
    ep->counters.out_of_sequence++;
    if (in->nak_sent)
        return;
    if (ep->config.recovery == EP_GO_BACK_0)
        restart(ep, qp);
    in->nak_sent = true;
    in->nak_syndrome = AETH_NAK_SEQUENCE;
    owe(ep, qp, OWE_NAK, now);
}

/* Put a packet where its own RETH says; NULL, and the queue pair in error, if that is wrong. */
static struct ep_message *place_anywhere(struct ep *ep, struct qp *qp, const struct packet *packet,
                                         const struct content *content, ns_t now)
{
    if (!opcode_starts(packet->opcode) || be32_load(content->reth + 12) != content->bytes) {
        refuse(ep, qp, AETH_NAK_INVALID_REQUEST, EP_LOCAL_INVALID, now);
        return NULL;
    }
    struct ep_message *message = target(ep, qp, content->reth, false);
    if (!message) {
        refuse(ep, qp, AETH_NAK_REMOTE_ACCESS, EP_LOCAL_PROTECTION, now);
        return NULL;
    }
    if (!responder_place(ep, message, be64_load(content->reth), content->data, content->bytes)) {
        refuse(ep, qp, AETH_NAK_REMOTE_OPERATION, EP_LOCAL_DATA, now);
        return NULL;
    }
    return message;
}

/* A packet that came before its turn. The first beyond a gap is told at once, by a NAK; so is that
 * a gap was filled. Whatever else comes early is told with the next answer that is asked for. */
static void note_early(struct ep *ep, struct qp *qp, uint64_t seq, bool ack_request, ns_t now)
{
    struct selective *has = qp->selective;
    bool opens_gap = seq > has->high;
    bool fills_gap = seq < has->high && seqset_has(&has->early, seq + 1) &&
                     seq > qp->expected + 1 && seqset_has(&has->early, seq - 1);
    seqset_add(&has->early, seq);
    has->recent = seq;
    if (has->high <= seq)
        has->high = seq + 1;
    if (opens_gap) {
        has->provoked_by = seq;
        qp->in->nak_syndrome = AETH_NAK_SEQUENCE;
        owe(ep, qp, OWE_NAK, now);
    } else if (ack_request || fills_gap) {
        owe(ep, qp, OWE_ACK, now);
    }
}

/* The packet expected has come: step over it and over those that came before their turn. */
static void note_in_turn(struct ep *ep, struct qp *qp, bool ack_request, ns_t now)
{
    struct selective *has = qp->selective;
    qp->expected++;
    bool closes_gap = seqset_has(&has->early, qp->expected);
    for (; seqset_has(&has->early, qp->expected); qp->expected++)
        seqset_remove(&has->early, qp->expected);
    if (has->high < qp->expected)
        has->high = qp->expected;
    if (ack_request || closes_gap)
        owe(ep, qp, OWE_ACK, now);
}

static void selective(struct ep *ep, struct qp *qp, const struct packet *packet,
                      const struct content *content, ns_t now)
{
    struct selective *has = qp->selective;
    uint64_t seq = psn_unwrap(qp->expected, packet->psn);
    bool early = seq > qp->expected, in_window = seq <= qp->expected + has->early.mask;

    if (seq < qp->expected || (early && in_window && seqset_has(&has->early, seq))) {
        ep->counters.duplicate_request++;
        ep->counters.discarded_bytes += content->bytes;
        has->twice = true;
        owe(ep, qp, OWE_ACK, now);
        return;
    }
    if (early)
        ep->counters.out_of_sequence++;
    if (!in_window) {
        ep->counters.discarded_bytes += content->bytes;
        return;
    }
    struct ep_message *message = place_anywhere(ep, qp, packet, content, now);
    if (!message)
        return;
    if (early)
        note_early(ep, qp, seq, packet->ack_request, now);
    else
        note_in_turn(ep, qp, packet->ack_request, now);
    if (message->received == message->size)
        responder_received(ep, qp, message, now);
}

static ns_t notice_interval(const struct ep *ep, const struct qp *qp)
{
    const struct cc_ops *ops = CC_REGISTRY[qp->cc].ops;
    return ops->notice_interval ? ops->notice_interval(&ep->config.cc[qp->cc]) : 0;
}

static void notify_congestion(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    ep->counters.np_ecn_marked_packets++;
    in->marked = cc_hears(qp->cc, CC_ECHOES);
    if (!cc_hears(qp->cc, CC_MARKS) || (in->cnp_sent && now - in->cnp_at < notice_interval(ep, qp)))
        return;
    in->cnp_sent = true;
    in->cnp_at = now;
    owe(ep, qp, OWE_CNP, now);
}

void responder_data(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now)
{
    struct content content;
    if (!content_of(packet, &content)) {
        ep->counters.rx_malformed++;
        return;
    }
    struct receiving *in = receiving(ep, qp);
    if (!in) {
        ep->counters.rx_discards++;
        return;
    }
    if (packet->congested)
        notify_congestion(ep, qp, now);
    if (in->echo && packet->int_bytes && packet->int_bytes <= sizeof in->echo->header) {
        memcpy(in->echo->header, packet->int_header, packet->int_bytes);
        in->echo->header[WIRE_INT_SHIM + 3] = 0; /* no hop may add to it on the way back */
        in->echo->bytes = packet->int_bytes;
    }
    if (packet->tag_bytes && cc_hears(qp->cc, CC_CSIG)) {
        memcpy(in->csig, packet->tag, packet->tag_bytes);
        in->csig_bytes = (uint8_t)packet->tag_bytes;
    }
    if (ep->config.recovery == EP_SELECTIVE)
        selective(ep, qp, packet, &content, now);
    else
        ordered(ep, qp, packet, &content, now);
}

static uint32_t answer_frame(struct ep *ep, const struct qp *qp, uint32_t *stored)
{
    struct receiving *in = qp->in;
    bool refuses = in->owed & OWE_NAK;
    if (refuses && qp->selective && in->nak_syndrome == AETH_NAK_SEQUENCE)
        refuses = qp->selective->provoked_by > qp->expected; /* the gap may have closed meanwhile */
    if (refuses)
        return frame_ack(ep, qp, qp->expected, in->nak_syndrome, stored);
    return frame_ack(ep, qp, qp->expected - 1, AETH_ACK, stored);
}

bool responder_answer(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    uint32_t stored, wire;

    if (!(in->owed & (OWE_ACK | OWE_NAK)))
        return true;
    wire = answer_frame(ep, qp, &stored);
    uint8_t port = first_port(qp->ports), priority = answer_priority(ep, qp);
    if (schedule_send(ep, port, stored, wire, priority, in->answer_ready, now) == PS_NEVER)
        return false;
    if (in->owed & OWE_NAK)
        ep->counters.tx_naks++;
    else
        ep->counters.tx_acks++;
    in->owed &= (uint8_t)~(OWE_ACK | OWE_NAK);
    in->marked = false;
    return true;
}

bool responder_notify(struct ep *ep, struct qp *qp, ns_t now)
{
    struct receiving *in = qp->in;
    uint32_t stored, wire = frame_cnp(ep, qp, &stored);
    uint8_t port = first_port(qp->ports), priority = ep->config.control_priority;
    if (schedule_send(ep, port, stored, wire, priority, in->notice_ready, now) == PS_NEVER)
        return false;
    ep->counters.np_cnp_sent++;
    in->owed &= (uint8_t)~OWE_CNP;
    return true;
}
