/* Two programs that speak verbs with each other, to be compared with what should come of it.
 *
 *   peer ADDRESS OPERATIONS SEED     waits on "-", else connects to the one that waits
 *
 * First random operations, of all kinds and sizes, several under way: what is read, fetched
 * and left in memory is compared with a model; then what goes wrong, case by case. It prints a
 * line each: "operations N differences M", and "CASE STATUS", as the requester sees it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "verbs_abi.h"

struct ibv_device **ibv_get_device_list(int *);
void ibv_free_device_list(struct ibv_device **);
struct ibv_context *ibv_open_device(struct ibv_device *);
int ibv_close_device(struct ibv_context *);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *);
int ibv_dealloc_pd(struct ibv_pd *);
struct ibv_mr *ibv_reg_mr(struct ibv_pd *, void *, size_t, int);
int ibv_dereg_mr(struct ibv_mr *);
struct ibv_cq *ibv_create_cq(struct ibv_context *, int, void *, void *, int);
int ibv_destroy_cq(struct ibv_cq *);
struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *);
int ibv_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int);
int ibv_destroy_qp(struct ibv_qp *);
int ibv_query_gid(struct ibv_context *, uint8_t, int, union ibv_gid *);

enum {
    PORT = 18600,
    ROOM = 1 << 16,
    SLOTS = 8, /* operations under way */
    LONGEST = 12000,
    RECEIVES = 64,
    WORDS = 16, /* at the end of the memory: of atomic operations */
    ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
          IBV_ACCESS_REMOTE_ATOMIC,
};

struct side {
    uint32_t qpn, psn, rkey, weak_rkey;
    uint64_t address;
    union ibv_gid gid;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *receive_cq;
static struct ibv_mr *mr, *weak, *scratch_mr, *inbox_mr;
static struct ibv_qp *qp;
static struct side here, there;
static int peer;
static _Alignas(64) uint8_t memory[ROOM], model[ROOM], scratch[SLOTS][LONGEST + 64];
static uint8_t inbox[RECEIVES][LONGEST];
static uint64_t state;

static void need(bool fine, const char *what)
{
    if (!fine) {
        perror(what);
        exit(2);
    }
}

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static uint32_t sum(const uint8_t *p, uint32_t n)
{
    uint32_t h = 2166136261u;
    while (n--)
        h = (h ^ *p++) * 16777619u;
    return h;
}

static void meet(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (strcmp(address, "-")) {
        inet_pton(AF_INET, address, &at.sin_addr);
        for (int i = 0; connect(fd, (void *)&at, sizeof at) && i < 200; i++)
            usleep(50000);
        peer = fd;
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need(!bind(fd, (void *)&at, sizeof at) && !listen(fd, 1), "listen");
    peer = accept(fd, NULL, NULL);
    close(fd);
}

static void exchange(const void *mine, void *others, size_t n)
{
    need(write(peer, mine, n) == (ssize_t)n, "write");
    need(recv(peer, others, n, MSG_WAITALL) == (ssize_t)n, "read");
}

static void post_receive(uint64_t slot, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t)inbox[slot], length, inbox_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;
    need(!context->ops.post_recv(qp, &wr, &bad), "post_recv");
}

/* A pair that is connected; `wrong` is added to the other's number. */
static void connect_pair(uint32_t wrong, int timeout, int mtu)
{
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = receive_cq, .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = 1,
                                    .cap = {64, RECEIVES, 2, 1, 64}};
    qp = ibv_create_qp(pd, &init);
    need(qp, "create_qp");
    here = (struct side){.qpn = qp->qp_num, .psn = draw(1 << 24), .rkey = mr->rkey,
                         .weak_rkey = weak->rkey, .address = (uintptr_t)memory};
    if (draw(2))
        here.psn |= 0xFFFF00; /* so that numbers begin anew soon */
    need(!ibv_query_gid(context, 1, 0, &here.gid), "query_gid");
    exchange(&here, &there, sizeof here);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL,
        .path_mtu = mtu, .dest_qp_num = there.qpn + wrong, .rq_psn = there.psn,
        .sq_psn = here.psn, .max_rd_atomic = 4, .max_dest_rd_atomic = 16, .min_rnr_timer = 1,
        .timeout = (uint8_t)timeout, .retry_cnt = 7, .rnr_retry = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = there.gid, .hop_limit = 64}},
    };
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       IBV_QP_ACCESS_FLAGS), "INIT");
    attr.qp_state = IBV_QPS_RTR;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER), "RTR");
    attr.qp_state = IBV_QPS_RTS;
    need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
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

/* --- random operations ------------------------------------------------------------------------ */

struct planned {
    int opcode;
    uint32_t at, length;
    uint64_t expected;
    uint8_t was[LONGEST];
};
static struct planned planned[SLOTS];

static void post(uint64_t slot)
{
    struct planned *p = &planned[slot];
    const int kinds[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM,
                         IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
                         IBV_WR_RDMA_WRITE_WITH_IMM};
    p->opcode = kinds[draw(6)];
    bool is_atomic = p->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                     p->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    p->length = is_atomic ? 8 : draw(4) ? draw(LONGEST) : draw(8);
    p->at = is_atomic ? ROOM - 8 * (1 + draw(WORDS)) : draw(ROOM - 8 * WORDS - p->length);
    uint32_t first = p->length / 3;
    struct ibv_sge sge[2] = {
        {(uintptr_t)scratch[slot], first, scratch_mr->lkey},
        {(uintptr_t)scratch[slot] + first, p->length - first, scratch_mr->lkey},
    };
    struct ibv_send_wr wr = {.wr_id = slot, .sg_list = sge, .num_sge = 2, .opcode = p->opcode,
                             .send_flags = IBV_SEND_FENCE}, *bad;
    wr.wr.rdma.remote_addr = there.address + p->at;
    wr.wr.rdma.rkey = there.rkey;
    if (is_atomic) {
        uint64_t value, swap_add = draw(1000);
        memcpy(&value, model + p->at, 8);
        p->expected = value;
        wr.wr.atomic.compare_add = swap_add;
        wr.wr.atomic.rkey = there.rkey;
        if (p->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
            wr.wr.atomic.compare_add = draw(2) ? value : value + 1;
            wr.wr.atomic.swap = swap_add;
            value = wr.wr.atomic.compare_add == value ? swap_add : value;
        } else {
            value += swap_add;
        }
        memcpy(model + p->at, &value, 8);
    } else if (p->opcode == IBV_WR_RDMA_READ) {
        memset(scratch[slot], 0xEE, p->length);
        memcpy(p->was, model + p->at, p->length);
    } else {
        for (uint32_t i = 0; i < p->length; i++)
            scratch[slot][i] = (uint8_t)draw(256);
        wr.imm_data = sum(scratch[slot], p->length);
        if (p->opcode != IBV_WR_SEND_WITH_IMM)
            memcpy(model + p->at, scratch[slot], p->length);
    }
    need(!context->ops.post_send(qp, &wr, &bad), "post_send");
}

static unsigned differs(uint64_t slot)
{
    const struct planned *p = &planned[slot];
    if (p->opcode == IBV_WR_RDMA_READ)
        return memcmp(p->was, scratch[slot], p->length) != 0;
    if (p->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || p->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
        return memcmp(&p->expected, scratch[slot], 8) != 0;
    return 0;
}

static void ask(unsigned operations)
{
    unsigned differences = 0, posted = 0, done = 0;
    for (; posted < SLOTS && posted < operations; posted++)
        post(posted);
    for (; done < operations; done++) {
        struct ibv_wc wc = wait_one(cq);
        if (wc.status) {
            printf("operation %u failed: %d\n", done, wc.status);
            exit(1);
        }
        differences += differs(wc.wr_id);
        if (posted < operations) {
            post(wc.wr_id);
            posted++;
        }
    }
    uint32_t end[2] = {sum(model, ROOM), 0}, found[2];
    exchange(end, found, sizeof end);
    printf("operations %u differences %u\n", operations,
           differences + (found[0] != end[0]) + found[1]);
}

static void serve(void)
{
    uint32_t end[2] = {0, 0}, told[2];
    for (;;) {
        struct ibv_wc wc;
        while (context->ops.poll_cq(receive_cq, 1, &wc) == 1) {
            bool sent = wc.opcode == IBV_WC_RECV;
            end[1] += wc.status || (sent && wc.imm_data != sum(inbox[wc.wr_id], wc.byte_len));
            post_receive(wc.wr_id, LONGEST);
        }
        if (recv(peer, told, sizeof told, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)sizeof told)
            break;
    }
    end[0] = sum(memory, ROOM);
    exchange(end, told, sizeof end);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

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
            weak = ibv_reg_mr(pd, memory, ROOM, ALL);
        connect_pair(is_nobody ? 7 : 0, 8, IBV_MTU_256 + (int)i % 5);
        if (i == FREED)
            ibv_dereg_mr(weak);
        weak = kept;
        if (!asks && is_long)
            post_receive(0, 10);
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
    need(count == 4, "three words are wanted");
    bool asks = strcmp(words[1], "-");
    unsigned operations = (unsigned)atoi(words[2]);
    state = strtoull(words[3], NULL, 10) * 2 + asks;
    setvbuf(stdout, NULL, _IOLBF, 0);
    meet(words[1]);
    struct ibv_device **devices = ibv_get_device_list(NULL);
    context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    need(context, "open_device");
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 256, NULL, NULL, 0);
    receive_cq = ibv_create_cq(context, 256, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, ROOM, ALL);
    weak = ibv_reg_mr(pd, memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
    scratch_mr = ibv_reg_mr(pd, scratch, sizeof scratch, IBV_ACCESS_LOCAL_WRITE);
    inbox_mr = ibv_reg_mr(pd, inbox, sizeof inbox, IBV_ACCESS_LOCAL_WRITE);
    need(mr && weak && scratch_mr && inbox_mr, "reg_mr");
    connect_pair(0, 12, IBV_MTU_256 + (int)(strtoul(words[3], NULL, 10) % 5));
    for (uint64_t i = 0; !asks && i < RECEIVES; i++)
        post_receive(i, LONGEST);
    uint32_t ready = 1, told;
    exchange(&ready, &told, sizeof ready);
    if (asks)
        ask(operations);
    else
        serve();
    ibv_destroy_qp(qp);
    go_wrong(asks);
    ibv_dereg_mr(mr), ibv_dereg_mr(weak), ibv_dereg_mr(scratch_mr), ibv_dereg_mr(inbox_mr);
    return ibv_destroy_cq(cq) || ibv_destroy_cq(receive_cq) || ibv_dealloc_pd(pd) ||
           ibv_close_device(context);
}
