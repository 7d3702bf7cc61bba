/* Two programs of which one asks the other for what is refused, case by case.
 *
 *   peer ADDRESS     waits on "-", else connects to the one that waits
 *
 * It prints a line each, "CASE STATUS", as the requester sees it.
 */
#define _GNU_SOURCE
#include "meeting.h"

enum { ROOM = 1 << 16, RECEIVES = 4, TIMEOUT = 8 };

struct side {
    struct end end;
    uint32_t rkey, weak_rkey;
    uint64_t address;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *receive_cq;
static struct ibv_mr *mr, *weak, *scratch_mr;
static struct ibv_qp *qp;
static struct side here, there;
static _Alignas(64) uint8_t memory[ROOM], scratch[ROOM];

static void post_receive(uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)scratch, length, scratch_mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    need(!context->ops.post_recv(qp, &wr, &bad), "post_recv");
}

/* A pair that is connected; `wrong` is added to the other's number. */
static void connect_pair(uint32_t wrong, int mtu)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = receive_cq, .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1, .cap = {4, RECEIVES, 1, 1, 0}};
    qp = ibv_create_qp(pd, &init);
    need(qp, "create_qp");
    here = (struct side){.end = {.qpn = qp->qp_num, .psn = 0xFFFFFF}, .rkey = mr->rkey,
                         .weak_rkey = weak->rkey, .address = (uintptr_t)memory};
    here.end.gid_index = gid_index(context);
    need(!ibv_query_gid(context, 1, here.end.gid_index, &here.end.gid), "query_gid");
    exchange(&here, &there, sizeof here);
    there.end.qpn += wrong;
    connect_qp(qp, here.end, there.end, mtu, TIMEOUT, 1);
}

static struct ibv_wc wait_one(struct ibv_cq *queue)
{
    struct ibv_wc wc;
    int n;
    while (!(n = context->ops.poll_cq(queue, 1, &wc)))
        ;
    need(n == 1, "poll_cq");
    return wc;
}

static int status_of(int opcode, uint32_t rkey, uint64_t address, uint32_t length, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)scratch, length, lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
    wr.wr.rdma.remote_addr = address;
    wr.wr.rdma.rkey = rkey;
    need(!context->ops.post_send(qp, &wr, &bad), "post_send");
    wr.wr_id = 1;
    need(!context->ops.post_send(qp, &wr, &bad), "post_send");
    int status = wait_one(cq).status;
    need(wait_one(cq).status == IBV_WC_WR_FLUSH_ERR, "what follows is not flushed");
    return status;
}

enum { FREED = 7 }; /* of the cases: a key of memory that is registered no more */

static void go_wrong(bool asks)
{
    const char *const names[] = {"wrong-key", "beyond-the-end", "not-permitted",
                                 "read-not-permitted", "local-key", "no-receive", "too-long",
                                 "freed", "nobody"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t done = 0, told;
        bool is_nobody = !strcmp(names[i], "nobody"), is_long = !strcmp(names[i], "too-long");
        struct ibv_mr *kept = weak;
        if (i == FREED)
            weak = ibv_reg_mr(pd, memory, ROOM, ALL_ACCESS);
        connect_pair(is_nobody ? 7 : 0, IBV_MTU_256 + (int)i % 5);
        if (i == FREED)
            ibv_dereg_mr(weak);
        weak = kept;
        if (!asks && is_long)
            post_receive(10);
        exchange(&done, &told, sizeof done);
        if (asks) {
            int opcode = IBV_WR_RDMA_WRITE;
            uint32_t rkey = there.rkey, lkey = scratch_mr->lkey, length = 300;
            uint64_t at = there.address;
            switch (i) {
            case 0: rkey ^= 1; break;
            case 1: at += ROOM - 299; break;
            case 2: rkey = there.weak_rkey; break;
            case 3: rkey = there.weak_rkey; opcode = IBV_WR_RDMA_READ; break;
            case 4: lkey ^= 0x5500; break;
            case 5: case 6: opcode = IBV_WR_SEND; break;
            case FREED: rkey = there.weak_rkey; break;
            }
            printf("%s %d\n", names[i], status_of(opcode, rkey, at, length, lkey));
        }
        exchange(&done, &told, sizeof done);
        if (!asks && is_long)
            printf("too-long-received %d\n", wait_one(receive_cq).status);
        ibv_destroy_qp(qp);
    }
}

int main(int count, char **words)
{
    need(count == 2, "a word is wanted");
    setvbuf(stdout, NULL, _IOLBF, 0);
    meet(words[1]);
    context = open_device();
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    receive_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, ROOM, ALL_ACCESS);
    weak = ibv_reg_mr(pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
    scratch_mr = ibv_reg_mr(pd, scratch, sizeof scratch, IBV_ACCESS_LOCAL_WRITE);
    need(mr && weak && scratch_mr, "reg_mr");
    go_wrong(strcmp(words[1], "-"));
    ibv_dereg_mr(mr), ibv_dereg_mr(weak), ibv_dereg_mr(scratch_mr);
    return ibv_destroy_cq(cq) || ibv_destroy_cq(receive_cq) || ibv_dealloc_pd(pd) ||
           ibv_close_device(context);
}
