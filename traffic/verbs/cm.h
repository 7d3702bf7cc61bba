/* Connections of queue pairs that are set up by addresses (rdma_cm).
 *
 *   rdma_connect ──REQ──► CONNECT_REQUEST, rdma_accept ──REP──► ESTABLISHED ──RTU──► ESTABLISHED
 *                         or rdma_reject ──REJ──► REJECTED
 *
 * Adapters exchange these words in datagrams of management; here they go over a TCP connection of
 * the hosts, at the very port that the program names, which ends with the connection of queue
 * pairs: so a peer that was killed is noticed. One thread of a process listens to all of them
 * (cm_wire.c); what happens stands in the queue of a channel (cm_event.c) until it is asked for.
 * One lock for all of it.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "cm_abi.h"

enum { PRIVATE_MAX = 256, CM_PORT = 1 };
enum { REJECTED_NOBODY = 8, REJECTED_BY_PROGRAM = 28 }; /* reasons, as InfiniBand numbers them */

enum cm_word { CM_REQ = 1, CM_REP, CM_RTU, CM_REJ };

/* What the ends tell each other. Both are machines of one kind: as it lies in memory. */
struct cm_message {
    uint32_t magic, word, qpn, psn, qkey, mtu;
    uint8_t reads_in, reads_out, retries, rnr_retries, srq, is_datagram, private_length, unused;
    uint8_t private_data[PRIVATE_MAX];
};

enum cm_state {
    CM_IDLE,
    CM_BOUND,
    CM_LISTENS,
    CM_CONNECTS, /* the TCP connection */
    CM_ASKED,    /* REQ is sent */
    CM_ANSWERS,  /* REQ has come, the program may accept */
    CM_ACCEPTED, /* REP is sent */
    CM_REPLIED,  /* REP has come, and the program is to finish it (rdma_establish) */
    CM_CONNECTED,
    CM_OVER,
};

struct cm_id {
    struct rdma_cm_id base; /* first: what programs know */
    struct cm_id *next;
    enum cm_state state;
    bool is_synchronous, is_told; /* is_told: programs know of it */
    bool has_own_pd, has_own_cqs;
    int fd, gid_index;
    unsigned tries;
    long long again_at; /* real milliseconds at which the next try is; 0: none */
    struct cm_message ours, theirs, coming;
    size_t come; /* bytes of `coming` */
    struct cm_id *listener;
    struct ibv_qp_init_attr *to_have; /* of rdma_create_ep: queue pairs of those who come */
    struct ibv_pd *pd_to_have;
};

struct cm_event {
    struct rdma_cm_event base;
    struct cm_event *next;
    uint8_t private_data[PRIVATE_MAX];
};

struct cm_channel {
    struct rdma_event_channel base;
    struct cm_event *first, **last;
};

extern pthread_mutex_t cm_lock;
extern struct cm_id *cm_ids; /* all there are */
extern unsigned cm_destroyed; /* how many there were besides */

static inline uint32_t cm_psn(uint32_t qpn) { return qpn * 2654435761u >> 8; }
static inline struct cm_id *cm_of(struct rdma_cm_id *id) { return (struct cm_id *)id; }

/* rdma_cm.c: calls of programs. Zero, or -1 and errno, as they return it. */
int cm_failed(int code);
bool cm_settle(struct cm_id *id); /* device and GID, from the address of this end */
int cm_ready_to_send(struct cm_id *id); /* its queue pair, if it has one */

/* cm_event.c */
void cm_tell(struct cm_id *id, int event, int status);
void cm_forget(struct cm_id *id); /* what happened to it */
bool cm_is_untold(const struct cm_id *id); /* that it came */
int cm_complete(struct cm_id *id); /* one without a channel waits for what it began */

/* cm_wire.c */
bool cm_watch(void); /* the thread runs, and looks at what is new */
void cm_compose(struct cm_id *id, enum cm_word word, const struct rdma_conn_param *param);
bool cm_send(const struct cm_id *id); /* what was composed */
bool cm_send_word(const struct cm_id *id, enum cm_word word);
socklen_t cm_size(const struct sockaddr *address);
void cm_hang_up(struct cm_id *id);

/* What both programs and these files call. */
struct rdma_event_channel *rdma_create_event_channel(void);
void rdma_destroy_event_channel(struct rdma_event_channel *);
int rdma_get_cm_event(struct rdma_event_channel *, struct rdma_cm_event **);
int rdma_ack_cm_event(struct rdma_cm_event *);
int rdma_migrate_id(struct rdma_cm_id *, struct rdma_event_channel *);
int rdma_create_id(struct rdma_event_channel *, struct rdma_cm_id **, void *, int);
int rdma_destroy_id(struct rdma_cm_id *);
int rdma_bind_addr(struct rdma_cm_id *, struct sockaddr *);
int rdma_resolve_addr(struct rdma_cm_id *, struct sockaddr *, struct sockaddr *, int);
int rdma_resolve_route(struct rdma_cm_id *, int);
int rdma_create_qp(struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *);
void rdma_destroy_qp(struct rdma_cm_id *);
void rdma_destroy_srq(struct rdma_cm_id *);

/* libibverbs' own */
struct ibv_device **ibv_get_device_list(int *);
void ibv_free_device_list(struct ibv_device **);
struct ibv_context *ibv_open_device(struct ibv_device *);
struct ibv_pd *ibv_alloc_pd(struct ibv_context *);
int ibv_dealloc_pd(struct ibv_pd *);
struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *);
int ibv_destroy_comp_channel(struct ibv_comp_channel *);
struct ibv_cq *ibv_create_cq(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);
int ibv_destroy_cq(struct ibv_cq *);
struct ibv_qp *ibv_create_qp(struct ibv_pd *, struct ibv_qp_init_attr *);
int ibv_modify_qp(struct ibv_qp *, struct ibv_qp_attr *, int);
int ibv_destroy_qp(struct ibv_qp *);
struct ibv_srq *ibv_create_srq(struct ibv_pd *, struct ibv_srq_init_attr *);
int ibv_destroy_srq(struct ibv_srq *);
int ibv_query_gid(struct ibv_context *, uint8_t, int, union ibv_gid *);
int ibv_query_port(struct ibv_context *, uint8_t, struct ibv_port_attr *);
