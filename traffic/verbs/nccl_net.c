/* NCCL's network: a plugin of its interface, by verbs.
 *
 *   receiver                          sender
 *   irecv: a credit, by SEND  ──────► credits, in the order of the receives
 *          data  ◄──────────────────  isend: WRITE with the size as immediate data
 *
 * A receive says where its buffer is, and data is written there, so nothing is copied and nobody
 * sends what nobody waits for. A connection is a queue pair, which both ends learn of over TCP;
 * that stays open, for of who was killed one hears by it first. All connections share a completion
 * queue. The names of NCCL's own parameters hold: NCCL_IB_TIMEOUT, NCCL_IB_RETRY_CNT, NCCL_IB_TC.
 *
 * Not here: GPUs' memory, grouped receives, collectives in the network.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nccl_abi.h"
#include "verbs_calls.h"

enum {
    COMMS_MAX = 1024,
    REQUESTS = NCCL_NET_MAX_REQUESTS,
    CREDITS_UNDER_WAY = 2 * REQUESTS, /* data may be quicker than a credit's acknowledgement */
    COMPLETIONS = COMMS_MAX * (REQUESTS + CREDITS_UNDER_WAY),
    GIDS_TRIED = 16,
    POLLED_AT_ONCE = 16,
    /* After the peer has closed: so often one looks for what it sent before. */
    POLLS_AFTER_THE_END = 4096,
    HOP_LIMIT = 64,
    MIN_RNR_TIMER = 12,
};
#define MAGIC 0xC105AB08u

/* Where data is wanted. */
struct credit {
    uint64_t address;
    uint32_t rkey, size;
};

/* What a work request is for; each of the following begins with it. */
struct ticket {
    struct comm *comm;
};

struct request {
    struct ticket ticket;
    bool is_taken, is_done;
    uint32_t size;
    unsigned seen; /* polls when somebody asked last */
};

struct credit_slot {
    struct ticket ticket;
    struct credit credit;
    bool is_here;
};

struct hello {
    uint32_t magic, qpn, psn;
    int32_t mtu;
    union ibv_gid gid;
};

enum stage { TO_CONNECT, TO_TELL, TO_HEAR, TO_BE_READY, IS_UP };

struct comm {
    bool sends;
    enum stage stage;
    int fd, error; /* error: how a request ended, if one did not well */
    size_t passed; /* bytes of what is told or heard */
    struct hello mine, others;
    struct ibv_qp *qp;
    struct ibv_mr *credits_mr;
    struct request requests[REQUESTS];
    struct credit_slot credits[REQUESTS]; /* a sender's, in a ring */
    struct ticket credit_sent;            /* a receiver's */
    unsigned next, credits_under_way;     /* next: the credit to use */
    unsigned seen, polls_after_the_end;
};

struct listener {
    int fd;
    struct comm *pending;
};

/* What is at the other end of a handle; `pending` is of who connects. */
struct handle {
    uint32_t magic;
    union ibv_gid gid;
    uint16_t port;
    struct comm *pending;
};
_Static_assert(sizeof(struct handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle has that much room");

static struct {
    pthread_mutex_t lock;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_port_attr port;
    union ibv_gid gid;
    int gid_index;
    char *name;
    uint64_t guid;
    unsigned polls;
    ncclDebugLogger_t log;
} net = {.lock = PTHREAD_MUTEX_INITIALIZER};

#define SAY(level, ...) \
    do { \
        if (net.log) \
            net.log(level, NCCL_INIT | NCCL_NET, __FILE__, __LINE__, __VA_ARGS__); \
    } while (0)
#define WARN(...) SAY(NCCL_LOG_WARN, "NET/closlab : " __VA_ARGS__)

static uint8_t from_environment(const char *name, uint8_t otherwise)
{
    const char *text = getenv(name);
    return text ? (uint8_t)strtoul(text, NULL, 10) : otherwise;
}

/* --- the device ------------------------------------------------------------------------------- */

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    return !memcmp(gid->raw, mapped, sizeof mapped);
}

/* The first address that others reach: of IPv4, or of IPv6 beyond the link. */
static bool choose_gid(void)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < GIDS_TRIED; i++) {
            if (ibv_query_gid(net.context, 1, i, &net.gid))
                break;
            bool is_local = net.gid.raw[0] == 0xFE && net.gid.raw[1] == 0x80;
            net.gid_index = i;
            if (pass ? !is_local : is_v4(&net.gid))
                return true;
        }
    return false;
}

static ncclResult_t open_device(void)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    if (devices && count) {
        net.context = ibv_open_device(devices[0]);
        net.name = strdup(ibv_get_device_name(devices[0]));
    }
    ibv_free_device_list(devices);
    if (!net.context || !net.name) {
        WARN("there is no device of verbs that can be opened");
        return ncclSystemError;
    }
    struct ibv_device_attr attr;
    net.pd = ibv_alloc_pd(net.context);
    net.cq = ibv_create_cq(net.context, COMPLETIONS, NULL, NULL, 0);
    if (!net.pd || !net.cq || ibv_query_port(net.context, 1, &net.port) || !choose_gid() ||
        ibv_query_device(net.context, &attr)) {
        WARN("%s has no port with an address, or memory is short", net.name);
        ibv_close_device(net.context);
        net.context = NULL;
        return ncclSystemError;
    }
    net.guid = attr.node_guid;
    SAY(NCCL_LOG_INFO, "NET/closlab : %s, address %d", net.name, net.gid_index);
    return ncclSuccess;
}

/* Communicators share the device, which is open as long as the process lives. */
static ncclResult_t net_init(ncclDebugLogger_t log)
{
    pthread_mutex_lock(&net.lock);
    net.log = log;
    ncclResult_t result = net.context ? ncclSuccess : open_device();
    pthread_mutex_unlock(&net.lock);
    return result;
}

static ncclResult_t net_devices(int *count)
{
    *count = net.context ? 1 : 0;
    return ncclSuccess;
}

static int speed_mbps(void)
{
    static const struct { uint8_t code; int mbps; } lanes[] = {
        {1, 2500}, {2, 5000}, {4, 10000}, {8, 10000}, {16, 14000}, {32, 25000}, {64, 50000},
        {128, 100000},
    };
    static const uint8_t widths[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    uint8_t width = net.port.active_width;
    for (unsigned i = 0; i < sizeof lanes / sizeof *lanes; i++)
        if (lanes[i].code == net.port.active_speed && width < sizeof widths)
            return lanes[i].mbps * widths[width];
    return 0;
}

static ncclResult_t net_properties(int device, ncclNetProperties_v8_t *properties)
{
    if (device || !net.context)
        return ncclInternalError;
    *properties = (ncclNetProperties_v8_t){
        .name = net.name,
        .guid = net.guid,
        .ptrSupport = NCCL_PTR_HOST,
        .regIsGlobal = 1,
        .speed = speed_mbps(),
        .port = 1,
        .maxComms = COMMS_MAX,
        .maxRecvs = 1,
        .netDeviceType = NCCL_NET_DEVICE_HOST,
        .netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION,
    };
    return ncclSuccess;
}

/* --- memory ----------------------------------------------------------------------------------- */

static ncclResult_t net_reg(void *comm, void *data, size_t size, int type, void **mr)
{
    (void)comm;
    *mr = NULL;
    if (type != NCCL_PTR_HOST) {
        WARN("memory of type %d cannot be registered: it is the host's that can", type);
        return ncclInternalError;
    }
    *mr = ibv_reg_mr(net.pd, data, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return *mr ? ncclSuccess : ncclSystemError;
}

static ncclResult_t net_dereg(void *comm, void *mr)
{
    (void)comm;
    return ibv_dereg_mr(mr) ? ncclSystemError : ncclSuccess;
}

/* --- queue pairs ------------------------------------------------------------------------------ */

static bool make_qp(struct comm *comm)
{
    struct ibv_qp_init_attr init = {
        .send_cq = net.cq, .recv_cq = net.cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
        .cap = {CREDITS_UNDER_WAY, REQUESTS, 1, 1, sizeof(struct credit)},
    };
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    comm->qp = ibv_create_qp(net.pd, &init);
    if (!comm->qp || ibv_modify_qp(comm->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                                        IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    comm->mine = (struct hello){MAGIC, comm->qp->qp_num, comm->qp->qp_num & 0xFFFFFF,
                                net.port.active_mtu, net.gid};
    return true;
}

static bool connect_qp(struct comm *comm)
{
    int mtu = comm->others.mtu < comm->mine.mtu ? comm->others.mtu : comm->mine.mtu;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = comm->others.qpn,
        .rq_psn = comm->others.psn, .sq_psn = comm->mine.psn, .min_rnr_timer = MIN_RNR_TIMER,
        .timeout = from_environment("NCCL_IB_TIMEOUT", 14), .retry_cnt = from_environment("NCCL_IB_RETRY_CNT", 7),
        .rnr_retry = 7,
        .ah_attr = {.is_global = 1, .port_num = 1,
                    .grh = {.dgid = comm->others.gid, .sgid_index = (uint8_t)net.gid_index,
                            .hop_limit = HOP_LIMIT, .traffic_class = from_environment("NCCL_IB_TC", 0)}},
    };
    if (comm->others.magic != MAGIC ||
        ibv_modify_qp(comm->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr.qp_state = IBV_QPS_RTS;
    return !ibv_modify_qp(comm->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                               IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                               IBV_QP_MAX_QP_RD_ATOMIC);
}

static int post_credit_receive(struct comm *comm, struct credit_slot *slot)
{
    struct ibv_sge sge = {(uintptr_t)&slot->credit, sizeof slot->credit, comm->credits_mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = (uintptr_t)slot, .sg_list = &sge, .num_sge = 1}, *bad;
    slot->is_here = false;
    return net.context->ops.post_recv(comm->qp, &wr, &bad);
}

static bool await_credits(struct comm *comm)
{
    comm->credits_mr = ibv_reg_mr(net.pd, comm->credits, sizeof comm->credits,
                                  IBV_ACCESS_LOCAL_WRITE);
    if (!comm->credits_mr)
        return false;
    for (unsigned i = 0; i < REQUESTS; i++) {
        comm->credits[i].ticket.comm = comm;
        if (post_credit_receive(comm, &comm->credits[i]))
            return false;
    }
    return true;
}

/* --- connections ------------------------------------------------------------------------------ */

static struct comm *comm_new(bool sends, int fd)
{
    struct comm *comm = calloc(1, sizeof *comm);
    if (!comm)
        return NULL;
    comm->sends = sends;
    comm->fd = fd;
    comm->credit_sent.comm = comm;
    return comm;
}

static ncclResult_t comm_close(void *told_comm)
{
    struct comm *comm = told_comm;
    pthread_mutex_lock(&net.lock);
    if (comm->qp)
        ibv_destroy_qp(comm->qp); /* with what has ended of it and was not polled yet */
    if (comm->credits_mr)
        ibv_dereg_mr(comm->credits_mr);
    close(comm->fd);
    pthread_mutex_unlock(&net.lock);
    free(comm);
    return ncclSuccess;
}

static socklen_t address_of(const union ibv_gid *gid, uint16_t port, struct sockaddr_in6 *address)
{
    memset(address, 0, sizeof *address);
    if (!is_v4(gid)) {
        *address = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
        memcpy(&address->sin6_addr, gid->raw, sizeof gid->raw);
        return sizeof *address;
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    memcpy(&v4->sin_addr, gid->raw + 12, sizeof v4->sin_addr);
    return sizeof *v4;
}

static ncclResult_t net_listen(int device, void *told_handle, void **listen_comm)
{
    struct handle *handle = told_handle;
    struct sockaddr_in6 address;
    socklen_t size = address_of(&net.gid, 0, &address), given = sizeof address;
    struct listener *listener = calloc(1, sizeof *listener);
    if (device || !listener) {
        free(listener);
        return ncclInternalError;
    }
    listener->fd = socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&address, size) ||
        listen(listener->fd, 1) ||
        getsockname(listener->fd, (struct sockaddr *)&address, &given)) {
        WARN("one cannot listen: %s", strerror(errno));
        if (listener->fd >= 0)
            close(listener->fd);
        free(listener);
        return ncclSystemError;
    }
    memset(handle, 0, NCCL_NET_HANDLE_MAXSIZE);
    *handle = (struct handle){MAGIC, net.gid, address.sin6_port, NULL}; /* of either family */
    *listen_comm = listener;
    return ncclSuccess;
}

static ncclResult_t net_close_listen(void *told_listener)
{
    struct listener *listener = told_listener;
    if (listener->pending)
        comm_close(listener->pending);
    close(listener->fd);
    free(listener);
    return ncclSuccess;
}

enum went { FAILED = -1, LATER, WHOLE };

/* Go on telling (or hearing) so many bytes. */
static enum went pass(struct comm *comm, void *bytes, size_t size, bool tells)
{
    while (comm->passed < size) {
        uint8_t *at = (uint8_t *)bytes + comm->passed;
        ssize_t n = tells ? send(comm->fd, at, size - comm->passed, MSG_NOSIGNAL)
                          : recv(comm->fd, at, size - comm->passed, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return LATER;
        if (n <= 0)
            return FAILED;
        comm->passed += (size_t)n;
    }
    comm->passed = 0;
    return WHOLE;
}

static enum went connected(const struct comm *comm)
{
    struct pollfd file = {.fd = comm->fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (poll(&file, 1, 0) <= 0)
        return LATER;
    getsockopt(comm->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error ? FAILED : WHOLE;
}

/* The sender tells of its queue pair, hears of the other, and says that it is ready; the receiver
 * hears, tells, and hears that. So neither sends to who does not listen. */
static enum went take_step(struct comm *comm)
{
    uint8_t ready = 1;
    enum went went;
    switch (comm->stage) {
    case TO_CONNECT:
        went = connected(comm);
        return went == WHOLE && !make_qp(comm) ? FAILED : went;
    case TO_TELL:
        return pass(comm, &comm->mine, sizeof comm->mine, true);
    case TO_HEAR:
        went = pass(comm, &comm->others, sizeof comm->others, false);
        if (went != WHOLE)
            return went;
        if (!comm->sends && !make_qp(comm))
            return FAILED;
        return connect_qp(comm) && (!comm->sends || await_credits(comm)) ? WHOLE : FAILED;
    case TO_BE_READY:
        return pass(comm, &ready, sizeof ready, comm->sends);
    case IS_UP:
        break;
    }
    return WHOLE;
}

/* What comes next, by who one is. */
static enum stage next_stage(const struct comm *comm)
{
    static const enum stage sender[] = {TO_TELL, TO_HEAR, TO_BE_READY, IS_UP, IS_UP};
    static const enum stage receiver[] = {TO_HEAR, TO_BE_READY, TO_TELL, IS_UP, IS_UP};
    return (comm->sends ? sender : receiver)[comm->stage];
}

/* Go on as far as one can: the connection once it is up; until then it is kept in its place. */
static ncclResult_t go_on(struct comm **place, void **up)
{
    struct comm *comm = *place;
    enum went went = WHOLE;
    while (comm->stage != IS_UP && went == WHOLE) {
        went = take_step(comm);
        if (went == WHOLE)
            comm->stage = next_stage(comm);
    }
    if (went == LATER)
        return ncclSuccess;
    *place = NULL;
    if (went == FAILED) {
        WARN("no connection came about: %s", strerror(errno));
        comm_close(comm);
        return ncclSystemError;
    }
    *up = comm;
    return ncclSuccess;
}

static ncclResult_t net_connect(int device, void *told_handle, void **send_comm, void **of_device)
{
    struct handle *handle = told_handle;
    (void)of_device; /* none: what is there stays */
    *send_comm = NULL;
    if (device || handle->magic != MAGIC)
        return ncclInternalError;
    if (!handle->pending) {
        struct sockaddr_in6 address;
        socklen_t size = address_of(&handle->gid, handle->port, &address);
        int fd = socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || !(handle->pending = comm_new(true, fd))) {
            if (fd >= 0)
                close(fd);
            return ncclSystemError;
        }
        if (connect(fd, (struct sockaddr *)&address, size) && errno != EINPROGRESS) {
            WARN("a connection was refused: %s", strerror(errno));
            comm_close(handle->pending);
            handle->pending = NULL;
            return ncclSystemError;
        }
    }
    return go_on(&handle->pending, send_comm);
}

static ncclResult_t net_accept(void *told_listener, void **recv_comm, void **of_device)
{
    struct listener *listener = told_listener;
    (void)of_device;
    *recv_comm = NULL;
    if (!listener->pending) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            return errno == EAGAIN || errno == EINTR ? ncclSuccess : ncclSystemError;
        listener->pending = comm_new(false, fd);
        if (!listener->pending) {
            close(fd);
            return ncclSystemError;
        }
    }
    return go_on(&listener->pending, recv_comm);
}

/* --- requests --------------------------------------------------------------------------------- */

static void completed(const struct ibv_wc *wc)
{
    struct ticket *ticket = (struct ticket *)(uintptr_t)wc->wr_id;
    struct comm *comm = ticket->comm;
    if (wc->status) {
        if (!comm->error)
            WARN("a request ended with status %d (%s)", wc->status, ibv_wc_status_str(wc->status));
        comm->error = wc->status;
        return;
    }
    switch (wc->opcode) {
    case IBV_WC_RECV:
        ((struct credit_slot *)ticket)->is_here = true;
        break;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        ((struct request *)ticket)->size = ntohl(wc->imm_data);
        ((struct request *)ticket)->is_done = true;
        break;
    case IBV_WC_RDMA_WRITE:
        ((struct request *)ticket)->is_done = true;
        break;
    default:
        comm->credits_under_way--;
        break;
    }
}

/* Whether the peer is gone, and whatever it sent has had time to come. */
static bool is_over(struct comm *comm)
{
    char any;
    ssize_t n = recv(comm->fd, &any, sizeof any, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    return comm->polls_after_the_end++ >= POLLS_AFTER_THE_END;
}

/* Look for what has ended, unless that was done since this one was looked at last: polling an empty
 * queue may take a moment, and who goes round many requests shall wait once a round. */
static ncclResult_t look(struct comm *comm, unsigned *seen)
{
    if (comm->error)
        return ncclRemoteError;
    if (*seen != net.polls) {
        *seen = net.polls;
        return ncclSuccess;
    }
    struct ibv_wc wc[POLLED_AT_ONCE];
    int n = net.context->ops.poll_cq(net.cq, POLLED_AT_ONCE, wc);
    *seen = ++net.polls;
    if (n < 0) {
        WARN("the completion queue is beyond its end");
        return ncclInternalError;
    }
    for (int i = 0; i < n; i++)
        completed(&wc[i]);
    if (!n && is_over(comm)) {
        WARN("the peer is gone");
        comm->error = IBV_WC_REM_OP_ERR;
    }
    return comm->error ? ncclRemoteError : ncclSuccess;
}

static struct request *take_request(struct comm *comm)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct request *request = &comm->requests[i];
        if (request->is_taken)
            continue;
        *request = (struct request){.ticket = {comm}, .is_taken = true, .seen = net.polls};
        return request;
    }
    return NULL;
}

/* Under the lock. */
static ncclResult_t begin_send(struct comm *comm, void *data, int size, const struct ibv_mr *mr,
                               void **request)
{
    struct credit_slot *slot = &comm->credits[comm->next % REQUESTS];
    ncclResult_t result = ncclSuccess;
    if (!slot->is_here && (result = look(comm, &comm->seen)))
        return result;
    if (comm->error)
        return ncclRemoteError;
    struct request *taken = slot->is_here ? take_request(comm) : NULL;
    if (!taken)
        return ncclSuccess;
    const struct credit credit = slot->credit;
    if ((uint32_t)size > credit.size) {
        WARN("%d bytes are sent where %u are received", size, credit.size);
        taken->is_taken = false;
        return ncclInvalidUsage;
    }
    struct ibv_sge sge = {(uintptr_t)data, (uint32_t)size, mr->lkey};
    struct ibv_send_wr *bad, wr = {
        .wr_id = (uintptr_t)taken, .sg_list = &sge, .num_sge = size ? 1 : 0,
        .opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl((uint32_t)size),
        .wr.rdma = {credit.address, credit.rkey},
    };
    taken->size = (uint32_t)size;
    if (post_credit_receive(comm, slot) || net.context->ops.post_send(comm->qp, &wr, &bad)) {
        taken->is_taken = false;
        return ncclSystemError;
    }
    comm->next++;
    *request = taken;
    return ncclSuccess;
}

static ncclResult_t net_isend(void *comm, void *data, int size, int tag, void *mr, void **request)
{
    (void)tag;
    *request = NULL;
    if (size < 0 || !mr)
        return ncclInternalError;
    pthread_mutex_lock(&net.lock);
    ncclResult_t result = begin_send(comm, data, size, mr, request);
    pthread_mutex_unlock(&net.lock);
    return result;
}

/* Under the lock. */
static ncclResult_t begin_receive(struct comm *comm, void *data, int size, const struct ibv_mr *mr,
                                  void **request)
{
    bool is_full = comm->credits_under_way == CREDITS_UNDER_WAY;
    ncclResult_t result = is_full ? look(comm, &comm->seen) : ncclSuccess;
    if (result || comm->error)
        return ncclRemoteError;
    struct request *taken = is_full ? NULL : take_request(comm);
    if (!taken)
        return ncclSuccess;
    struct credit credit = {(uintptr_t)data, mr->rkey, (uint32_t)size};
    struct ibv_sge sge = {(uintptr_t)&credit, sizeof credit, 0};
    struct ibv_recv_wr *bad_receive, receive = {.wr_id = (uintptr_t)taken};
    struct ibv_send_wr *bad, wr = {
        .wr_id = (uintptr_t)&comm->credit_sent, .sg_list = &sge, .num_sge = 1,
        .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
    };
    if (net.context->ops.post_recv(comm->qp, &receive, &bad_receive) ||
        net.context->ops.post_send(comm->qp, &wr, &bad)) {
        taken->is_taken = false;
        return ncclSystemError;
    }
    comm->credits_under_way++;
    *request = taken;
    return ncclSuccess;
}

static ncclResult_t net_irecv(void *comm, int n, void **data, int *sizes, int *tags, void **mrs,
                              void **request)
{
    (void)tags;
    *request = NULL;
    if (n != 1 || sizes[0] < 0 || !mrs[0])
        return ncclInternalError;
    pthread_mutex_lock(&net.lock);
    ncclResult_t result = begin_receive(comm, data[0], sizes[0], mrs[0], request);
    pthread_mutex_unlock(&net.lock);
    return result;
}

/* What was received in a host's memory is seen there by all. */
static ncclResult_t net_iflush(void *comm, int n, void **data, int *sizes, void **mrs,
                               void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mrs;
    *request = NULL;
    return ncclSuccess;
}

static ncclResult_t net_test(void *told_request, int *done, int *sizes)
{
    struct request *request = told_request;
    ncclResult_t result = ncclSuccess;
    pthread_mutex_lock(&net.lock);
    if (!request->is_done)
        result = look(request->ticket.comm, &request->seen);
    *done = request->is_done;
    if (request->is_done) {
        if (sizes)
            *sizes = (int)request->size;
        request->is_taken = false;
        result = ncclSuccess;
    }
    pthread_mutex_unlock(&net.lock);
    return result;
}

const ncclNet_v8_t ncclNetPlugin_v8 = {
    .name = "closlab",
    .init = net_init,
    .devices = net_devices,
    .getProperties = net_properties,
    .listen = net_listen,
    .connect = net_connect,
    .accept = net_accept,
    .regMr = net_reg,
    .deregMr = net_dereg,
    .isend = net_isend,
    .irecv = net_irecv,
    .iflush = net_iflush,
    .test = net_test,
    .closeSend = comm_close,
    .closeRecv = comm_close,
    .closeListen = net_close_listen,
};
