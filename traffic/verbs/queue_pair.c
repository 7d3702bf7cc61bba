/* Queue pairs and shared receive queues: made, moved from state to state, asked about, and
 * ended. */
#include <errno.h>
#include <stdlib.h>

#include "rc.h"

#define SEQ_FROM ((uint64_t)1 << 24) /* so that nothing is before the first but what is old */

static uint32_t at_least_one(uint32_t n) { return n ? n : 1; }

static bool is_within(const struct ibv_qp_cap *cap)
{
    return cap->max_send_wr <= WR_MAX && cap->max_recv_wr <= WR_MAX &&
           cap->max_send_sge <= SGE_MAX && cap->max_recv_sge <= SGE_MAX &&
           cap->max_inline_data <= INLINE_MAX;
}

static bool receives_init(struct receive_queue *queue, uint32_t size, uint32_t sge_most)
{
    queue->size = at_least_one(size);
    queue->sge_most = at_least_one(sge_most);
    queue->slots = calloc(queue->size, sizeof *queue->slots);
    return queue->slots;
}

static void qp_free(struct qp *qp)
{
    if (!qp)
        return;
    free(qp->sends);
    free(qp->inlines);
    free(qp->receives.slots);
    free(qp->cc);
    free(qp);
}

/* A number that nobody has; zero: all are taken. */
static uint32_t take_number(struct ctx *ctx, struct qp *qp)
{
    for (uint32_t tried = 2; tried < QPS_MAX; tried++) {
        uint32_t at = 2 + (ctx->qps_last + tried - 2) % (QPS_MAX - 2);
        if (ctx->qps[at])
            continue;
        ctx->qps[at] = qp;
        ctx->qps_last = at - 1; /* the next is another, also after this one has ended */
        if (ctx->qps_next <= at)
            ctx->qps_next = at + 1;
        return ctx->slot << 16 | at;
    }
    return 0;
}

struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct ctx *ctx = ctx_of(context);
    bool is_extended = init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    errno = EOPNOTSUPP;
    if ((init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD) || init->comp_mask & ~known ||
        (is_extended && init->send_ops_flags & ~(uint64_t)IBV_QP_EX_KNOWN))
        return NULL;
    errno = EINVAL;
    if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || !init->send_cq || !init->recv_cq ||
        !is_within(&init->cap))
        return NULL;
    errno = ENOMEM;
    struct qp *qp = calloc(1, sizeof *qp);
    if (!qp)
        return NULL;
    memcpy(&qp->init, init, sizeof qp->init); /* which begins alike */
    /* until a path says; a datagram's path is told by none */
    qp->mtu = init->qp_type == IBV_QPT_UD ? 128u << ctx->active_mtu : 1024;
    struct ibv_qp_cap *cap = &qp->init.cap;
    qp->sends_size = at_least_one(cap->max_send_wr);
    cap->max_send_sge = at_least_one(cap->max_send_sge);
    qp->sends = calloc(qp->sends_size, sizeof *qp->sends);
    qp->inlines = calloc(qp->sends_size, at_least_one(cap->max_inline_data));
    if (!qp->sends || !qp->inlines ||
        !receives_init(&qp->receives, init->srq ? 1 : cap->max_recv_wr, cap->max_recv_sge)) {
        qp_free(qp);
        return NULL;
    }
    struct ibv_qp *base = &qp->ex.qp_base;
    *base = (struct ibv_qp){.context = context, .qp_context = init->qp_context, .pd = init->pd,
                            .send_cq = init->send_cq, .recv_cq = init->recv_cq,
                            .srq = init->srq, .qp_type = init->qp_type, .state = IBV_QPS_RESET};
    pthread_mutex_init(&base->mutex, NULL);
    pthread_cond_init(&base->cond, NULL);
    qp->is_extended = is_extended;
    if (is_extended)
        work_extend(qp);
    pthread_mutex_lock(&ctx->lock);
    base->handle = base->qp_num = take_number(ctx, qp);
    pthread_mutex_unlock(&ctx->lock);
    if (!base->qp_num) {
        qp_free(qp);
        return NULL;
    }
    init->cap = *cap;
    return base;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct ibv_qp_init_attr_ex extended = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
    memcpy(&extended, init, sizeof *init); /* which begins alike */
    extended.comp_mask = IBV_QP_INIT_ATTR_PD;
    extended.pd = pd;
    struct ibv_qp *qp = qp_create_ex(pd->context, &extended);
    if (qp)
        init->cap = extended.cap;
    return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return qp_of(qp)->is_extended ? &qp_of(qp)->ex : NULL;
}

static void reset(struct qp *qp)
{
    for (uint32_t i = 0; i < qp->sends_count; i++)
        datagram_forget(&qp->sends[(qp->sends_head + i) % qp->sends_size]);
    qp->sends_count = qp->at = qp->receives.count = qp->answers_count = 0;
    qp->reads = qp->retries = qp->rnr_retries = 0;
    qp->timer = qp->rnr_until = qp->rewound = 0;
    qp->nak_sent = qp->is_dying = false;
    qp->message = NOTHING;
    qp->msn = 0;
    for (unsigned i = 0; i < READS_MAX; i++)
        qp->atomics[i].seq = 0;
    cq_forget(qp->ex.qp_base.send_cq, qp->ex.qp_base.qp_num);
    cq_forget(qp->ex.qp_base.recv_cq, qp->ex.qp_base.qp_num);
}

int ibv_destroy_qp(struct ibv_qp *base)
{
    struct ctx *ctx = ctx_of(base->context);
    pthread_mutex_lock(&ctx->lock);
    reset(qp_of(base));
    ctx->qps[base->qp_num & (QPS_MAX - 1)] = NULL;
    while (ctx->qps_next && !ctx->qps[ctx->qps_next - 1])
        ctx->qps_next--;
    pthread_mutex_unlock(&ctx->lock);
    qp_free(qp_of(base));
    return 0;
}

void qp_break(struct qp *qp)
{
    struct receive receive;
    const struct ibv_qp *base = &qp->ex.qp_base;
    qp->ex.qp_base.state = IBV_QPS_ERR;
    if (qp->message == RC_SEND_FIRST) { /* what has come in part */
        const struct ibv_wc wc = {.wr_id = qp->receive.wr_id, .status = IBV_WC_WR_FLUSH_ERR,
                                  .opcode = IBV_WC_RECV, .qp_num = base->qp_num};
        receive_complete(qp, &wc, false);
    }
    qp->message = NOTHING;
    for (; qp->sends_count; qp->sends_count--) {
        datagram_forget(&qp->sends[qp->sends_head]);
        qp_complete(qp, &qp->sends[qp->sends_head], IBV_WC_WR_FLUSH_ERR);
        qp->sends_head = (qp->sends_head + 1) % qp->sends_size;
    }
    while (!base->srq && receive_take(qp, &receive)) {
        const struct ibv_wc wc = {.wr_id = receive.wr_id, .status = IBV_WC_WR_FLUSH_ERR,
                                  .opcode = IBV_WC_RECV, .qp_num = base->qp_num};
        receive_complete(qp, &wc, false);
    }
    qp->at = 0;
    qp->timer = qp->rnr_until = 0;
    qp->answers_count = 0;
}

void qp_fail(struct qp *qp, int status)
{
    if (qp->sends_count) {
        qp_complete(qp, &qp->sends[qp->sends_head], status);
        qp->sends_head = (qp->sends_head + 1) % qp->sends_size;
        qp->sends_count--;
    }
    qp_break(qp);
}

/* --- states ----------------------------------------------------------------------------------- */

/* What a change of state needs to be told; -1: there is no such change. */
static int needed(int from, int to, bool is_datagram)
{
    if (is_datagram && from == IBV_QPS_RESET && to == IBV_QPS_INIT)
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    if (is_datagram && from == IBV_QPS_INIT && to == IBV_QPS_RTR)
        return 0;
    if (is_datagram && from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        return IBV_QP_SQ_PSN;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return 0;
    if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    return from == to && from != IBV_QPS_RESET ? 0 : -1;
}

#define TAKE(bit, member) \
    if (mask & bit) \
        qp->attr.member = attr->member

static void take_attributes(struct qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_QKEY, qkey);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
    if (mask & IBV_QP_PATH_MTU)
        qp->mtu = 128u << attr->path_mtu;
    if (mask & IBV_QP_RQ_PSN)
        qp->expected = SEQ_FROM + (attr->rq_psn & PSN_MASK);
    if (mask & IBV_QP_SQ_PSN)
        qp->next = qp->una = qp->high = qp->to_assign = SEQ_FROM + (attr->sq_psn & PSN_MASK);
}

static int judge(const struct ctx *ctx, const struct qp *qp, const struct ibv_qp_attr *attr,
                 int mask)
{
    int from = qp->ex.qp_base.state, to = mask & IBV_QP_STATE ? attr->qp_state : from;
    int needs = needed(from, to, datagram_is(qp));
    if (needs < 0 || (mask & needs) != needs || (mask & IBV_QP_PORT && attr->port_num != 1) ||
        (mask & IBV_QP_PKEY_INDEX && attr->pkey_index) ||
        (mask & IBV_QP_PATH_MTU &&
         (attr->path_mtu < IBV_MTU_256 || attr->path_mtu > IBV_MTU_4096 ||
          attr->path_mtu > ctx->active_mtu)) ||
        (mask & IBV_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > READS_MAX) ||
        (mask & IBV_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > READS_MAX))
        return EINVAL;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask)
{
    struct qp *qp = qp_of(base);
    struct ctx *ctx = ctx_of(base->context);
    int code = judge(ctx, qp, attr, mask);
    if (!code && mask & IBV_QP_AV) {
        uint32_t to = mask & IBV_QP_DEST_QPN ? attr->dest_qp_num : qp->attr.dest_qp_num;
        code = way_find(ctx, &qp->way, &attr->ah_attr); /* which may wait for an answer */
        if (!code)
            way_spread(&qp->way, attr->ah_attr.grh.flow_label, base->qp_num, to);
    }
    if (code)
        return code;
    pthread_mutex_lock(&ctx->lock);
    take_attributes(qp, attr, mask);
    if (mask & IBV_QP_STATE) {
        if (attr->qp_state == IBV_QPS_RESET)
            reset(qp);
        else if (attr->qp_state == IBV_QPS_ERR && base->state != IBV_QPS_ERR)
            qp_break(qp);
        if (base->state == IBV_QPS_RESET)
            qp->message = NOTHING;
        base->state = attr->qp_state;
        if (attr->qp_state == IBV_QPS_RTR && !datagram_is(qp)) {
            rate_begin(ctx, qp);
            record_pair(ctx, qp);
        }
    }
    pthread_mutex_unlock(&ctx->lock);
    port_wake(ctx);
    if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RTS)
        begin_together();
    return 0;
}

int ibv_query_qp(struct ibv_qp *base, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    struct qp *qp = qp_of(base);
    struct ctx *ctx = ctx_of(base->context);
    (void)mask;
    pthread_mutex_lock(&ctx->lock);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = base->state;
    attr->sq_psn = (uint32_t)qp->next & PSN_MASK;
    attr->rq_psn = (uint32_t)qp->expected & PSN_MASK;
    attr->cap = qp->init.cap;
    *init = qp->init;
    pthread_mutex_unlock(&ctx->lock);
    return 0;
}

/* --- shared receive queues -------------------------------------------------------------------- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    struct srq *srq = calloc(1, sizeof *srq);
    errno = init->attr.max_wr > WR_MAX || init->attr.max_sge > SGE_MAX ? EINVAL : ENOMEM;
    if (!srq || errno == EINVAL ||
        !receives_init(&srq->queue, init->attr.max_wr, init->attr.max_sge)) {
        free(srq);
        return NULL;
    }
    srq->base = (struct ibv_srq){.context = pd->context, .srq_context = init->srq_context,
                                 .pd = pd};
    pthread_mutex_init(&srq->base.mutex, NULL);
    pthread_cond_init(&srq->base.cond, NULL);
    return &srq->base;
}

int ibv_modify_srq(struct ibv_srq *base, struct ibv_srq_attr *attr, int mask)
{
    if (mask & IBV_SRQ_MAX_WR)
        return EOPNOTSUPP;
    if (mask & IBV_SRQ_LIMIT)
        ((struct srq *)base)->limit = attr->srq_limit;
    return 0;
}

int ibv_query_srq(struct ibv_srq *base, struct ibv_srq_attr *attr)
{
    const struct srq *srq = (struct srq *)base;
    *attr = (struct ibv_srq_attr){srq->queue.size, srq->queue.sge_most, srq->limit};
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *base)
{
    struct ctx *ctx = ctx_of(base->context);
    struct srq *srq = (struct srq *)base;
    int code = 0;
    pthread_mutex_lock(&ctx->lock);
    for (uint32_t i = 0; i < ctx->qps_next && !code; i++)
        code = ctx->qps[i] && ctx->qps[i]->ex.qp_base.srq == base ? EBUSY : 0;
    pthread_mutex_unlock(&ctx->lock);
    if (code)
        return code;
    free(srq->queue.slots);
    free(srq);
    return 0;
}
