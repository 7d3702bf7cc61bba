/* Carries out operations that a plan lists, and writes down what came of them, without judging it.
 *
 *   player ADDRESS PLAN LOG     waits on "-", else connects to the one that waits
 *
 * Plan and log are records of model.py, which judges them. Two queue pairs lead to the other
 * program: the first has a receive queue of its own and lists of requests, the second a shared
 * receive queue and ibv_wr_*. When receives are posted, and how many requests at once, is drawn
 * here: that changes nothing of what comes out.
 */
#define _GNU_SOURCE
#include "meeting.h"

enum {
    PAIRS = 2,
    POOL = 1 << 16, /* what is sent is a part of it */
    REGION = 1 << 14, /* of a pair, which the other changes and reads */
    KEYS = 32, /* that are there to be invalidated */
    SLOTS = 16, /* operations of a pair under way */
    LONGEST = 12000,
    GUARD = 32, /* after what lands: nothing may come there */
    LANDING = LONGEST + 64 + GUARD,
    RECEIVES = 16,
    PIECES = 3,
    TIMEOUT = 15, /* 134 ms: on a busy machine the wire may stand still for as long */
    FOREVER = 7,
    FILL = 0xEE,
};

struct operation {
    uint8_t pair, opcode, flags, pieces;
    uint32_t at, imm, unused;
    uint64_t compare_add, swap;
    struct { uint32_t from, length; } piece[PIECES];
    uint32_t place, also_unused; /* among those of its pair */
};

struct plan {
    uint32_t operations, mtu, seed;
    uint32_t receives[PAIRS]; /* that will be used */
};

struct record {
    uint8_t kind, pair, opcode, status; /* kind: 'o'peration, 'r'eceive, 'f'etched, 'm'emory */
    uint32_t index, flags, length, imm, bytes; /* bytes: that follow */
};

static struct pair {
    struct ibv_qp *qp;
    struct ibv_srq *srq;
    struct operation **all;
    uint32_t count, posted, done, landed;
    uint32_t receives, receives_posted, received;
    uint32_t rkey; /* of the other's region */
    uint64_t region;
} pairs[PAIRS];

static struct plan plan;
static FILE *log_file;
static struct ibv_context *context;
static uint8_t pool[POOL], region[PAIRS][REGION], landing[PAIRS][SLOTS][LANDING];
static uint8_t inbox[PAIRS][RECEIVES][LONGEST + 64];
static struct ibv_mr *pool_mr, *landing_mr, *inbox_mr, *region_mr, *to_invalidate[KEYS];
static uint32_t own_keys[KEYS], others_keys[KEYS];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void put(struct record record, const void *bytes)
{
    need(fwrite(&record, sizeof record, 1, log_file) == 1, "log");
    need(!record.bytes || fwrite(bytes, record.bytes, 1, log_file) == 1, "log");
}

static bool is_fetch(const struct operation *o)
{
    return o->opcode == IBV_WR_RDMA_READ || o->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* --- receives: each in three pieces, which lie apart ------------------------------------------ */

static uint32_t piece_at(uint32_t index, unsigned piece)
{
    return piece == 0 ? 0 : piece == 1 ? 1 + index % 40 : 300;
}

static struct ibv_sge receive_piece(uint32_t pair, uint32_t index, unsigned piece)
{
    bool is_last = piece == PIECES - 1;
    uint32_t at = piece_at(index, piece), end = is_last ? LONGEST + 3 : piece_at(index, piece + 1);
    uint8_t *room = inbox[pair][index % RECEIVES];
    return (struct ibv_sge){(uintptr_t)room + at + piece, end - at, inbox_mr->lkey};
}

static void post_receives(uint32_t number)
{
    struct pair *pair = &pairs[number];
    uint32_t want = draw(4) ? RECEIVES : 1; /* and then there are too few now and then */
    while (pair->receives_posted < pair->receives &&
           pair->receives_posted - pair->received < want) {
        struct ibv_sge sge[PIECES];
        for (unsigned i = 0; i < PIECES; i++)
            sge[i] = receive_piece(number, pair->receives_posted, i);
        struct ibv_recv_wr *bad, wr = {.wr_id = pair->receives_posted | (uint64_t)1 << 32,
                                       .sg_list = sge, .num_sge = PIECES};
        need(!(pair->srq ? context->ops.post_srq_recv(pair->srq, &wr, &bad)
                         : context->ops.post_recv(pair->qp, &wr, &bad)), "post_recv");
        pair->receives_posted++;
    }
}

static void take_received(uint32_t number, const struct ibv_wc *wc)
{
    static uint8_t bytes[LONGEST + 64];
    uint32_t index = (uint32_t)wc->wr_id, gathered = 0, imm = wc->imm_data;
    bool has_data = wc->opcode == IBV_WC_RECV && !wc->status;
    for (unsigned i = 0; i < PIECES && has_data && gathered < wc->byte_len; i++) {
        struct ibv_sge sge = receive_piece(number, index, i);
        uint32_t left = wc->byte_len - gathered, here = left < sge.length ? left : sge.length;
        memcpy(bytes + gathered, (void *)(uintptr_t)sge.addr, here);
        gathered += here;
    }
    if (wc->wc_flags & IBV_WC_WITH_INV)
        for (imm = 0; imm < KEYS && own_keys[imm] != wc->imm_data; imm++)
            ;
    put((struct record){'r', (uint8_t)number, (uint8_t)wc->opcode, (uint8_t)wc->status, index,
                        wc->wc_flags, wc->byte_len, imm, gathered}, bytes);
    pairs[number].received++;
}

/* --- requests --------------------------------------------------------------------------------- */

static void fill_pieces(const struct operation *o, struct ibv_sge *sge)
{
    uint8_t *to = landing[o->pair][o->place % SLOTS];
    if (is_fetch(o))
        memset(to, FILL, LANDING);
    for (unsigned i = 0; i < o->pieces; i++) {
        uint64_t base = is_fetch(o) ? (uintptr_t)to : (uintptr_t)pool;
        sge[i] = (struct ibv_sge){base + o->piece[i].from, o->piece[i].length,
                                  is_fetch(o) ? landing_mr->lkey : pool_mr->lkey};
    }
}

static uint32_t imm_of(const struct operation *o)
{
    return o->opcode == IBV_WR_SEND_WITH_INV ? others_keys[o->imm] : o->imm;
}

static void post_list(struct pair *pair, unsigned count)
{
    struct ibv_send_wr wr[SLOTS], *bad;
    struct ibv_sge sge[SLOTS][PIECES];
    for (unsigned i = 0; i < count; i++) {
        const struct operation *o = pair->all[pair->posted + i];
        fill_pieces(o, sge[i]);
        wr[i] = (struct ibv_send_wr){.wr_id = o->place, .next = i + 1 < count ? &wr[i + 1] : NULL,
                                     .sg_list = sge[i], .num_sge = o->pieces, .opcode = o->opcode,
                                     .send_flags = o->flags, .imm_data = imm_of(o)};
        if (is_fetch(o) && o->opcode != IBV_WR_RDMA_READ) {
            wr[i].wr.atomic.remote_addr = pair->region + o->at;
            wr[i].wr.atomic.compare_add = o->compare_add;
            wr[i].wr.atomic.swap = o->swap;
            wr[i].wr.atomic.rkey = pair->rkey;
        } else {
            wr[i].wr.rdma.remote_addr = pair->region + o->at;
            wr[i].wr.rdma.rkey = pair->rkey;
        }
    }
    need(!context->ops.post_send(pair->qp, wr, &bad), "post_send");
}

static void build(struct ibv_qp_ex *qp, const struct pair *pair, const struct operation *o)
{
    struct ibv_sge sge[PIECES];
    struct ibv_data_buf buffers[PIECES];
    uint64_t at = pair->region + o->at;
    qp->wr_id = o->place;
    qp->wr_flags = o->flags & ~(unsigned)IBV_SEND_INLINE;
    switch (o->opcode) {
    case IBV_WR_RDMA_WRITE: qp->wr_rdma_write(qp, pair->rkey, at); break;
    case IBV_WR_RDMA_WRITE_WITH_IMM: qp->wr_rdma_write_imm(qp, pair->rkey, at, o->imm); break;
    case IBV_WR_SEND: qp->wr_send(qp); break;
    case IBV_WR_SEND_WITH_IMM: qp->wr_send_imm(qp, o->imm); break;
    case IBV_WR_SEND_WITH_INV: qp->wr_send_inv(qp, imm_of(o)); break;
    case IBV_WR_RDMA_READ: qp->wr_rdma_read(qp, pair->rkey, at); break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        qp->wr_atomic_cmp_swp(qp, pair->rkey, at, o->compare_add, o->swap);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        qp->wr_atomic_fetch_add(qp, pair->rkey, at, o->compare_add);
        break;
    }
    fill_pieces(o, sge);
    for (unsigned i = 0; i < o->pieces; i++)
        buffers[i] = (struct ibv_data_buf){(void *)(uintptr_t)sge[i].addr, sge[i].length};
    if (o->flags & IBV_SEND_INLINE)
        qp->wr_set_inline_data_list(qp, o->pieces, buffers);
    else
        qp->wr_set_sge_list(qp, o->pieces, sge);
}

static void post_requests(struct pair *pair)
{
    unsigned room = SLOTS - (pair->posted - pair->done), left = pair->count - pair->posted;
    unsigned most = room < left ? room : left, count = most ? 1 + draw(most) : 0;
    if (!count)
        return;
    if (!pair->srq) {
        post_list(pair, count);
    } else {
        struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(pair->qp);
        qp->wr_start(qp);
        for (unsigned i = 0; i < count; i++)
            build(qp, pair, pair->all[pair->posted + i]);
        need(!qp->wr_complete(qp), "wr_complete");
    }
    pair->posted += count;
}

/* All up to it is over: what it and those before it fetched is there. */
static void take_done(uint32_t number, const struct ibv_wc *wc)
{
    struct pair *pair = &pairs[number];
    uint32_t index = (uint32_t)wc->wr_id;
    put((struct record){'o', (uint8_t)number, (uint8_t)wc->opcode, (uint8_t)wc->status, index,
                        0, 0, 0, 0}, NULL);
    for (; pair->landed <= index; pair->landed++) {
        const struct operation *o = pair->all[pair->landed];
        uint32_t end = 0;
        for (unsigned i = 0; i < o->pieces; i++)
            end = o->piece[i].from + o->piece[i].length;
        if (is_fetch(o))
            put((struct record){'f', (uint8_t)number, 0, 0, pair->landed, 0, 0, 0, end + GUARD},
                landing[number][pair->landed % SLOTS]);
    }
    pair->done = index + 1;
    if (wc->status)
        fprintf(stderr, "operation %u of pair %u ended with %d\n", index, number, wc->status);
}

static bool is_over(const struct pair *pair)
{
    return pair->done == pair->count && pair->received == pair->receives;
}

static void play(struct ibv_cq *cq)
{
    struct ibv_wc wc[8];
    while (!is_over(&pairs[0]) || !is_over(&pairs[1])) {
        for (uint32_t i = 0; i < PAIRS; i++) {
            post_receives(i);
            post_requests(&pairs[i]);
        }
        int n = context->ops.poll_cq(cq, 1 + (int)draw(8), wc);
        need(n >= 0, "poll_cq");
        for (int i = 0; i < n; i++) {
            uint32_t number = wc[i].qp_num == pairs[1].qp->qp_num;
            if (wc[i].wr_id >> 32)
                take_received(number, &wc[i]);
            else
                take_done(number, &wc[i]);
            if (wc[i].status)
                return; /* nothing more will come of it */
        }
    }
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void read_plan(const char *path)
{
    FILE *file = fopen(path, "rb");
    need(file && fread(&plan, sizeof plan, 1, file) == 1 && fread(pool, POOL, 1, file) == 1,
         "plan");
    struct operation *all = calloc(plan.operations + 1, sizeof *all);
    need(all && fread(all, sizeof *all, plan.operations, file) == plan.operations, "plan");
    fclose(file);
    for (uint32_t i = 0; i < PAIRS; i++) {
        pairs[i].all = calloc(plan.operations + 1, sizeof *pairs[i].all);
        need(pairs[i].all, "memory");
        pairs[i].receives = plan.receives[i];
    }
    for (uint32_t i = 0; i < plan.operations; i++) {
        struct pair *pair = &pairs[all[i].pair];
        pair->all[pair->count++] = &all[i];
    }
    pairs[1].all[plan.operations] = all; /* to be freed */
}

static void create(struct pair *pair, struct ibv_pd *pd, struct ibv_cq *cq, bool is_shared)
{
    const struct ibv_qp_cap cap = {2 * SLOTS, RECEIVES, PIECES, PIECES, 64};
    if (!is_shared) {
        struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = cap,
                                        .qp_type = IBV_QPT_RC};
        pair->qp = ibv_create_qp(pd, &init);
    } else {
        struct ibv_srq_init_attr shared = {.attr = {RECEIVES, PIECES, 0}};
        pair->srq = ibv_create_srq(pd, &shared);
        struct verbs_context *verbs = (void *)((uint8_t *)context -
                                               offsetof(struct verbs_context, context));
        struct ibv_qp_init_attr_ex init = {
            .send_cq = cq, .recv_cq = cq, .srq = pair->srq, .cap = cap, .qp_type = IBV_QPT_RC,
            .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .pd = pd,
            .send_ops_flags = IBV_QP_EX_KNOWN,
        };
        pair->qp = verbs->create_qp_ex(context, &init);
    }
    need(pair->qp, "create_qp");
}

static void connect_pairs(void)
{
    struct { struct end end[PAIRS]; uint64_t region; uint32_t rkey, keys[KEYS]; } here, there;
    memset(&here, 0, sizeof here);
    for (uint32_t i = 0; i < PAIRS; i++) {
        here.end[i] = (struct end){.qpn = pairs[i].qp->qp_num, .psn = draw(1 << 24)};
        if (draw(2))
            here.end[i].psn |= 0xFFFF00; /* so that numbers begin anew soon */
        here.end[i].gid_index = gid_index(context);
        need(!ibv_query_gid(context, 1, here.end[i].gid_index, &here.end[i].gid), "query_gid");
    }
    here.region = (uintptr_t)region;
    here.rkey = region_mr->rkey;
    memcpy(here.keys, own_keys, sizeof own_keys);
    exchange(&here, &there, sizeof here);
    memcpy(others_keys, there.keys, sizeof others_keys);
    for (uint32_t i = 0; i < PAIRS; i++) {
        pairs[i].region = there.region + i * REGION;
        pairs[i].rkey = there.rkey;
        connect_qp(pairs[i].qp, here.end[i], there.end[i], (int)plan.mtu, TIMEOUT, FOREVER);
    }
}

int main(int count, char **words)
{
    need(count == 4, "three words are wanted");
    read_plan(words[2]);
    state = plan.seed;
    log_file = fopen(words[3], "wb");
    need(log_file, words[3]);
    meet(words[1]);
    context = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 2 * PAIRS * (SLOTS + RECEIVES), NULL, NULL, 0);
    pool_mr = ibv_reg_mr(pd, pool, sizeof pool, 0);
    landing_mr = ibv_reg_mr(pd, landing, sizeof landing, IBV_ACCESS_LOCAL_WRITE);
    inbox_mr = ibv_reg_mr(pd, inbox, sizeof inbox, IBV_ACCESS_LOCAL_WRITE);
    region_mr = ibv_reg_mr(pd, region, sizeof region, ALL_ACCESS);
    need(pd && cq && pool_mr && landing_mr && inbox_mr && region_mr, "memory");
    for (unsigned i = 0; i < KEYS; i++) {
        to_invalidate[i] = ibv_reg_mr(pd, region, 1, ALL_ACCESS);
        need(to_invalidate[i], "reg_mr");
        own_keys[i] = to_invalidate[i]->rkey;
    }
    create(&pairs[0], pd, cq, false);
    create(&pairs[1], pd, cq, true);
    connect_pairs();
    play(cq);
    uint32_t over = 1, told;
    exchange(&over, &told, sizeof over);
    for (uint32_t i = 0; i < PAIRS; i++)
        put((struct record){'m', (uint8_t)i, 0, 0, 0, 0, 0, 0, REGION}, region[i]);
    for (unsigned i = 0; i < KEYS; i++)
        ibv_dereg_mr(to_invalidate[i]);
    ibv_dereg_mr(pool_mr), ibv_dereg_mr(landing_mr);
    ibv_dereg_mr(inbox_mr), ibv_dereg_mr(region_mr);
    free(pairs[1].all[plan.operations]);
    for (uint32_t i = 0; i < PAIRS; i++) {
        ibv_destroy_qp(pairs[i].qp);
        free(pairs[i].all);
    }
    return ibv_destroy_srq(pairs[1].srq) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
           ibv_close_device(context) || fclose(log_file);
}
