/* librdmacm.so.1: connections by addresses, as programs ask for them; cm.h is where to begin. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cm.h"

enum {
    ACK_TIMEOUT = 8, /* 4.096 us * 2^8: a fabric's round trips are some microseconds, */
    UNDILATED_ACK_TIMEOUT = 17, /* a machine's some tenths of a second, if it is busy */
    RNR_TIMER = 1,
    READS_MAX = 16,
    BACKLOG = 128,
};

static struct ibv_context *device;

int cm_failed(int code)
{
    errno = code;
    return -1;
}

static struct ibv_context *open_device(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&once);
    if (!device) { /* until the process ends, as its ids may */
        struct ibv_device **list = ibv_get_device_list(NULL);
        device = list ? ibv_open_device(list[0]) : NULL;
        ibv_free_device_list(list);
    }
    pthread_mutex_unlock(&once);
    return device;
}

struct ibv_context **rdma_get_devices(int *count)
{
    struct ibv_context **list = calloc(2, sizeof(struct ibv_context *));
    if (list)
        list[0] = open_device();
    if (count)
        *count = list && list[0] ? 1 : 0;
    return list;
}
void rdma_free_devices(struct ibv_context **list) { free(list); }

/* --- ids -------------------------------------------------------------------------------------- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **made, void *context,
                   int ps)
{
    struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();
    struct cm_id *id = calloc(1, sizeof *id);
    if (!id || (!channel && !own)) {
        free(id);
        return cm_failed(ENOMEM);
    }
    id->fd = -1;
    id->is_told = true;
    id->is_synchronous = own;
    id->base.channel = channel ? channel : own;
    id->base.context = context;
    id->base.ps = ps;
    id->base.qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
    pthread_mutex_lock(&cm_lock);
    id->next = cm_ids;
    cm_ids = id;
    pthread_mutex_unlock(&cm_lock);
    *made = &id->base;
    return 0;
}

static void free_parts(struct cm_id *id)
{
    struct rdma_cm_id *base = &id->base;
    if (id->has_own_cqs) {
        ibv_destroy_cq(base->send_cq);
        ibv_destroy_cq(base->recv_cq);
        ibv_destroy_comp_channel(base->send_cq_channel);
        ibv_destroy_comp_channel(base->recv_cq_channel);
    }
    if (id->has_own_pd)
        ibv_dealloc_pd(base->pd);
    free(id->to_have);
}

/* Nobody knows it any more, the peer is told. */
static void take_out(struct cm_id *id)
{
    struct cm_id **at = &cm_ids;
    while (*at && *at != id)
        at = &(*at)->next;
    if (*at)
        *at = id->next;
    cm_destroyed++;
    cm_forget(id);
    cm_hang_up(id);
}

/* Those who came to a listener: whom the program has not been told of goes with it, and asks again
 * whoever listens next. */
static void forget_those_who_came(const struct cm_id *listener)
{
    for (struct cm_id *one = cm_ids, *next; one; one = next) {
        next = one->next;
        if (one->listener != listener)
            continue;
        one->listener = NULL;
        if (!one->is_told || cm_is_untold(one)) {
            take_out(one);
            free(one);
        }
    }
}

int rdma_destroy_id(struct rdma_cm_id *base)
{
    struct cm_id *id = cm_of(base);
    pthread_mutex_lock(&cm_lock);
    forget_those_who_came(id);
    if (id->state == CM_ANSWERS) {
        cm_compose(id, CM_REJ, NULL);
        cm_send(id);
    }
    take_out(id);
    pthread_mutex_unlock(&cm_lock);
    if (base->event)
        rdma_ack_cm_event(base->event);
    if (id->is_synchronous)
        rdma_destroy_event_channel(base->channel);
    free_parts(id);
    free(id);
    return 0;
}

/* --- addresses -------------------------------------------------------------------------------- */

static union ibv_gid gid_of(const struct sockaddr *address)
{
    union ibv_gid gid = {.raw = {[10] = 0xFF, [11] = 0xFF}};
    if (address->sa_family == AF_INET6)
        memcpy(gid.raw, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof gid.raw);
    else
        memcpy(gid.raw + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    return gid;
}

static bool is_any(const struct sockaddr *address)
{
    const union ibv_gid gid = gid_of(address), v4 = {.raw = {[10] = 0xFF, [11] = 0xFF}}, v6 = {{0}};
    return !memcmp(&gid, &v4, sizeof gid) || !memcmp(&gid, &v6, sizeof gid);
}

/* The machine itself, by whatever device: the kernel leaves that open, too. */
static bool is_loop(const struct sockaddr *address)
{
    const union ibv_gid gid = gid_of(address), v6 = {.raw = {[15] = 1}};
    bool is_v4 = address->sa_family == AF_INET;
    return is_v4 ? gid.raw[12] == IN_LOOPBACKNET : !memcmp(&gid, &v6, sizeof gid);
}

bool cm_settle(struct cm_id *id)
{
    struct rdma_addr *addr = &id->base.route.addr;
    struct ibv_context *found = open_device();
    addr->ibaddr.sgid = gid_of(&addr->src_addr);
    addr->ibaddr.dgid = gid_of(&addr->dst_addr);
    addr->ibaddr.pkey = 0xFFFF;
    union ibv_gid gid;
    for (int i = 0; found && !ibv_query_gid(found, CM_PORT, i, &gid); i++)
        if (!memcmp(&gid, &addr->ibaddr.sgid, sizeof gid)) {
            id->gid_index = i;
            id->base.verbs = found;
            id->base.port_num = CM_PORT;
            return true;
        }
    errno = ENODEV;
    return false;
}

static int give_address(struct cm_id *id, const struct sockaddr *address)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    socklen_t size = sizeof(struct sockaddr_storage);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, address, cm_size(address))) {
        int code = errno;
        if (fd >= 0)
            close(fd);
        return cm_failed(code);
    }
    getsockname(fd, &id->base.route.addr.src_addr, &size);
    id->fd = fd;
    id->state = CM_BOUND;
    return is_any(address) || is_loop(address) || cm_settle(id) ? 0 : -1;
}

int rdma_bind_addr(struct rdma_cm_id *base, struct sockaddr *address)
{
    struct cm_id *id = cm_of(base);
    if (id->state != CM_IDLE)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    int code = give_address(id, address);
    pthread_mutex_unlock(&cm_lock);
    return code;
}

/* By which address of ours the kernel would send to it. */
static int choose_source(struct rdma_addr *addr)
{
    socklen_t size = sizeof addr->src_storage;
    int fd = socket(addr->dst_addr.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int code = fd < 0 || connect(fd, &addr->dst_addr, cm_size(&addr->dst_addr)) ||
                       getsockname(fd, &addr->src_addr, &size)
                   ? errno
                   : 0;
    if (fd >= 0)
        close(fd);
    return code;
}

int rdma_resolve_addr(struct rdma_cm_id *base, struct sockaddr *from, struct sockaddr *to,
                      int timeout_ms)
{
    struct cm_id *id = cm_of(base);
    struct rdma_addr *addr = &base->route.addr;
    (void)timeout_ms;
    if ((id->state != CM_IDLE && id->state != CM_BOUND) || !to)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    memcpy(&addr->dst_storage, to, cm_size(to));
    if (from && !is_any(from))
        memcpy(&addr->src_storage, from, cm_size(from));
    bool is_given = id->state == CM_BOUND || (from && !is_any(from));
    int code = is_given && !is_any(&addr->src_addr) ? 0 : choose_source(addr);
    if (!code && !cm_settle(id))
        code = errno;
    if (!code)
        id->state = CM_BOUND;
    cm_tell(id, code ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, -code);
    pthread_mutex_unlock(&cm_lock);
    return cm_complete(id);
}

int rdma_resolve_route(struct rdma_cm_id *base, int timeout_ms)
{
    struct cm_id *id = cm_of(base);
    (void)timeout_ms;
    if (!base->verbs || id->state != CM_BOUND)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    cm_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    pthread_mutex_unlock(&cm_lock);
    return cm_complete(id);
}

static uint16_t port_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                          : ((const struct sockaddr_in *)address)->sin_port;
}
uint16_t rdma_get_src_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.src_addr); }
uint16_t rdma_get_dst_port(struct rdma_cm_id *id) { return port_of(&id->route.addr.dst_addr); }

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t size)
{
    return (void)id, (void)level, (void)name, (void)value, (void)size, 0; /* hints, all of them */
}

int rdma_notify(struct rdma_cm_id *id, int event) { return (void)id, (void)event, 0; }

/* --- queue pairs ------------------------------------------------------------------------------ */

static uint8_t at_most(uint8_t n, uint8_t most) { return n < most ? n : most; }

/* What a state is to be told; its mask. */
static int attributes(const struct cm_id *id, struct ibv_qp_attr *attr, int state)
{
    const struct cm_message *ours = &id->ours, *theirs = &id->theirs;
    bool is_datagram = id->base.qp_type == IBV_QPT_UD;
    attr->qp_state = state;
    if (state == IBV_QPS_INIT) {
        attr->port_num = CM_PORT;
        attr->pkey_index = 0;
        attr->qkey = RDMA_UDP_QKEY;
        attr->qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
               (is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
    }
    if (is_datagram) {
        attr->sq_psn = 0;
        return IBV_QP_STATE | (state == IBV_QPS_RTS ? IBV_QP_SQ_PSN : 0);
    }
    if (state == IBV_QPS_RTR) {
        uint32_t least = ours->mtu < theirs->mtu ? ours->mtu : theirs->mtu;
        attr->ah_attr = (struct ibv_ah_attr){
            .is_global = 1,
            .port_num = CM_PORT,
            .grh = {.dgid = id->base.route.addr.ibaddr.dgid, .hop_limit = 64,
                    .sgid_index = (uint8_t)id->gid_index},
        };
        attr->path_mtu = (int)least;
        attr->dest_qp_num = theirs->qpn;
        attr->rq_psn = theirs->psn;
        attr->max_dest_rd_atomic = at_most(ours->reads_in, READS_MAX);
        attr->min_rnr_timer = RNR_TIMER;
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    attr->sq_psn = ours->psn;
    attr->timeout = getenv("CLOSLAB_DILATION") ? ACK_TIMEOUT : UNDILATED_ACK_TIMEOUT;
    attr->retry_cnt = at_most(ours->retries, 7);
    attr->rnr_retry = at_most(theirs->rnr_retries, 7);
    attr->max_rd_atomic = at_most(at_most(ours->reads_out, theirs->reads_in), READS_MAX);
    return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
           IBV_QP_MAX_QP_RD_ATOMIC;
}

int rdma_init_qp_attr(struct rdma_cm_id *base, struct ibv_qp_attr *attr, int *mask)
{
    int state = attr->qp_state;
    if (state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS)
        return cm_failed(EINVAL);
    *mask = attributes(cm_of(base), attr, state);
    return 0;
}

static int change(struct cm_id *id, int state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask = state == IBV_QPS_ERR ? IBV_QP_STATE : attributes(id, &attr, state);
    int code = ibv_modify_qp(id->base.qp, &attr, mask);
    return code ? cm_failed(code) : 0;
}

int cm_ready_to_send(struct cm_id *id)
{
    if (!id->base.qp || id->base.qp_type == IBV_QPT_UD)
        return 0;
    return change(id, IBV_QPS_RTR) || change(id, IBV_QPS_RTS) ? -1 : 0;
}

/* Queues of completions and a domain, for programs that gave none. */
static int make_parts(struct cm_id *id, struct ibv_qp_init_attr *init)
{
    struct rdma_cm_id *base = &id->base;
    if (!base->pd) {
        base->pd = ibv_alloc_pd(base->verbs);
        id->has_own_pd = base->pd;
    }
    if (!init->send_cq && !init->recv_cq && !id->has_own_cqs) {
        base->send_cq_channel = ibv_create_comp_channel(base->verbs);
        base->recv_cq_channel = ibv_create_comp_channel(base->verbs);
        if (!base->send_cq_channel || !base->recv_cq_channel)
            return cm_failed(ENOMEM);
        int sends = (int)init->cap.max_send_wr + 1, receives = (int)init->cap.max_recv_wr + 1;
        base->send_cq = ibv_create_cq(base->verbs, sends, base, base->send_cq_channel, 0);
        base->recv_cq = ibv_create_cq(base->verbs, receives, base, base->recv_cq_channel, 0);
        id->has_own_cqs = base->send_cq && base->recv_cq;
    }
    init->send_cq = init->send_cq ? init->send_cq : base->send_cq;
    init->recv_cq = init->recv_cq ? init->recv_cq : base->recv_cq;
    return base->pd && init->send_cq && init->recv_cq ? 0 : cm_failed(ENOMEM);
}

int rdma_create_qp(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    struct cm_id *id = cm_of(base);
    if (base->qp || !base->verbs)
        return cm_failed(EINVAL);
    if (pd)
        base->pd = pd;
    if (make_parts(id, init))
        return -1;
    if (!init->srq)
        init->srq = base->srq;
    struct ibv_qp *qp = ibv_create_qp(base->pd, init);
    if (!qp)
        return -1;
    base->qp = qp;
    base->qp_type = init->qp_type;
    if (!change(id, IBV_QPS_INIT) &&
        (init->qp_type != IBV_QPT_UD || (!change(id, IBV_QPS_RTR) && !change(id, IBV_QPS_RTS))))
        return 0;
    int code = errno;
    ibv_destroy_qp(qp);
    base->qp = NULL;
    return cm_failed(code);
}

int rdma_create_qp_ex(struct rdma_cm_id *base, struct ibv_qp_init_attr_ex *init)
{
    struct ibv_qp_init_attr plain;
    memcpy(&plain, init, sizeof plain); /* which begins alike */
    if (init->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD)
        return cm_failed(EOPNOTSUPP);
    int code = rdma_create_qp(base, init->comp_mask ? init->pd : NULL, &plain);
    init->cap = plain.cap;
    return code;
}

void rdma_destroy_qp(struct rdma_cm_id *base)
{
    if (base->qp)
        ibv_destroy_qp(base->qp);
    base->qp = NULL;
}

int rdma_create_srq(struct rdma_cm_id *base, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    if (base->srq || !base->verbs)
        return cm_failed(EINVAL);
    if (pd)
        base->pd = pd;
    base->srq = base->pd ? ibv_create_srq(base->pd, init) : NULL;
    return base->srq ? 0 : -1;
}

void rdma_destroy_srq(struct rdma_cm_id *base)
{
    if (base->srq)
        ibv_destroy_srq(base->srq);
    base->srq = NULL;
}

/* --- connections ------------------------------------------------------------------------------ */

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
    struct cm_id *id = cm_of(base);
    struct sockaddr_in any = {.sin_family = AF_INET};
    pthread_mutex_lock(&cm_lock);
    int code = id->state == CM_IDLE ? give_address(id, (void *)&any) : 0;
    if (!code && (id->fd < 0 || listen(id->fd, backlog > 0 ? backlog : BACKLOG)))
        code = -1;
    if (!code)
        id->state = CM_LISTENS;
    pthread_mutex_unlock(&cm_lock);
    return code || cm_watch() ? code : -1;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct cm_id *id = cm_of(base);
    if (id->state != CM_BOUND || !base->verbs)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    cm_compose(id, CM_REQ, param);
    id->state = CM_CONNECTS;
    id->tries = 0;
    id->again_at = 1; /* at once */
    pthread_mutex_unlock(&cm_lock);
    return cm_watch() ? cm_complete(id) : -1;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
    struct cm_id *id = cm_of(base);
    if (id->state != CM_ANSWERS)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    cm_compose(id, CM_REP, param);
    int code = cm_ready_to_send(id);
    if (!code) {
        id->state = CM_ACCEPTED;
        code = cm_send(id) ? 0 : cm_failed(ECONNRESET);
    }
    pthread_mutex_unlock(&cm_lock);
    bool waits = !code && base->ps != RDMA_PS_UDP;
    return waits ? cm_complete(id) : code;
}

int rdma_establish(struct rdma_cm_id *base)
{
    struct cm_id *id = cm_of(base);
    if (id->state != CM_REPLIED)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    id->state = CM_CONNECTED;
    bool said = cm_send_word(id, CM_RTU);
    pthread_mutex_unlock(&cm_lock);
    return said ? 0 : cm_failed(ECONNRESET);
}

int rdma_reject(struct rdma_cm_id *base, const void *private_data, uint8_t length)
{
    struct cm_id *id = cm_of(base);
    const struct rdma_conn_param param = {.private_data = private_data,
                                          .private_data_len = length};
    if (id->state != CM_ANSWERS && id->state != CM_REPLIED)
        return cm_failed(EINVAL);
    pthread_mutex_lock(&cm_lock);
    cm_compose(id, CM_REJ, &param);
    bool said = cm_send(id);
    id->state = CM_OVER;
    shutdown(id->fd, SHUT_WR);
    pthread_mutex_unlock(&cm_lock);
    return said ? 0 : cm_failed(ECONNRESET);
}

int rdma_disconnect(struct rdma_cm_id *base)
{
    struct cm_id *id = cm_of(base);
    bool is_there = id->state == CM_CONNECTED || id->state == CM_ACCEPTED || id->state == CM_OVER;
    if (!is_there)
        return cm_failed(EINVAL);
    if (base->qp && base->qp_type != IBV_QPT_UD && change(id, IBV_QPS_ERR))
        return -1;
    pthread_mutex_lock(&cm_lock);
    if (id->fd >= 0)
        shutdown(id->fd, SHUT_WR); /* and who hears it hangs up */
    pthread_mutex_unlock(&cm_lock);
    return 0;
}
