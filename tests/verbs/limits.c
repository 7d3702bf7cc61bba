/* What a program may ask too much of, and what becomes of it. A line each, "WHAT NUMBER". */
#include <sys/wait.h>

#include "calls.h"

enum { PAIRS = 10000, POSTS = 3 };

int main(void)
{
    static struct ibv_qp *pairs[PAIRS];
    struct ibv_context *context = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1, .cap = {4, 4, 1, 1, 0}};
    int made = 0;
    for (; made < PAIRS && (pairs[made] = ibv_create_qp(pd, &init)); made++)
        ;
    printf("pairs %d\n", made);
    printf("busy-domain %d\n", ibv_dealloc_pd(pd) == EBUSY);
    printf("busy-queue %d\n", ibv_destroy_cq(cq) == EBUSY);

    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    ibv_modify_qp(pairs[0], &attr, IBV_QP_STATE);
    int posted = 0;
    while (posted < POSTS && !context->ops.post_send(pairs[0], &wr, &bad))
        posted++;
    struct ibv_wc wc;
    int first = context->ops.poll_cq(cq, 1, &wc), second = context->ops.poll_cq(cq, 1, &wc);
    printf("posted %d\nflushed %d\nbeyond-the-queue %d\n", posted,
           first == 1 && wc.status == IBV_WC_WR_FLUSH_ERR, second);
    init.cap.max_send_wr = 1 << 20;
    printf("too-long-a-queue %d\n", !ibv_create_qp(pd, &init) && errno == EINVAL);
    printf("no-such-queue %d\n", !ibv_create_cq(context, 0, NULL, NULL, 0) && errno == EINVAL);
    printf("write-of-what-is-not-writable %d\n",
           !ibv_reg_mr(pd, pairs, sizeof pairs, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);

    fflush(stdout);
    pid_t child = fork(); /* which does nothing with the device, and ends */
    if (!child)
        _exit(0);
    int how = 1;
    waitpid(child, &how, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, pairs, sizeof pairs, IBV_ACCESS_LOCAL_WRITE);
    printf("after-a-fork %d\n", !how && mr && !ibv_dereg_mr(mr));
    while (made)
        ibv_destroy_qp(pairs[--made]);
    printf("all-ended %d\n", !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
    return ibv_close_device(context);
}
