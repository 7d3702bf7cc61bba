/* What programs post: requests that are copied into a queue, one by one or as ibv_wr_* build
 * them. */
#include <errno.h>

#include "rc.h"

static bool is_fetch(int opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_known(int opcode)
{
    return (opcode >= IBV_WR_RDMA_WRITE && opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD) ||
           opcode == IBV_WR_SEND_WITH_INV;
}

static uint64_t length_of(const struct ibv_sge *sge, int sges)
{
    uint64_t length = 0;
    for (int i = 0; i < sges; i++)
        length += sge[i].length;
    return length;
}

/* Zero, or why it is not taken. */
static int judge(const struct qp *qp, const struct ibv_send_wr *wr, uint64_t length)
{
    bool is_atomic = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                     wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    bool is_plain = wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM;
    if (!is_known(wr->opcode) || (datagram_is(qp) && !is_plain))
        return EOPNOTSUPP;
    if (datagram_is(qp) && (!wr->wr.ud.ah || length > qp->mtu))
        return EINVAL;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge ||
        length > MESSAGE_MAX || (is_atomic && length != 8))
        return EINVAL;
    if (is_fetch(wr->opcode) && (wr->send_flags & IBV_SEND_INLINE || !qp->attr.max_rd_atomic))
        return EINVAL;
    if (wr->send_flags & IBV_SEND_INLINE && length > qp->init.cap.max_inline_data)
        return EINVAL;
    return qp->sends_count == qp->sends_size ? ENOMEM : 0;
}

static void copy_inline(struct work *work, const struct ibv_send_wr *wr)
{
    uint8_t *to = work->inlined;
    for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
        memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
}

static int post_one(struct qp *qp, const struct ibv_send_wr *wr)
{
    uint64_t length = length_of(wr->sg_list, wr->num_sge);
    int state = qp->ex.qp_base.state, code = state < IBV_QPS_RTS ? EINVAL : judge(qp, wr, length);
    if (code)
        return code;
    uint32_t place = (qp->sends_head + qp->sends_count) % qp->sends_size;
    struct work *work = &qp->sends[place];
    uint64_t packets = length ? (length + qp->mtu - 1) / qp->mtu : 1;
    bool is_rdma = wr->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM || wr->opcode == IBV_WR_RDMA_READ;
    *work = (struct work){
        .wr_id = wr->wr_id,
        .first = qp->to_assign,
        .last = qp->to_assign + packets - 1,
        .posted_at = qp_ctx(qp)->record ? port_now() : 0,
        .remote = wr->wr.rdma.remote_addr,
        .compare_add = wr->wr.atomic.compare_add,
        .swap = wr->wr.atomic.swap,
        .rkey = is_rdma ? wr->wr.rdma.rkey : wr->wr.atomic.rkey,
        .imm = wr->imm_data,
        .length = (uint32_t)length,
        .opcode = wr->opcode,
        .flags = wr->send_flags,
        .sges = (unsigned)wr->num_sge,
        .inlined = qp->inlines + (size_t)place * qp->init.cap.max_inline_data,
    };
    if (datagram_is(qp)) {
        work->ah = wr->wr.ud.ah;
        work->remote = wr->wr.ud.remote_qpn;
        work->rkey = wr->wr.ud.remote_qkey;
    }
    if (wr->send_flags & IBV_SEND_INLINE)
        copy_inline(work, wr);
    else if (wr->num_sge)
        memcpy(work->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
    if (state == IBV_QPS_ERR) {
        qp_complete(qp, work, IBV_WC_WR_FLUSH_ERR);
        return 0;
    }
    if (work->ah)
        ((struct ah *)work->ah)->users++;
    qp->to_assign += packets;
    qp->sends_count++;
    return 0;
}

int work_post_send(struct ibv_qp *base, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct qp *qp = qp_of(base);
    struct ctx *ctx = qp_ctx(qp);
    int code = 0;
    pthread_mutex_lock(&ctx->lock);
    for (; wr && !(code = post_one(qp, wr)); wr = wr->next)
        ;
    pthread_mutex_unlock(&ctx->lock);
    if (code && bad)
        *bad = wr;
    port_wake(ctx);
    return code;
}

static int put_receive(struct receive_queue *queue, const struct ibv_recv_wr *wr)
{
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > queue->sge_most)
        return EINVAL;
    if (queue->count == queue->size)
        return ENOMEM;
    struct receive *receive = &queue->slots[(queue->head + queue->count++) % queue->size];
    receive->wr_id = wr->wr_id;
    receive->sges = (unsigned)wr->num_sge;
    if (wr->num_sge)
        memcpy(receive->sge, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
    return 0;
}

int work_post_recv(struct ibv_qp *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct qp *qp = qp_of(base);
    struct ctx *ctx = qp_ctx(qp);
    int code = base->srq || base->state == IBV_QPS_RESET ? EINVAL : 0;
    pthread_mutex_lock(&ctx->lock);
    for (; wr && !code; wr = code ? wr : wr->next) {
        if (base->state == IBV_QPS_ERR) {
            const struct ibv_wc wc = {.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR,
                                      .opcode = IBV_WC_RECV, .qp_num = base->qp_num};
            receive_complete(qp, &wc, false);
        } else {
            code = put_receive(&qp->receives, wr);
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    if (code && bad)
        *bad = wr;
    return code;
}

int work_post_srq_recv(struct ibv_srq *base, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct srq *srq = (struct srq *)base;
    struct ctx *ctx = ctx_of(base->context);
    int code = 0;
    pthread_mutex_lock(&ctx->lock);
    for (; wr && !(code = put_receive(&srq->queue, wr)); wr = wr->next)
        ;
    pthread_mutex_unlock(&ctx->lock);
    if (code && bad)
        *bad = wr;
    return code;
}

bool receive_take(struct qp *qp, struct receive *into)
{
    struct ibv_srq *shared = qp->ex.qp_base.srq;
    struct receive_queue *queue = shared ? &((struct srq *)shared)->queue : &qp->receives;
    if (!queue->count)
        return false;
    *into = queue->slots[queue->head];
    queue->head = (queue->head + 1) % queue->size;
    queue->count--;
    return true;
}

uint64_t receive_room(const struct receive *receive)
{
    return length_of(receive->sge, (int)receive->sges);
}

void receive_complete(struct qp *qp, const struct ibv_wc *wc, bool is_solicited)
{
    struct counts *counts = &qp_ctx(qp)->counts;
    counts->resp_cqe_error += wc->status && wc->status != IBV_WC_WR_FLUSH_ERR;
    counts->resp_cqe_flush_error += wc->status == IBV_WC_WR_FLUSH_ERR;
    cq_put(qp->ex.qp_base.recv_cq, wc, is_solicited);
}

void qp_complete(struct qp *qp, const struct work *work, int status)
{
    static const uint8_t opcodes[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
        [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
    };
    if (status == IBV_WC_SUCCESS && !qp->init.sq_sig_all && !(work->flags & IBV_SEND_SIGNALED))
        return;
    struct counts *counts = &qp_ctx(qp)->counts;
    counts->req_cqe_error += status && status != IBV_WC_WR_FLUSH_ERR;
    counts->req_cqe_flush_error += status == IBV_WC_WR_FLUSH_ERR;
    const struct ibv_wc wc = {.wr_id = work->wr_id, .status = status,
                              .opcode = opcodes[work->opcode], .byte_len = work->length,
                              .qp_num = qp->ex.qp_base.qp_num};
    cq_put(qp->ex.qp_base.send_cq, &wc, false);
}

/* --- ibv_wr_*: a list that is built piece by piece, and posted whole or not at all ------------ */

static struct qp *of(struct ibv_qp_ex *qp) { return (struct qp *)qp; }

/* What was begun last is whole: post it, unless something before was wrong. */
static void flush(struct qp *qp)
{
    if (qp->is_building && !qp->building_error)
        qp->building_error = post_one(qp, qp->building);
    qp->is_building = false;
}

static struct ibv_send_wr *begin(struct ibv_qp_ex *ex, int opcode)
{
    struct qp *qp = of(ex);
    flush(qp);
    qp->is_building = true;
    qp->building[0] = (struct ibv_send_wr){.wr_id = ex->wr_id, .sg_list = qp->building_sge,
                                           .opcode = opcode, .send_flags = ex->wr_flags};
    return qp->building;
}

static void wr_rdma(struct ibv_qp_ex *ex, int opcode, uint32_t rkey, uint64_t addr, uint32_t imm)
{
    struct ibv_send_wr *wr = begin(ex, opcode);
    wr->wr.rdma.remote_addr = addr;
    wr->wr.rdma.rkey = rkey;
    wr->imm_data = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    wr_rdma(ex, IBV_WR_RDMA_WRITE, rkey, addr, 0);
}
static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint32_t imm)
{
    wr_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr, imm);
}
static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
    wr_rdma(ex, IBV_WR_RDMA_READ, rkey, addr, 0);
}
static void wr_send(struct ibv_qp_ex *ex) { begin(ex, IBV_WR_SEND); }
static void wr_send_imm(struct ibv_qp_ex *ex, uint32_t imm)
{
    begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm;
}
static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    begin(ex, IBV_WR_SEND_WITH_INV)->imm_data = rkey;
}
static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    begin(ex, IBV_WR_LOCAL_INV)->imm_data = rkey;
}

static void wr_atomic(struct ibv_qp_ex *ex, int opcode, uint32_t rkey, uint64_t addr,
                      uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr *wr = begin(ex, opcode);
    wr->wr.atomic.remote_addr = addr;
    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.compare_add = compare_add;
    wr->wr.atomic.swap = swap;
}
static void wr_compare_swap(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t compare,
                            uint64_t swap)
{
    wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}
static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr, uint64_t add)
{
    wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
    struct qp *qp = of(ex);
    if (count > SGE_MAX) {
        qp->building_error = EINVAL;
        return;
    }
    memcpy(qp->building_sge, list, count * sizeof *list);
    qp->building[0].num_sge = (int)count;
}
static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    const struct ibv_sge one = {addr, length, lkey};
    wr_set_sge_list(ex, 1, &one);
}

static void wr_set_inline_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_data_buf *list)
{
    struct qp *qp = of(ex);
    size_t bytes = 0;
    for (size_t i = 0; i < count; bytes += list[i++].length) {
        if (list[i].length > INLINE_MAX - bytes) {
            qp->building_error = EINVAL;
            return;
        }
        memcpy(qp->building_inline + bytes, list[i].addr, list[i].length);
    }
    qp->building_sge[0] = (struct ibv_sge){(uintptr_t)qp->building_inline, (uint32_t)bytes, 0};
    qp->building[0].num_sge = 1;
    qp->building[0].send_flags |= IBV_SEND_INLINE;
}
static void wr_set_inline(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    const struct ibv_data_buf one = {addr, length};
    wr_set_inline_list(ex, 1, &one);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct ibv_send_wr *wr = of(ex)->building;
    wr->wr.ud.ah = ah;
    wr->wr.ud.remote_qpn = qpn;
    wr->wr.ud.remote_qkey = qkey;
}

static void wr_start(struct ibv_qp_ex *ex)
{
    struct qp *qp = of(ex);
    pthread_mutex_lock(&qp_ctx(qp)->lock);
    qp->building_error = 0;
    qp->is_building = false;
    qp->built_from = (struct built){qp->sends_count, qp->to_assign};
}

static int wr_end(struct ibv_qp_ex *ex, bool is_wanted)
{
    struct qp *qp = of(ex);
    struct ctx *ctx = qp_ctx(qp);
    if (is_wanted)
        flush(qp);
    int code = qp->building_error;
    if (code || !is_wanted) {
        for (uint32_t i = qp->built_from.count; i < qp->sends_count; i++)
            datagram_forget(&qp->sends[(qp->sends_head + i) % qp->sends_size]);
        qp->sends_count = qp->built_from.count;
        qp->to_assign = qp->built_from.to_assign;
    }
    qp->is_building = false;
    pthread_mutex_unlock(&ctx->lock);
    port_wake(ctx);
    return code;
}
static int wr_complete(struct ibv_qp_ex *ex) { return wr_end(ex, true); }
static void wr_abort(struct ibv_qp_ex *ex) { wr_end(ex, false); }

void work_extend(struct qp *qp)
{
    struct ibv_qp_ex *ex = &qp->ex;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_atomic_cmp_swp = wr_compare_swap;
    ex->wr_atomic_fetch_add = wr_fetch_add;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_set_inline_data = wr_set_inline;
    ex->wr_set_inline_data_list = wr_set_inline_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
}
