/* The side that is asked: what comes is put where it belongs, and answered in order.
 *
 * Only the packet that is expected is taken. One that is ahead is told once that others are
 * missing, one that was here before is answered again: a READ by reading again, an atomic
 * operation with what it found the first time. Keys, ranges and permissions are judged packet by
 * packet, before anything is touched.
 */
#include "rc.h"

enum { ATOMIC_ETH = 28 };

static struct answer *answer_at(struct qp *qp, unsigned index)
{
    return &qp->answers[(qp->answers_head + index) % (4 * READS_MAX)];
}

static void owe(struct qp *qp, struct answer answer)
{
    struct answer *last = qp->answers_count ? answer_at(qp, qp->answers_count - 1) : NULL;
    answer.msn = qp->msn;
    if (last && last->kind == ANSWER_ACK && answer.kind == ANSWER_ACK &&
        last->syndrome == AETH_ACK) {
        *last = answer;
        return;
    }
    if (qp->answers_count < 4 * READS_MAX)
        *answer_at(qp, qp->answers_count++) = answer; /* else it is asked for again */
}

static void acknowledge(struct qp *qp)
{
    owe(qp, (struct answer){.kind = ANSWER_ACK, .seq = qp->expected - 1, .syndrome = AETH_ACK});
}

static void refuse(struct qp *qp, uint8_t syndrome)
{
    owe(qp, (struct answer){.kind = ANSWER_ACK, .seq = qp->expected, .syndrome = syndrome});
    bool is_fatal = (syndrome & AETH_KIND) == AETH_NAK && syndrome != AETH_NAK_SEQUENCE;
    qp->is_dying |= is_fatal;
    qp->nak_sent = true;
}

/* --- requests --------------------------------------------------------------------------------- */

struct request {
    const uint8_t *bth, *payload;
    uint64_t seq, address;
    uint32_t bytes; /* of payload */
    uint32_t key, length, imm;
    uint8_t opcode;
    bool starts, ends, has_imm, invalidates, is_send, is_write;
};

/* Take a packet apart. False: it is none of these, or too short. */
static bool parse(struct request *r, const uint8_t *bth, uint32_t bytes)
{
    const uint8_t *at = bth + WIRE_BTH;
    uint8_t op = r->opcode = bth[0];
    bool is_inv = op == RC_SEND_LAST_INV || op == RC_SEND_ONLY_INV;
    r->bth = bth;
    r->is_send = op <= RC_SEND_ONLY_IMM || is_inv;
    r->is_write = op >= RC_WRITE_FIRST && op <= RC_WRITE_ONLY_IMM;
    unsigned place = r->is_write ? op - RC_WRITE_FIRST : op; /* FIRST MIDDLE LAST LAST_IMM .. */
    r->starts = op > RC_WRITE_ONLY_IMM ? op != RC_SEND_LAST_INV : place == 0 || place >= 4;
    r->ends = op > RC_WRITE_ONLY_IMM || place >= 2;
    r->has_imm = (r->is_send || r->is_write) && !is_inv && (place == 3 || place == 5);
    r->invalidates = is_inv;
    bool has_reth = (r->is_write && r->starts) || op == RC_READ_REQUEST;
    bool is_atomic = op == RC_COMPARE_SWAP || op == RC_FETCH_ADD;
    uint32_t head = WIRE_BTH + (has_reth ? WIRE_RETH : 0) + (is_atomic ? ATOMIC_ETH : 0) +
                    (r->has_imm || is_inv ? WIRE_IMMDT : 0) + (bth[1] >> 4 & 3);
    if (!(r->is_send || has_reth || r->is_write || is_atomic) || bytes < head)
        return false;
    if (has_reth || is_atomic) {
        r->address = be64_load(at);
        r->key = be32_load(at + 8);
        r->length = has_reth ? be32_load(at + 12) : 8;
        at += has_reth ? WIRE_RETH : ATOMIC_ETH;
    }
    if (r->has_imm || is_inv) {
        memcpy(&r->imm, at, WIRE_IMMDT);
        at += WIRE_IMMDT;
    }
    r->payload = at;
    r->bytes = bytes - head;
    return true;
}

/* It continues what was begun, and is as long as its place asks for. */
static bool is_in_place(const struct qp *qp, const struct request *r)
{
    if (r->starts != (qp->message == NOTHING))
        return false;
    if (!r->starts && r->is_send != (qp->message == RC_SEND_FIRST))
        return false;
    return r->ends ? r->bytes <= qp->mtu : r->bytes == qp->mtu;
}

static void receive_done(struct qp *qp, const struct request *r, int status)
{
    struct ibv_wc wc = {
        .wr_id = qp->receive.wr_id,
        .status = status,
        .opcode = r->is_write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .byte_len = qp->received,
        .qp_num = qp->ex.qp_base.qp_num,
        .src_qp = qp->attr.dest_qp_num,
        .imm_data = r->invalidates ? __builtin_bswap32(r->imm) : r->imm,
        .wc_flags = r->has_imm ? IBV_WC_WITH_IMM : r->invalidates ? IBV_WC_WITH_INV : 0,
    };
    receive_complete(qp, &wc, r->bth[1] & 0x80);
}

static uint8_t rnr(const struct qp *qp) { return AETH_RNR | (qp->attr.min_rnr_timer & 31); }

/* What is sent goes where a receive says. Zero, or how it is refused. */
static uint8_t take_send(struct ctx *ctx, struct qp *qp, const struct request *r)
{
    const struct ibv_pd *pd = qp->ex.qp_base.srq ? qp->ex.qp_base.srq->pd : qp->ex.qp_base.pd;
    if (r->starts) {
        if (!receive_take(qp, &qp->receive))
            return rnr(qp);
        qp->received = 0;
    }
    bool fits = qp->received + (uint64_t)r->bytes <= receive_room(&qp->receive);
    if (!fits || !scatter(ctx, pd, qp->receive.sge, qp->receive.sges, qp->received, r->payload,
                          r->bytes)) {
        receive_done(qp, r, fits ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR);
        return fits ? AETH_NAK_REMOTE_OPERATION : AETH_NAK_INVALID_REQUEST;
    }
    qp->received += r->bytes;
    if (r->invalidates) {
        struct key *key = key_find(ctx, pd, __builtin_bswap32(r->imm));
        if (!key)
            return AETH_NAK_REMOTE_ACCESS;
        key->tag++; /* the key leads nowhere from now on */
    }
    if (r->ends)
        receive_done(qp, r, IBV_WC_SUCCESS);
    return 0;
}

static uint8_t *may_touch(struct ctx *ctx, const struct qp *qp, uint32_t key, uint64_t address,
                          uint32_t bytes, int access)
{
    if (!(qp->attr.qp_access_flags & (unsigned)access))
        return NULL;
    return memory_at(ctx, qp->ex.qp_base.pd, key, address, bytes, access);
}

static uint8_t take_write(struct ctx *ctx, struct qp *qp, const struct request *r)
{
    if (r->starts) {
        if (r->length && !may_touch(ctx, qp, r->key, r->address, r->length,
                                    IBV_ACCESS_REMOTE_WRITE))
            return AETH_NAK_REMOTE_ACCESS;
        qp->write_at = r->address;
        qp->write_key = r->key;
        qp->write_left = r->length;
        qp->received = r->length;
    }
    if (r->ends ? r->bytes != qp->write_left : r->bytes >= qp->write_left)
        return AETH_NAK_INVALID_REQUEST;
    if (r->has_imm && !receive_take(qp, &qp->receive))
        return rnr(qp);
    if (r->bytes) {
        uint8_t *to = may_touch(ctx, qp, qp->write_key, qp->write_at, r->bytes,
                                IBV_ACCESS_REMOTE_WRITE);
        if (!to)
            return AETH_NAK_REMOTE_ACCESS;
        memcpy(to, r->payload, r->bytes);
    }
    qp->write_at += r->bytes;
    qp->write_left -= r->bytes;
    if (r->has_imm)
        receive_done(qp, r, IBV_WC_SUCCESS);
    return 0;
}

static uint8_t take_atomic(struct ctx *ctx, struct qp *qp, const struct request *r)
{
    uint64_t *at = (void *)may_touch(ctx, qp, r->key, r->address, 8, IBV_ACCESS_REMOTE_ATOMIC);
    uint64_t swap_add = be64_load(r->bth + WIRE_BTH + 12);
    uint64_t was = be64_load(r->bth + WIRE_BTH + 20); /* what it is compared with */
    if (r->address % 8)
        return AETH_NAK_INVALID_REQUEST;
    if (!at || (uintptr_t)at % 8)
        return AETH_NAK_REMOTE_ACCESS;
    if (r->opcode == RC_FETCH_ADD)
        was = __atomic_fetch_add(at, swap_add, __ATOMIC_SEQ_CST);
    else
        __atomic_compare_exchange_n(at, &was, swap_add, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    unsigned place = qp->atomics_next++ % READS_MAX;
    qp->atomics[place].seq = r->seq;
    qp->atomics[place].was = was;
    return 0;
}

static void owe_fetched(struct qp *qp, const struct request *r)
{
    struct answer answer = {.kind = ANSWER_READ, .seq = r->seq, .address = r->address,
                            .length = r->length, .rkey = r->key, .syndrome = AETH_ACK};
    if (r->opcode != RC_READ_REQUEST) {
        answer.kind = ANSWER_ATOMIC;
        unsigned place = 0;
        while (place < READS_MAX && qp->atomics[place].seq != r->seq)
            place++;
        if (place == READS_MAX)
            return; /* too long ago: the peer may not have so many under way */
        answer.address = qp->atomics[place].was;
    }
    owe(qp, answer);
}

/* It was here before. */
static void repeat(struct qp *qp, const struct request *r)
{
    if (r->is_send || r->is_write) {
        acknowledge(qp);
        return;
    }
    while (qp->answers_count && answer_at(qp, qp->answers_count - 1)->seq >= r->seq)
        qp->answers_count--; /* all that is asked for again with it */
    owe_fetched(qp, r);
}

static void take(struct ctx *ctx, struct qp *qp, const struct request *r, ns_t now)
{
    bool reads = r->opcode == RC_READ_REQUEST;
    uint8_t refused = 0;
    if (!is_in_place(qp, r))
        refused = AETH_NAK_INVALID_REQUEST;
    else if (r->is_send)
        refused = take_send(ctx, qp, r);
    else if (r->is_write)
        refused = take_write(ctx, qp, r);
    else if (!reads)
        refused = take_atomic(ctx, qp, r);
    else if (r->length && !may_touch(ctx, qp, r->key, r->address, r->length,
                                     IBV_ACCESS_REMOTE_READ))
        refused = AETH_NAK_REMOTE_ACCESS;
    if (refused) {
        ctx->counts.out_of_buffer += (refused & AETH_KIND) == AETH_RNR;
        refuse(qp, refused);
        return;
    }
    ctx->counts.rx_write_requests += r->is_write && r->starts;
    ctx->counts.rx_read_requests += reads;
    ctx->counts.rx_atomic_requests += !reads && !r->is_send && !r->is_write;
    qp->nak_sent = false;
    qp->message = r->ends ? NOTHING : r->is_send ? RC_SEND_FIRST : RC_WRITE_FIRST;
    qp->msn = (qp->msn + r->ends) & PSN_MASK;
    if (r->ends && (r->is_send || r->is_write))
        record_came(ctx, qp, now);
    qp->expected += reads && r->length ? (r->length + qp->mtu - 1) / qp->mtu : 1;
    if (!r->is_send && !r->is_write)
        owe_fetched(qp, r);
    else if (r->bth[8] & BTH_ACK_REQUEST)
        acknowledge(qp);
}

void responder_asked(struct ctx *ctx, struct qp *qp, const uint8_t *bth, uint32_t bytes, ns_t now)
{
    struct request r = {.seq = psn_unwrap(qp->expected, be24_load(bth + 9))};
    if (qp->is_dying || !parse(&r, bth, bytes))
        return;
    if (r.seq > qp->expected) {
        ctx->counts.out_of_sequence++;
        if (!qp->nak_sent)
            refuse(qp, AETH_NAK_SEQUENCE);
    } else if (r.seq < qp->expected) {
        ctx->counts.duplicate_request++;
        repeat(qp, &r);
    } else {
        take(ctx, qp, &r, now);
    }
    responder_send(ctx, qp, now);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* One packet of a READ's answer; true if that was the last. */
static bool send_read(struct ctx *ctx, struct qp *qp, struct answer *answer, ns_t now, bool *sent)
{
    uint32_t left = answer->length - answer->sent, bytes = left < qp->mtu ? left : qp->mtu;
    bool is_first = !answer->sent, is_last = bytes == left;
    uint8_t opcode = is_first ? is_last ? RC_READ_ONLY : RC_READ_FIRST
                              : is_last ? RC_READ_LAST : RC_READ_MIDDLE;
    uint64_t seq = answer->seq + answer->sent / qp->mtu;
    uint8_t *bth = packet_begin(ctx, &qp->way, qp->attr.dest_qp_num, opcode, seq, false);
    uint8_t *at = bth + WIRE_BTH;
    const uint8_t *from = bytes ? may_touch(ctx, qp, answer->rkey, answer->address + answer->sent,
                                            bytes, IBV_ACCESS_REMOTE_READ)
                                : at;
    if (!from) { /* it was taken away meanwhile */
        bth[0] = RC_ACKNOWLEDGE;
        be32_store(at, (uint32_t)AETH_NAK_REMOTE_ACCESS << 24 | answer->msn);
        qp->is_dying = true;
        *sent = packet_end(ctx, bth, at + WIRE_AETH, 0);
        return *sent;
    }
    if (opcode != RC_READ_MIDDLE) {
        be32_store(at, (uint32_t)AETH_ACK << 24 | answer->msn);
        at += WIRE_AETH;
    }
    memcpy(at, from, bytes);
    *sent = packet_end(ctx, bth, at + bytes, bytes);
    if (*sent)
        rate_sent(ctx, qp, (uint32_t)(at + bytes - ctx->frame), now);
    answer->sent += *sent ? bytes : 0;
    return *sent && is_last;
}

static bool send_word(struct ctx *ctx, struct qp *qp, const struct answer *answer)
{
    bool is_atomic = answer->kind == ANSWER_ATOMIC;
    uint8_t opcode = is_atomic ? RC_ATOMIC_ACKNOWLEDGE : RC_ACKNOWLEDGE;
    uint32_t to = qp->attr.dest_qp_num;
    uint8_t *bth = packet_begin(ctx, &qp->way, to, opcode, answer->seq, false);
    uint8_t *at = bth + WIRE_BTH;
    be32_store(at, (uint32_t)answer->syndrome << 24 | answer->msn);
    at += WIRE_AETH;
    if (is_atomic) {
        be64_store(at, answer->address);
        at += 8;
    }
    return packet_end(ctx, bth, at, 0);
}

void responder_send(struct ctx *ctx, struct qp *qp, ns_t now)
{
    while (qp->answers_count && port_may_send(ctx, now)) {
        struct answer *first = answer_at(qp, 0);
        bool sent = true, is_over;
        if (first->kind == ANSWER_READ && !rate_allows(qp, now))
            return;
        if (first->kind == ANSWER_READ)
            is_over = send_read(ctx, qp, first, now, &sent);
        else
            is_over = sent = send_word(ctx, qp, first);
        if (is_over) {
            qp->answers_head = (qp->answers_head + 1) % (4 * READS_MAX);
            qp->answers_count--;
        }
        if (!sent)
            return;
    }
    if (qp->is_dying && !qp->answers_count)
        qp_break(qp);
}
