/* An adapter, of reliable connections and datagrams, within a program's own process.
 *
 *   post ──► send queue ──► requester.c ──► packet.c ──► port.c ──► the interface
 *                               ▲ answers                  │
 *   completion queue ◄──────────┴──── responder.c ◄────────┘
 *
 * One lock a context: callers of verbs and the thread that receives (port.c) take turns. Packets
 * are counted by 64-bit numbers whose low 24 bits are the PSN. Times are real nanoseconds of the
 * monotonic clock; what verbs say of time is the fabric's and `dilation` times as long.
 */
#pragma once

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>

#include "../core/wire.h"
#include "counters.h"
#include "verbs_abi.h"

enum {
    SGE_MAX = 16,
    INLINE_MAX = 512,
    WR_MAX = 16384,
    CQE_MAX = 1 << 20,
    READS_MAX = 16, /* and atomics, under way at once in either direction */
    QPS_MAX = 1 << 16, /* of a process: the low half of a queue pair's number */
    KEYS_MAX = 1 << 20,
    GIDS_MAX = 16,
    WINDOW = 512, /* packets under way of a queue pair */
    ACK_EVERY = 32, /* packets: so often one asks for an answer within a message */
    PACKET_MAX = 4096 + 256,
    MESSAGE_MAX = 1 << 30,
};

enum rc_opcode {
    RC_SEND_FIRST,
    RC_SEND_MIDDLE,
    RC_SEND_LAST,
    RC_SEND_LAST_IMM,
    RC_SEND_ONLY,
    RC_SEND_ONLY_IMM,
    RC_WRITE_FIRST,
    RC_WRITE_MIDDLE,
    RC_WRITE_LAST,
    RC_WRITE_LAST_IMM,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
    RC_READ_REQUEST,
    RC_READ_FIRST,
    RC_READ_MIDDLE,
    RC_READ_LAST,
    RC_READ_ONLY,
    RC_ACKNOWLEDGE,
    RC_ATOMIC_ACKNOWLEDGE,
    RC_COMPARE_SWAP,
    RC_FETCH_ADD,
    RC_SEND_LAST_INV = 0x16,
    RC_SEND_ONLY_INV,
    UD_SEND_ONLY = 0x64,
    UD_SEND_ONLY_IMM,
};

/* AETH syndromes besides those of wire.h. */
enum { AETH_RNR = 0x20, AETH_KIND = 0x60, AETH_NAK = 0x60 };

/* A work request that waits or is under way. */
struct work {
    uint64_t wr_id, first, last; /* of its packets; a READ's are the answers */
    ns_t posted_at; /* if that is recorded */
    uint64_t remote, compare_add, swap;
    uint32_t rkey, imm, length;
    int opcode;
    unsigned flags, sges;
    uint32_t returned; /* bytes of a READ that have come */
    struct ibv_sge sge[SGE_MAX];
    uint8_t *inlined;
    struct ibv_ah *ah; /* a datagram's; what else it needs stands in rkey (Q key) and remote (QP) */
};

struct receive {
    uint64_t wr_id;
    unsigned sges;
    struct ibv_sge sge[SGE_MAX];
};

struct receive_queue {
    struct receive *slots;
    uint32_t size, sge_most, head, count;
};

struct srq {
    struct ibv_srq base;
    struct receive_queue queue;
    uint32_t limit;
};

struct cq {
    struct ibv_cq base;
    struct ibv_wc *entries;
    uint32_t size, head;
    _Atomic uint32_t count;
    unsigned empty_polls;
    _Atomic unsigned waiting;
    int armed; /* 0; 1: for any; 2: for solicited ones */
    bool overrun;
    struct cq *next_event;
    unsigned events;
};

struct channel {
    struct ibv_comp_channel base;
    struct cq *first, **last; /* that have an event each */
};

struct key {
    struct ibv_mr *mr;
    int access;
    uint64_t iova;
    uint8_t tag;
};

/* What is owed to a peer, in its order. */
struct answer {
    enum { ANSWER_ACK, ANSWER_READ, ANSWER_ATOMIC } kind;
    uint64_t seq, address;
    uint32_t length, sent, rkey, msn;
    uint8_t syndrome;
};

struct way { /* to a peer */
    uint8_t headers[WIRE_ETHERNET + WIRE_IPV6 + WIRE_UDP];
    uint32_t bytes;
};

struct qp {
    struct ibv_qp_ex ex; /* first: what programs know of it */
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct way way;
    uint32_t mtu;
    /* requester */
    struct work *sends; /* a ring */
    uint8_t *inlines;
    uint32_t sends_size, sends_head, sends_count, at; /* at: the next to send, from the head */
    uint64_t next, una, to_assign, high; /* to send; the first without an answer; free; ever sent */
    uint64_t rewound; /* what was asked for again last, plus one */
    unsigned reads, retries, rnr_retries;
    ns_t timer, rnr_until; /* 0: none */
    /* responder */
    uint64_t expected;
    uint32_t msn;
    bool nak_sent, is_dying; /* is_dying: an error is on its way to the peer, and then it breaks */
    uint8_t message; /* the first opcode of the message that is coming in; or NOTHING */
    struct receive receive;
    uint64_t write_at;
    uint32_t write_key, write_left, received;
    struct receive_queue receives;
    struct answer answers[4 * READS_MAX];
    unsigned answers_head, answers_count;
    struct { uint64_t seq, was; } atomics[READS_MAX];
    unsigned atomics_next;
    ns_t cnp_at;
    struct cc *cc; /* or NULL: as fast as the link */
    ns_t leaves_at; /* when the next packet may, by that */
    /* of ibv_wr_start to ibv_wr_complete */
    struct ibv_send_wr building[1];
    struct ibv_sge building_sge[SGE_MAX];
    uint8_t building_inline[INLINE_MAX];
    int building_error;
    bool is_building, is_extended;
    struct built { uint32_t count; uint64_t to_assign; } built_from;
};
enum { NOTHING = 0xFF };

struct counts {
#define COUNTER(folder, name) uint64_t name;
    VERBS_COUNTERS(COUNTER)
#undef COUNTER
};

struct rates;

struct ctx {
    struct verbs_context verbs; /* programs hold its last member */
    pthread_mutex_t lock;
    pthread_t thread;
    struct ctx *next; /* of those that are open */
    int socket, loop, wake; /* loop: to programs on this host, this one included */
    int own[2]; /* own: UDP's port of either IP, which nobody reads; -1: not ours */
    int ifindex;
    unsigned slot;
    bool stop, is_blocked;
    uint64_t dilation;
    bps_t bps;
    ns_t free_at; /* when the link has sent what it was given */
    uint8_t mac[6], tos;
    uint32_t mtu; /* of the interface */
    union ibv_gid gids[GIDS_MAX];
    int gid_count;
    struct qp **qps; /* by the low half of their numbers, up to qps_next */
    uint32_t qps_next, qps_last;
    int active_mtu; /* as verbs number them */
    struct rates *rates; /* or NULL */
    struct key *keys;
    uint32_t keys_count, keys_room, keys_free; /* keys_free: those before it are all taken */
    uint8_t frame[PACKET_MAX];
    FILE *record; /* or NULL */
    struct counts counts, shown; /* shown: so much of them is in the files of /sys */
    ns_t shown_at;
};

struct ah {
    struct ibv_ah base;
    struct ibv_ah_attr attr;
    struct way way;
    unsigned users; /* datagrams that wait */
    bool is_over;
};

static inline struct ctx *ctx_of(const struct ibv_context *context)
{
    return (struct ctx *)((uint8_t *)(uintptr_t)context - offsetof(struct verbs_context, context));
}
static inline struct qp *qp_of(struct ibv_qp *qp) { return (struct qp *)qp; }
static inline struct ctx *qp_ctx(const struct qp *qp) { return ctx_of(qp->ex.qp_base.context); }

/* port.c: a socket, a thread and the link's pace. */
ns_t port_now(void);
bool port_open(struct ctx *ctx, char *why, size_t room);
bool port_start(struct ctx *ctx);
void port_close(struct ctx *ctx);
bool port_may_send(struct ctx *ctx, ns_t now); /* whether the link takes one more */
bool port_send(struct ctx *ctx, uint32_t bytes); /* ctx->frame; false: later */
void port_wake(struct ctx *ctx);

/* rate.c: congestion control. */
struct rates *rates_read(const struct ctx *ctx);
void rate_begin(const struct ctx *ctx, struct qp *qp);
void rate_sent(const struct ctx *ctx, struct qp *qp, uint32_t bytes, ns_t now);
void rate_notified(const struct ctx *ctx, struct qp *qp, ns_t now);
ns_t rate_notice_interval(const struct ctx *ctx);
static inline bool rate_allows(const struct qp *qp, ns_t now) { return qp->leaves_at <= now; }

/* together.c: waits, the first time, for other clients of the job. */
void begin_together(void);

/* record.c: what a program did, if that is asked for. */
void record_open(struct ctx *ctx);
void record_close(struct ctx *ctx);
void record_pair(const struct ctx *ctx, const struct qp *qp);
void record_done(const struct qp *qp, const struct work *work);
void record_came(const struct ctx *ctx, const struct qp *qp, ns_t now);

/* shown.c: in the files of /sys. */
enum { GID_TEXT = 40 };
const char *gid_text(const union ibv_gid *gid, char text[GID_TEXT]);
void shown_addresses(const struct ctx *ctx, const char *interface);
void shown_counts(struct ctx *ctx, ns_t now, bool is_last); /* now and then; without the lock */
void shown_on_standard_error(const struct ctx *ctx);

/* route.c: by whom a peer is reached. */
bool route_find(struct ctx *ctx, const union ibv_gid *peer, uint8_t mac[6]);

/* packet.c: frames from parts, and back. */
int way_find(struct ctx *ctx, struct way *way, const struct ibv_ah_attr *to);
void way_spread(struct way *way, uint32_t label, uint32_t from, uint32_t to); /* by the UDP port */
uint8_t *packet_begin(struct ctx *ctx, const struct way *way, uint32_t to, uint8_t opcode,
                      uint64_t seq, bool ask);
bool packet_end(struct ctx *ctx, uint8_t *bth, uint8_t *end, uint32_t payload);
bool packet_cnp(struct ctx *ctx, const struct qp *qp);
void packet_arrived(struct ctx *ctx, uint8_t *frame, uint32_t bytes);

/* memory.c */
struct key *key_find(struct ctx *ctx, const struct ibv_pd *pd, uint32_t key);
uint8_t *memory_at(struct ctx *ctx, const struct ibv_pd *pd, uint32_t key, uint64_t address,
                   uint64_t length, int access);
bool receive_take(struct qp *qp, struct receive *into); /* from its queue, or the shared one */
uint64_t receive_room(const struct receive *receive);
void receive_complete(struct qp *qp, const struct ibv_wc *wc, bool is_solicited);
bool scatter(struct ctx *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned sges,
             uint64_t offset, const uint8_t *from, uint32_t bytes);
bool gather(struct ctx *ctx, const struct ibv_pd *pd, const struct ibv_sge *sge, unsigned sges,
            uint64_t offset, uint8_t *to, uint32_t bytes);

/* completion.c */
void cq_put(struct ibv_cq *cq, const struct ibv_wc *wc, bool is_solicited);
void cq_forget(struct ibv_cq *cq, uint32_t qp_num);
int cq_poll(struct ibv_cq *cq, int most, struct ibv_wc *wc);
int cq_notify(struct ibv_cq *cq, int solicited_only);

/* work.c: what is posted. */
int work_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int work_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int work_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void work_extend(struct qp *qp); /* the functions of ibv_qp_ex */

/* queue_pair.c */
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *init);
void qp_fail(struct qp *qp, int status); /* the oldest request has failed so; all else is flushed */
void qp_break(struct qp *qp); /* into the error state, all flushed */
void qp_complete(struct qp *qp, const struct work *work, int status);

/* requester.c */
void requester_send(struct ctx *ctx, struct qp *qp, ns_t now);
void requester_answered(struct ctx *ctx, struct qp *qp, const uint8_t *bth, uint32_t bytes,
                        ns_t now);
void requester_timer(struct ctx *ctx, struct qp *qp, ns_t now);
ns_t requester_due(const struct qp *qp, ns_t now);

/* datagram.c */
bool datagram_is(const struct qp *qp);
void datagram_send(struct ctx *ctx, struct qp *qp, ns_t now);
void datagram_arrived(struct ctx *ctx, struct qp *qp, const uint8_t *ip, const uint8_t *bth,
                      uint32_t bytes);
void datagram_forget(struct work *work); /* it will not be sent */

/* responder.c */
void responder_asked(struct ctx *ctx, struct qp *qp, const uint8_t *bth, uint32_t bytes, ns_t now);
void responder_send(struct ctx *ctx, struct qp *qp, ns_t now);

static inline bool qp_is_able(const struct qp *qp, int least)
{
    int state = qp->ex.qp_base.state;
    return state >= least && state <= IBV_QPS_SQD;
}
