/* What a program may ask too much of, and what becomes of it. A line each, "WHAT NUMBER".
 *
 *   limits [registrations]     all but registrations, or these alone
 */
#include <sys/wait.h>

#include "meeting.h"

enum { PAIRS = 10000, POSTS = 3, ROOM = 4, WRITES = 9, MAX_MS = 20000 };

static void is(const char *what, bool so) { printf("%s %d\n", what, so); }

/* Memory is registered until there are no more keys; then one is given back, and taken again. */
static int registrations(struct ibv_pd *pd)
{
    static uint8_t memory[64];
    struct ibv_mr *mr, *last = NULL;
    int made = 0;
    while ((mr = ibv_reg_mr(pd, memory, sizeof memory, 0)))
        made++, last = mr;
    printf("registrations %d\n", made);
    is("no-more-memory", errno == ENOMEM);
    is("one-more", last && !ibv_dereg_mr(last) && ibv_reg_mr(pd, memory, sizeof memory, 0));
    is("still-none", !ibv_reg_mr(pd, memory, sizeof memory, 0));
    return 0;
}

/* Two queue pairs of this host, connected with each other. */
static void connect_both(struct ibv_context *context, struct ibv_qp *const qps[2])
{
    struct end ends[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct end){.qpn = qps[i]->qp_num, .gid_index = gid_index(context)};
        ibv_query_gid(context, 1, ends[i].gid_index, &ends[i].gid);
    }
    for (int i = 0; i < 2; i++)
        connect_qp(qps[i], ends[i], ends[1 - i], IBV_MTU_256 + 2, 15, 7);
}

/* More is asked for than the queue of completions has room for, and nobody looks at it. All of it
 * is done; what there was no room for is lost, and told so. */
static void never_polls(struct ibv_context *context, struct ibv_pd *pd)
{
    static volatile uint64_t from[WRITES], to[WRITES];
    struct ibv_mr *mrs[2] = {ibv_reg_mr(pd, (void *)from, sizeof from, 0),
                             ibv_reg_mr(pd, (void *)to, sizeof to, ALL_ACCESS)};
    struct ibv_cq *cq = ibv_create_cq(context, ROOM, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1, .cap = {WRITES, 1, 1, 1, 0}};
    struct ibv_qp *qps[2] = {ibv_create_qp(pd, &init), ibv_create_qp(pd, &init)};
    struct ibv_send_wr *bad;
    connect_both(context, qps);
    for (int i = 0; i < WRITES; i++) {
        from[i] = (uint64_t)i + 1;
        struct ibv_sge sge = {(uintptr_t)&from[i], sizeof from[i], mrs[0]->lkey};
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
        wr.wr.rdma.remote_addr = (uintptr_t)&to[i];
        wr.wr.rdma.rkey = mrs[1]->rkey;
        need(!context->ops.post_send(qps[0], &wr, &bad), "post_send");
    }
    for (int i = 0; i < MAX_MS && to[WRITES - 1] != WRITES; i++)
        usleep(1000);
    is("done-without-polling", to[WRITES - 1] == WRITES);
    struct ibv_wc wc[WRITES];
    int told = 0, n;
    for (int i = 0; i < MAX_MS && (n = context->ops.poll_cq(cq, WRITES, wc)) >= 0; i++)
        told += n;
    printf("told-of %d\nof-the-rest %d\n", told, n);
    is("destroyed", !ibv_destroy_qp(qps[0]) && !ibv_destroy_qp(qps[1]) && !ibv_destroy_cq(cq) &&
                        !ibv_dereg_mr(mrs[0]) && !ibv_dereg_mr(mrs[1]));
}

/* A child that does nothing with the device, or closes it, or opens it anew, and ends. */
static bool forked(struct ibv_context *context, int does)
{
    int how = 1;
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm(30);
        _exit(does == 1 ? ibv_close_device(context)
                        : does == 2 ? ibv_close_device(open_device()) : 0);
    }
    waitpid(child, &how, 0);
    return !how;
}

int main(int count, char **words)
{
    static struct ibv_qp *pairs[PAIRS];
    struct ibv_context *context = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    if (count > 1 && !strcmp(words[1], "registrations"))
        return registrations(pd);
    never_polls(context, pd);
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

    is("a-child", forked(context, 0));
    is("a-child-that-closes", forked(context, 1));
    is("a-child-that-opens", forked(context, 2));
    struct ibv_mr *mr = ibv_reg_mr(pd, pairs, sizeof pairs, IBV_ACCESS_LOCAL_WRITE);
    is("after-forks", mr && !ibv_dereg_mr(mr));
    while (made)
        ibv_destroy_qp(pairs[--made]);
    printf("all-ended %d\n", !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
    return ibv_close_device(context);
}
