/* The device that programs find: closlab0, with one port, which is an interface of theirs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rc.h"

enum {
    VENDOR = 0xC105AB,
    LINK_IS_UP = 5, /* of the states of a physical port */
    FOUR_LANES = 2, /* of the widths of a link */
    GID_TABLE_MAX = GIDS_MAX,
};

static struct ibv_device the_device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = "closlab0",
    .dev_name = "uverbs0",
    .dev_path = "/sys/class/infiniband_verbs/uverbs0",
    .ibdev_path = "/sys/class/infiniband/closlab0",
};

/* Of the library that makes clocks the fabric's, if it is loaded: see fabric_clock.c. */
extern void closlab_clock_begin(void) __attribute__((weak));

struct ibv_device **ibv_get_device_list(int *count)
{
    if (closlab_clock_begin)
        closlab_clock_begin();
    struct ibv_device **list = calloc(2, sizeof *list);
    if (list)
        list[0] = &the_device;
    if (count)
        *count = list ? 1 : 0;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }
const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }
int ibv_get_device_index(struct ibv_device *device) { return device ? 0 : -1; }

/* A number that is another on each host: of the interface's address. */
static uint64_t guid_of(const uint8_t mac[6])
{
    const uint8_t parts[8] = {mac[0] ^ 2, mac[1], mac[2], 0xFF, 0xFE, mac[3], mac[4], mac[5]};
    uint64_t guid;
    memcpy(&guid, parts, sizeof guid);
    return guid;
}

uint64_t ibv_get_device_guid(struct ibv_device *device)
{
    const uint8_t none[6] = {2};
    (void)device;
    return guid_of(none);
}

/* --- what it can ------------------------------------------------------------------------------ */

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    const struct ctx *ctx = ctx_of(context);
    *attr = (struct ibv_device_attr){
        .fw_ver = "closlab",
        .node_guid = guid_of(ctx->mac),
        .sys_image_guid = guid_of(ctx->mac),
        .max_mr_size = UINT64_MAX >> 1,
        .page_size_cap = 4096,
        .vendor_id = VENDOR,
        .vendor_part_id = 1,
        .max_qp = QPS_MAX - 2,
        .max_qp_wr = WR_MAX,
        .device_cap_flags = IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN,
        .max_sge = SGE_MAX,
        .max_sge_rd = SGE_MAX,
        .max_cq = QPS_MAX,
        .max_cqe = CQE_MAX,
        .max_mr = KEYS_MAX - 1,
        .max_pd = QPS_MAX,
        .max_qp_rd_atom = READS_MAX,
        .max_res_rd_atom = READS_MAX * QPS_MAX,
        .max_qp_init_rd_atom = READS_MAX,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_ah = QPS_MAX,
        .max_srq = QPS_MAX,
        .max_srq_wr = WR_MAX,
        .max_srq_sge = SGE_MAX,
        .max_pkeys = 1,
        .local_ca_ack_delay = 4,
        .phys_port_cnt = 1,
    };
    return 0;
}

/* Behind what all versions know stands what none of the programs here needs: zeros. */
static int query_device_ex(struct ibv_context *context, const void *input,
                           struct ibv_device_attr *attr, size_t bytes)
{
    (void)input;
    if (bytes < sizeof *attr)
        return EINVAL;
    memset(attr, 0, bytes);
    return ibv_query_device(context, attr);
}

/* The speed of a lane, as verbs number it; four of them make the link, if not a lane alone does. */
static void set_speed(struct ibv_port_attr *attr, bps_t bps)
{
    static const struct { uint32_t gbps; uint8_t width, speed; } known[] = {
        {10, 1, 4}, {25, 1, 32}, {40, FOUR_LANES, 4}, {50, 1, 64},
        {100, FOUR_LANES, 32}, {200, FOUR_LANES, 64}, {400, FOUR_LANES, 128},
        {800, 4 /* eight lanes */, 128},
    };
    unsigned i = 0;
    while (i + 1 < sizeof known / sizeof *known && known[i].gbps * 1000000000ull < bps)
        i++;
    attr->active_width = known[i].width;
    attr->active_speed = known[i].speed;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *wanted,
                      size_t bytes)
{
    const struct ctx *ctx = ctx_of(context);
    struct ibv_port_attr attr = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = ctx->active_mtu,
        .gid_tbl_len = ctx->gid_count,
        .port_cap_flags = IBV_PORT_IP_BASED_GIDS,
        .max_msg_sz = MESSAGE_MAX,
        .pkey_tbl_len = 1,
        .max_vl_num = 8,
        .phys_state = LINK_IS_UP,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    if (port != 1)
        return EINVAL;
    set_speed(&attr, ctx->bps);
    memset(wanted, 0, bytes);
    memcpy(wanted, &attr, bytes < sizeof attr ? bytes : sizeof attr);
    return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
    return query_port(context, port, attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    const struct ctx *ctx = ctx_of(context);
    if (port != 1 || index < 0 || index >= ctx->gid_count) {
        errno = EINVAL;
        return -1;
    }
    *gid = ctx->gids[index];
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t bytes)
{
    const struct ctx *ctx = ctx_of(context);
    if (port != 1 || flags || bytes < sizeof *entry)
        return EINVAL;
    if (index >= (uint32_t)ctx->gid_count)
        return ENODATA;
    *entry = (struct ibv_gid_entry){ctx->gids[index], index, 1, IBV_GID_TYPE_ROCE_V2,
                                    (uint32_t)ctx->ifindex};
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                             size_t most, uint32_t flags, size_t bytes)
{
    size_t n = 0;
    while (n < most && !_ibv_query_gid_ex(context, 1, (uint32_t)n,
                                          (void *)((uint8_t *)entries + n * bytes), flags, bytes))
        n++;
    return (ssize_t)n;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, unsigned *type)
{
    if (port != 1 || index >= (unsigned)ctx_of(context)->gid_count) {
        errno = EINVAL;
        return -1;
    }
    *type = GID_TYPE_SYSFS_ROCE_V2;
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, uint16_t *key)
{
    (void)context;
    *key = 0xFFFF;
    return port == 1 && !index ? 0 : -1;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, uint16_t key)
{
    (void)context;
    return port == 1 && key == 0xFFFF ? 0 : -1;
}

/* --- opened and closed ------------------------------------------------------------------------ */

/* What fits with all headers. Of an interface with addresses of both kinds IPv4's are those
 * used. */
static int mtu_of(const struct ctx *ctx)
{
    bool is_v4 = ctx->gid_count && be16_load(ctx->gids[0].raw + 10) == 0xFFFF;
    uint32_t headers = (is_v4 ? WIRE_IPV4 : WIRE_IPV6) + WIRE_UDP + WIRE_BTH + WIRE_RETH +
                       WIRE_IMMDT + WIRE_ICRC;
    int mtu = IBV_MTU_256;
    while (mtu < IBV_MTU_4096 && (128u << (mtu + 1)) + headers <= ctx->mtu)
        mtu++;
    return mtu;
}

/* A process that is forked has its parent's adapters to close them: their threads are not its own.
 * It is made while none of these is at work. */
static pthread_mutex_t opened_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ctx *opened;

static void before_fork(void)
{
    pthread_mutex_lock(&opened_lock);
    for (struct ctx *ctx = opened; ctx; ctx = ctx->next)
        pthread_mutex_lock(&ctx->lock);
}

static void after_fork(void)
{
    for (struct ctx *ctx = opened; ctx; ctx = ctx->next)
        pthread_mutex_unlock(&ctx->lock);
    pthread_mutex_unlock(&opened_lock);
}

static void after_fork_in_child(void)
{
    for (struct ctx *ctx = opened; ctx; ctx = ctx->next)
        ctx->thread = 0;
    after_fork();
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

static void enter(struct ctx *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&opened_lock);
    ctx->next = opened;
    opened = ctx;
    pthread_mutex_unlock(&opened_lock);
}

static void leave(const struct ctx *ctx)
{
    struct ctx **at = &opened;
    pthread_mutex_lock(&opened_lock);
    while (*at != ctx)
        at = &(*at)->next;
    *at = ctx->next;
    pthread_mutex_unlock(&opened_lock);
}

static void context_free(struct ctx *ctx)
{
    free(ctx->qps);
    free(ctx->keys);
    free(ctx->rates);
    record_close(ctx);
    free(ctx);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    char why[160] = "memory is short";
    struct ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return NULL;
    pthread_mutex_init(&ctx->lock, NULL);
    ctx->qps = calloc(QPS_MAX, sizeof *ctx->qps);
    if (!ctx->qps || !port_open(ctx, why, sizeof why)) {
        fprintf(stderr, "closlab0: %s\n", why);
        port_close(ctx);
        context_free(ctx);
        errno = ENODEV;
        return NULL;
    }
    ctx->active_mtu = mtu_of(ctx);
    ctx->keys_free = 1;
    ctx->rates = rates_read(ctx);
    record_open(ctx);
    ctx->verbs.query_port = query_port;
    ctx->verbs.query_device_ex = query_device_ex;
    ctx->verbs.create_qp_ex = qp_create_ex;
    ctx->verbs.sz = sizeof ctx->verbs;
    struct ibv_context *context = &ctx->verbs.context;
    context->device = device;
    context->ops.poll_cq = cq_poll;
    context->ops.req_notify_cq = cq_notify;
    context->ops.post_srq_recv = work_post_srq_recv;
    context->ops.post_send = work_post_send;
    context->ops.post_recv = work_post_recv;
    context->num_comp_vectors = 1;
    context->abi_compat = VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&context->mutex, NULL);
    if (!port_start(ctx)) {
        port_close(ctx);
        context_free(ctx);
        return NULL;
    }
    enter(ctx);
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    struct ctx *ctx = ctx_of(context);
    leave(ctx);
    port_close(ctx);
    if (getenv("CLOSLAB_VERBS_COUNTS"))
        shown_on_standard_error(ctx);
    context_free(ctx);
    return 0;
}
