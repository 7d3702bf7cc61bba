/* Datagrams (UD): a packet each, to whom an address handle and a number say, answered by nobody.
 *
 * Whoever sent it, it goes where the oldest receive says, behind 40 bytes that hold its IP header,
 * if it knows the queue pair's Q key. Without a receive it is lost, as one on the way might be.
 */
#include <errno.h>
#include <stdlib.h>

#include "rc.h"

enum { DETH = 8, GRH = 40, QKEY_IS_OURS = 1u << 31, SQPN_AT = 4 };
enum { CAME_BY_IPV6 = 9, CAME_BY_IPV4 }; /* where service levels stand in completions */

bool datagram_is(const struct qp *qp) { return qp->ex.qp_base.qp_type == IBV_QPT_UD; }

/* --- address handles -------------------------------------------------------------------------- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct ah *ah = calloc(1, sizeof *ah);
    errno = ah ? way_find(ctx_of(pd->context), &ah->way, attr) : ENOMEM;
    if (errno) {
        free(ah);
        return NULL;
    }
    ah->base = (struct ibv_ah){.context = pd->context, .pd = pd};
    ah->attr = *attr;
    return &ah->base;
}

static void release(struct ah *ah)
{
    if (ah->is_over && !ah->users)
        free(ah);
}

int ibv_destroy_ah(struct ibv_ah *base)
{
    struct ah *ah = (struct ah *)base;
    struct ctx *ctx = ctx_of(base->context);
    pthread_mutex_lock(&ctx->lock);
    ah->is_over = true;
    release(ah);
    pthread_mutex_unlock(&ctx->lock);
    return 0;
}

static int index_of(const struct ctx *ctx, const union ibv_gid *gid)
{
    int index = 0;
    while (index < ctx->gid_count && memcmp(&ctx->gids[index], gid, sizeof *gid))
        index++;
    return index;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
                        struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    const uint8_t *ip = (const uint8_t *)grh + GRH - WIRE_IPV4;
    union ibv_gid from = grh->sgid, to = grh->dgid;
    bool is_v4 = ip[0] == 0x45 && *(const uint8_t *)grh >> 4 != 6;
    if (!(wc->wc_flags & IBV_WC_GRH) || port != 1) {
        errno = EINVAL;
        return -1;
    }
    if (is_v4) {
        from = to = (union ibv_gid){.raw = {[10] = 0xFF, [11] = 0xFF}};
        memcpy(from.raw + 12, ip + 12, 4);
        memcpy(to.raw + 12, ip + 16, 4);
    }
    *attr = (struct ibv_ah_attr){.is_global = 1, .port_num = port,
                                 .grh = {.dgid = from, .hop_limit = 64}};
    attr->grh.sgid_index = (uint8_t)index_of(ctx_of(context), &to);
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port)
{
    struct ibv_ah_attr attr;
    return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL : ibv_create_ah(pd, &attr);
}

/* --- sent ------------------------------------------------------------------------------------- */

void datagram_forget(struct work *work)
{
    struct ah *ah = (struct ah *)work->ah;
    work->ah = NULL;
    if (!ah)
        return;
    ah->users--;
    release(ah);
}

/* False: not now, or the queue pair is broken. */
static bool send_one(struct ctx *ctx, struct qp *qp, struct work *work)
{
    struct ah *ah = (struct ah *)work->ah;
    const struct ibv_qp *base = &qp->ex.qp_base;
    bool has_imm = work->opcode == IBV_WR_SEND_WITH_IMM;
    uint8_t opcode = has_imm ? UD_SEND_ONLY_IMM : UD_SEND_ONLY;
    way_spread(&ah->way, ah->attr.grh.flow_label, base->qp_num, (uint32_t)work->remote);
    uint8_t *bth = packet_begin(ctx, &ah->way, (uint32_t)work->remote, opcode, qp->next, false);
    uint8_t *at = bth + WIRE_BTH;
    if (work->flags & IBV_SEND_SOLICITED)
        bth[1] |= 0x80;
    be32_store(at, work->rkey & QKEY_IS_OURS ? qp->attr.qkey : work->rkey);
    be32_store(at + SQPN_AT, base->qp_num);
    at += DETH;
    if (has_imm) {
        memcpy(at, &work->imm, WIRE_IMMDT); /* as the program gave it */
        at += WIRE_IMMDT;
    }
    if (work->flags & IBV_SEND_INLINE) {
        memcpy(at, work->inlined, work->length);
    } else if (!gather(ctx, base->pd, work->sge, work->sges, 0, at, work->length)) {
        datagram_forget(work);
        qp_fail(qp, IBV_WC_LOC_PROT_ERR);
        return false;
    }
    return packet_end(ctx, bth, at + work->length, work->length);
}

void datagram_send(struct ctx *ctx, struct qp *qp, ns_t now)
{
    while (qp->ex.qp_base.state == IBV_QPS_RTS && qp->sends_count && port_may_send(ctx, now)) {
        struct work *work = &qp->sends[qp->sends_head];
        if (!send_one(ctx, qp, work))
            return;
        record_done(qp, work);
        datagram_forget(work);
        qp_complete(qp, work, IBV_WC_SUCCESS);
        qp->sends_head = (qp->sends_head + 1) % qp->sends_size;
        qp->sends_count--;
        qp->next++;
    }
}

/* --- received --------------------------------------------------------------------------------- */

void datagram_arrived(struct ctx *ctx, struct qp *qp, const uint8_t *ip, const uint8_t *bth,
                      uint32_t bytes)
{
    const struct ibv_qp *base = &qp->ex.qp_base;
    const struct ibv_pd *pd = base->srq ? base->srq->pd : base->pd;
    bool has_imm = bth[0] == UD_SEND_ONLY_IMM;
    uint32_t head = WIRE_BTH + DETH + (has_imm ? WIRE_IMMDT : 0) + (bth[1] >> 4 & 3);
    const uint8_t *deth = bth + WIRE_BTH, *payload = deth + DETH + (has_imm ? WIRE_IMMDT : 0);
    uint8_t grh[GRH] = {0};
    struct receive to;
    if ((bth[0] != UD_SEND_ONLY && !has_imm) || bytes < head ||
        be32_load(deth) != qp->attr.qkey)
        return;
    if (!receive_take(qp, &to)) {
        ctx->counts.out_of_buffer++;
        return;
    }
    memcpy(grh + GRH - ip_bytes(ip), ip, ip_bytes(ip));
    uint32_t length = bytes - head;
    uint64_t room = receive_room(&to);
    struct ibv_wc wc = {
        .wr_id = to.wr_id,
        .opcode = IBV_WC_RECV,
        .byte_len = GRH + length,
        .qp_num = base->qp_num,
        .src_qp = be32_load(deth + SQPN_AT) & PSN_MASK,
        .wc_flags = IBV_WC_GRH | (has_imm ? IBV_WC_WITH_IMM : 0),
        .sl = ip_is_v6(ip) ? CAME_BY_IPV6 : CAME_BY_IPV4,
    };
    if (has_imm)
        memcpy(&wc.imm_data, deth + DETH, WIRE_IMMDT);
    if (room < GRH + (uint64_t)length)
        wc.status = IBV_WC_LOC_LEN_ERR;
    else if (!scatter(ctx, pd, to.sge, to.sges, 0, grh, GRH) ||
             !scatter(ctx, pd, to.sge, to.sges, GRH, payload, length))
        wc.status = IBV_WC_LOC_PROT_ERR;
    receive_complete(qp, &wc, bth[1] & 0x80);
    if (wc.status)
        qp_break(qp);
}
