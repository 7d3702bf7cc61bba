/* The side that asks: packets of what was posted, and what becomes of the answers to them.
 *
 * Go-back-N: `una` is the first packet without an answer, `next` the next to be sent. Whatever
 * is found missing, `next` falls back to `una`. A READ takes as many numbers as its answer has
 * packets, and one that was answered in part is asked for its rest. An answer to a later packet
 * while a READ's is missing says that the READ's was lost.
 */
#include "rc.h"

enum { NS_PER_TIMEOUT = 4096 };

static struct work *work_at(const struct qp *qp, uint32_t index)
{
    return &qp->sends[(qp->sends_head + index) % qp->sends_size];
}

static bool is_fetch(const struct work *work)
{
    return work->opcode == IBV_WR_RDMA_READ || work->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static ns_t timeout(const struct ctx *ctx, const struct qp *qp)
{
    return qp->attr.timeout ? ctx->dilation * NS_PER_TIMEOUT << (qp->attr.timeout & 31) : NS_NEVER;
}

static void set_timer(const struct ctx *ctx, struct qp *qp, ns_t now)
{
    ns_t length = timeout(ctx, qp);
    qp->timer = qp->una < qp->high && length != NS_NEVER ? now + length : 0;
}

static void rewind_to_una(struct ctx *ctx, struct qp *qp)
{
    if (qp->next > qp->una)
        ctx->counts.retransmitted_packets += qp->next - qp->una;
    qp->next = qp->una;
    qp->at = 0;
    qp->reads = 0;
}

/* --- sending ---------------------------------------------------------------------------------- */

static uint8_t opcode_of(const struct work *work, bool is_first, bool is_last)
{
    bool has_imm = work->opcode == IBV_WR_SEND_WITH_IMM ||
                   work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    uint8_t base = RC_SEND_FIRST;
    switch (work->opcode) {
    case IBV_WR_RDMA_READ:
        return RC_READ_REQUEST;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return RC_COMPARE_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return RC_FETCH_ADD;
    case IBV_WR_SEND_WITH_INV:
        if (is_last)
            return is_first ? RC_SEND_ONLY_INV : RC_SEND_LAST_INV;
        break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        base = RC_WRITE_FIRST;
    }
    if (is_last)
        return (uint8_t)(base + (is_first ? 4 : 2) + has_imm);
    return (uint8_t)(base + !is_first);
}

/* What stands between the BTH and the payload; where that begins. */
static uint8_t *put_headers(uint8_t *at, const struct work *work, uint8_t opcode, uint32_t done)
{
    switch (opcode) {
    case RC_WRITE_FIRST:
    case RC_WRITE_ONLY:
    case RC_WRITE_ONLY_IMM:
    case RC_READ_REQUEST:
        be64_store(at, work->remote + done);
        be32_store(at + 8, work->rkey);
        be32_store(at + 12, work->length - done);
        at += WIRE_RETH;
        break;
    case RC_COMPARE_SWAP:
    case RC_FETCH_ADD:
        be64_store(at, work->remote);
        be32_store(at + 8, work->rkey);
        be64_store(at + 12, opcode == RC_FETCH_ADD ? work->compare_add : work->swap);
        be64_store(at + 20, opcode == RC_FETCH_ADD ? 0 : work->compare_add);
        return at + 28;
    }
    switch (opcode) {
    case RC_SEND_LAST_IMM:
    case RC_SEND_ONLY_IMM:
    case RC_WRITE_LAST_IMM:
    case RC_WRITE_ONLY_IMM:
        memcpy(at, &work->imm, WIRE_IMMDT); /* as the program gave it */
        return at + WIRE_IMMDT;
    case RC_SEND_LAST_INV:
    case RC_SEND_ONLY_INV:
        be32_store(at, work->imm);
        return at + WIRE_IMMDT;
    }
    return at;
}

static bool put_payload(struct ctx *ctx, const struct qp *qp, const struct work *work,
                        uint64_t offset, uint8_t *to, uint32_t bytes)
{
    if (work->flags & IBV_SEND_INLINE) {
        memcpy(to, work->inlined + offset, bytes);
        return true;
    }
    return gather(ctx, qp->ex.qp_base.pd, work->sge, work->sges, offset, to, bytes);
}

/* Send the next packet. False: not now, or the queue pair is broken. */
static bool send_one(struct ctx *ctx, struct qp *qp, ns_t now)
{
    struct work *work = work_at(qp, qp->at);
    uint64_t index = qp->next - work->first;
    bool fetches = is_fetch(work), is_last = fetches || qp->next == work->last;
    uint8_t opcode = opcode_of(work, !index, is_last);
    uint32_t done = fetches ? work->returned : (uint32_t)(index * qp->mtu);
    uint32_t left = work->length - done;
    uint32_t bytes = fetches ? 0 : left < qp->mtu ? left : qp->mtu;
    bool asks = is_last || !((index + 1) % ACK_EVERY);
    uint8_t *bth = packet_begin(ctx, &qp->way, qp->attr.dest_qp_num, opcode, qp->next, asks);
    if (is_last && work->flags & IBV_SEND_SOLICITED && !fetches)
        bth[1] |= 0x80;
    uint8_t *payload = put_headers(bth + WIRE_BTH, work, opcode, done);
    if (!put_payload(ctx, qp, work, done, payload, bytes)) {
        if (qp->una == work->first) /* all that was posted before has come to its end */
            qp_fail(qp, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    if (!packet_end(ctx, bth, payload + bytes, bytes))
        return false;
    rate_sent(ctx, qp, (uint32_t)(payload + bytes - ctx->frame), now);
    qp->next = fetches ? work->last + 1 : qp->next + 1;
    qp->at += is_last;
    qp->reads += fetches;
    if (qp->high < qp->next)
        qp->high = qp->next;
    if (!qp->timer)
        set_timer(ctx, qp, now);
    return true;
}

static bool may_send(const struct qp *qp)
{
    const struct work *work = work_at(qp, qp->at);
    bool begins = qp->next == work->first || is_fetch(work);
    if (qp->next - qp->una >= WINDOW && qp->next > qp->una)
        return false;
    if (begins && work->flags & IBV_SEND_FENCE && qp->reads)
        return false;
    return !is_fetch(work) || qp->reads < qp->attr.max_rd_atomic;
}

void requester_send(struct ctx *ctx, struct qp *qp, ns_t now)
{
    if (datagram_is(qp)) {
        datagram_send(ctx, qp, now);
        return;
    }
    if (qp->rnr_until && now >= qp->rnr_until)
        qp->rnr_until = 0;
    while (qp->ex.qp_base.state == IBV_QPS_RTS && qp->at < qp->sends_count && !qp->rnr_until &&
           may_send(qp) && rate_allows(qp, now) && port_may_send(ctx, now))
        if (!send_one(ctx, qp, now))
            return;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void progress(const struct ctx *ctx, struct qp *qp, ns_t now)
{
    qp->retries = qp->rnr_retries = 0;
    qp->rewound = 0;
    set_timer(ctx, qp, now);
}

static void finish_first(struct qp *qp)
{
    struct work *work = work_at(qp, 0);
    record_done(qp, work);
    qp_complete(qp, work, IBV_WC_SUCCESS);
    qp->reads -= is_fetch(work) && qp->at;
    qp->una = work->last + 1;
    qp->sends_head = (qp->sends_head + 1) % qp->sends_size;
    qp->sends_count--;
    if (qp->at)
        qp->at--;
    if (qp->next < qp->una)
        qp->next = qp->una;
}

/* All up to a packet has arrived; but what was to be fetched has not come by that. True: something
 * was to come before this answer, and did not. */
static bool take_ack(struct ctx *ctx, struct qp *qp, uint64_t through, ns_t now)
{
    uint64_t before = qp->una;
    bool missing = false;
    while (qp->sends_count && through >= qp->una) {
        const struct work *work = work_at(qp, 0);
        if (is_fetch(work)) {
            missing = true;
            break;
        }
        if (through < work->last) {
            qp->una = through + 1;
            break;
        }
        finish_first(qp);
    }
    if (qp->next < qp->una)
        qp->next = qp->una; /* it had fallen back for nothing */
    if (qp->una != before)
        progress(ctx, qp, now);
    return missing;
}

static void ask_again(struct ctx *ctx, struct qp *qp)
{
    if (qp->rewound == qp->una + 1)
        return; /* that was done, and the answer is under way or the timer will say so */
    ctx->counts.implied_nak_seq_err++;
    rewind_to_una(ctx, qp);
    qp->rewound = qp->una + 1;
}

static ns_t rnr_wait(const struct ctx *ctx, uint8_t code)
{
    static const uint32_t tens_of_us[32] = {65536, 1,   2,   3,   4,    6,    8,    12,
                                            16,    24,  32,  48,  64,   96,   128,  192,
                                            256,   384, 512, 768, 1024, 1536, 2048, 3072,
                                            4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return ctx->dilation * tens_of_us[code & 31] * 10000;
}

static void take_nak(struct ctx *ctx, struct qp *qp, uint8_t syndrome, ns_t now)
{
    static const int status[] = {[1] = IBV_WC_REM_INV_REQ_ERR,
                                 [2] = IBV_WC_REM_ACCESS_ERR,
                                 [3] = IBV_WC_REM_OP_ERR};
    unsigned code = syndrome & 0x1F;
    if ((syndrome & AETH_KIND) == AETH_RNR) {
        ctx->counts.rnr_nak_retry_err++;
        if (qp->attr.rnr_retry != 7 && qp->rnr_retries++ >= qp->attr.rnr_retry) {
            qp_fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
            return;
        }
        qp->rnr_until = now + rnr_wait(ctx, syndrome);
        qp->retries = 0; /* it is there, and hears */
        rewind_to_una(ctx, qp);
        qp->timer = 0;
        return;
    }
    if (qp->rnr_until) /* of what was sent after it; soft-RoCE says so, too */
        return;
    ctx->counts.packet_seq_err += !code;
    if (code >= 1 && code <= 3) {
        qp_fail(qp, status[code]);
    } else if (code == 0) {
        if (qp->retries++ >= qp->attr.retry_cnt) {
            qp_fail(qp, IBV_WC_RETRY_EXC_ERR);
            return;
        }
        rewind_to_una(ctx, qp);
        set_timer(ctx, qp, now);
    }
}

/* Bytes that were read, or an old value. */
static void take_fetched(struct ctx *ctx, struct qp *qp, const uint8_t *bth, uint32_t bytes,
                         ns_t now)
{
    struct work *work = work_at(qp, 0);
    bool is_atomic = bth[0] == RC_ATOMIC_ACKNOWLEDGE, is_middle = bth[0] == RC_READ_MIDDLE;
    const uint8_t *at = bth + WIRE_BTH + (is_middle ? 0 : WIRE_AETH);
    uint32_t head = (uint32_t)(at - bth) + (bth[1] >> 4 & 3);
    uint64_t was;
    if (!qp->at || !is_fetch(work) || is_atomic != (work->opcode != IBV_WR_RDMA_READ))
        return; /* nobody asked */
    uint32_t left = work->length - work->returned, due = left < qp->mtu ? left : qp->mtu;
    if (is_atomic) {
        was = be64_load(at);
        at = (const uint8_t *)&was;
    }
    if (bytes < head || bytes - head != due) {
        qp_fail(qp, IBV_WC_BAD_RESP_ERR);
        return;
    }
    if (!scatter(ctx, qp->ex.qp_base.pd, work->sge, work->sges, work->returned, at, due)) {
        qp_fail(qp, IBV_WC_LOC_PROT_ERR);
        return;
    }
    work->returned += due;
    if (qp->una == work->last)
        finish_first(qp);
    else
        qp->una++;
    if (qp->next < qp->una)
        qp->next = qp->una;
    progress(ctx, qp, now);
}

void requester_answered(struct ctx *ctx, struct qp *qp, const uint8_t *bth, uint32_t bytes,
                        ns_t now)
{
    uint64_t seq = psn_unwrap(qp->una, be24_load(bth + 9));
    uint32_t head = WIRE_BTH + (bth[0] == RC_READ_MIDDLE ? 0 : WIRE_AETH);
    uint8_t syndrome = bytes < head || head == WIRE_BTH ? AETH_ACK : bth[WIRE_BTH];
    if (qp->ex.qp_base.state != IBV_QPS_RTS || bytes < head || seq >= qp->high || seq < qp->una ||
        (bth[0] == RC_ATOMIC_ACKNOWLEDGE && bytes < head + 8))
        return;
    bool is_bad = syndrome & AETH_KIND;
    bool is_plain = bth[0] == RC_ACKNOWLEDGE && !is_bad;
    bool missing = (is_plain || seq > qp->una) && take_ack(ctx, qp, is_plain ? seq : seq - 1, now);
    if (missing || (!is_plain && seq > qp->una)) {
        ask_again(ctx, qp);
        return;
    }
    if (is_bad && seq == qp->una && qp->sends_count)
        take_nak(ctx, qp, syndrome, now);
    else if (!is_plain && !is_bad && seq == qp->una && qp->sends_count)
        take_fetched(ctx, qp, bth, bytes, now);
}

void requester_timer(struct ctx *ctx, struct qp *qp, ns_t now)
{
    if (!qp->timer || now < qp->timer)
        return;
    ctx->counts.local_ack_timeout_err++;
    if (qp->retries++ >= qp->attr.retry_cnt) {
        qp_fail(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    }
    rewind_to_una(ctx, qp);
    qp->rewound = 0;
    set_timer(ctx, qp, now);
}

ns_t requester_due(const struct qp *qp, ns_t now)
{
    ns_t due = qp->timer ? qp->timer : NS_NEVER;
    bool waits = !rate_allows(qp, now) &&
                 (qp->answers_count || (qp->at < qp->sends_count && may_send(qp)));
    if (waits) /* for its rate, if not for the link */
        due = ns_least(due, qp->leaves_at);
    return qp->at < qp->sends_count && qp->rnr_until ? ns_least(due, qp->rnr_until) : due;
}
