/* How two programs of these tests meet by TCP, and connect a pair of queues with each other. */
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include "calls.h"

enum { PORT = 18600, TRIES = 200, BETWEEN_US = 50000 };

static int peer; /* the other program */

/* It waits on "-", else connects to who waits there. */
static inline void meet(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (strcmp(address, "-")) {
        inet_pton(AF_INET, address, &at.sin_addr);
        for (int i = 0; connect(fd, (void *)&at, sizeof at) && i < TRIES; i++)
            usleep(BETWEEN_US);
        peer = fd;
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    need(!bind(fd, (void *)&at, sizeof at) && !listen(fd, 1), "listen");
    peer = accept(fd, NULL, NULL);
    close(fd);
}

static inline void exchange(const void *mine, void *others, size_t n)
{
    need(write(peer, mine, n) == (ssize_t)n, "write");
    need(recv(peer, others, n, MSG_WAITALL) == (ssize_t)n, "read");
}

/* What is to be known of the other end of a queue pair. */
struct end {
    uint32_t qpn, psn;
    union ibv_gid gid;
    int gid_index;
};

static inline void connect_qp(struct ibv_qp *qp, struct end here, struct end there, int mtu,
                              int timeout, int rnr_retry)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL_ACCESS,
        .path_mtu = mtu, .dest_qp_num = there.qpn, .rq_psn = there.psn, .sq_psn = here.psn,
        .max_rd_atomic = 4, .max_dest_rd_atomic = 16, .min_rnr_timer = 1,
        .timeout = (uint8_t)timeout, .retry_cnt = 7, .rnr_retry = (uint8_t)rnr_retry,
        .ah_attr = {.is_global = 1, .port_num = 1,
                    .grh = {.dgid = there.gid, .sgid_index = (uint8_t)here.gid_index,
                            .hop_limit = 64}},
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
