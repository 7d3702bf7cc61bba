/* An endpoint: the reliable-connected queue pairs of one host's RoCEv2 adapter, or the connections
 * of one that speaks Ultra Ethernet Transport (uet.h).
 *
 *        ep_post                                     transmit(frame, at)
 *   plan ───────► queue pairs ──► per-priority rings ─────────────────────► the wire
 *        ◄─────── requester, responder ◄──────────────────────────────────── ep_receive(frame, now)
 *         event
 *
 * The endpoint is passive. It owns no clock, no socket and no thread: whoever hosts it hands in
 * frames and the time, calls `ep_service` when the time that it asked for has come, and gets
 * frames through a callback. So the same code runs on a socket under the real clock and, a
 * thousand instances in a process, inside a simulator. After `ep_new` and the `ep_add_qp`s it takes
 * memory only when more queue pairs are at work than ever before; if there is none, what it cannot
 * send now it tries to send again, and what it cannot take in is lost.
 *
 * Time: `now` never goes back. Frames handed to `transmit` carry the time at which the first bit
 * leaves, mostly `now`. One follows the other at the link's rate, overhead included, to the
 * picosecond. A host that wakes late calls `ep_service` late and
 * the endpoint makes up for it, up to `catch_up`.
 *
 * Memory: the endpoint owns its queue pairs; messages belong to the caller and must stay where
 * they are until their event has come (or the endpoint is freed).
 *
 * Ports: an adapter may have several, one into each of as many planes, networks of their own. A RoCEv2
 * queue pair keeps to one of them. A UET connection uses all that lead to its peer: whichever port is
 * free takes the next packet, with an entropy of that port's plane (entropy modulo ports); an answer
 * leaves by the plane of what it answers, as long as that port has a link. Ports that are bonded lead
 * to one network, where the endpoint has the same addresses at all of them: a RoCEv2 queue pair whose
 * port has no link goes on by another until it has.
 *
 * Scheduling: what a queue pair owes (CNP, then ACK or NAK) before data, one queue pair after the
 * other; acknowledgements have the priority of the data they answer, unless told otherwise; data by
 * priority in turn, within a priority by deficit round robin, so that queue pairs share by bytes
 * in O(1). A queue pair that its rate holds back waits in a heap by time, O(log n).
 *
 * Not done here: SEND and READ, receivers that are not ready (RNR), shared receive queues.
 */
#pragma once

#include "cc/cc.h"
#include "credit.h"
#include "entropy.h"
#include "inc.h"
#include "rx_buffer.h"
#include "units.h"
#include "wire.h"

struct ep;
struct qp;

enum ep_payload {
    EP_PAYLOAD_PATTERN, /* frames are whole; data and ICRC are written and checked */
    EP_PAYLOAD_NONE,    /* frames end behind their headers, as if cut by a capture; no ICRC */
};

/* What a loss costs. Sender and receiver must agree. */
enum ep_recovery {
    EP_GO_BACK_0, /* the message starts again from its first packet */
    EP_GO_BACK_N, /* everything from the lost packet on is sent again */
    EP_SELECTIVE, /* the lost packets are; every packet carries its own RETH, and answers tell by a
                     map what has come beyond a gap */
};

#define EP_REORDER_ADAPTIVE INT64_MAX /* by the round trips that are measured */

/* Whose class acknowledgements travel in; CNPs always have the control class. */
enum ep_acks { EP_ACKS_DATA, EP_ACKS_CONTROL, EP_ACKS_LOSSLESS /* data, if of a lossless class */ };

enum ep_transport { EP_ROCE, EP_UET, EP_MRC, EP_SUE };

enum ep_delivery { EP_RUD, EP_ROD, EP_RUDI, EP_UUD }; /* uet.h has what each is */

/* UET's semantic header of a message that fits a packet; that of others is standard. */
enum ep_headers { EP_STANDARD, EP_MEDIUM, EP_SMALL };

enum { EP_PORTS = 8 };

struct ep_config {
    bps_t link_bps; /* of each port */
    uint8_t ports;  /* a power of two */
    bool bonded;    /* they lead to one network: what has no link is made up for by the others */
    uint32_t overhead_bytes; /* preamble, gap and FCS: what the wire spends on a frame beside it */
    uint32_t mtu;            /* payload bytes a packet, a multiple of 8 */
    uint8_t ip;              /* 4 or 6 */
    enum ep_payload payload;
    enum ep_recovery recovery;
    uint32_t window;       /* packets in flight a queue pair */
    uint32_t ack_every;    /* packets between requests for an ACK, beside each message's last */
    bool follow_rate;      /* a new rate also changes the wait that has begun */
    bool by_number;        /* of queue pairs that may send the next by number is the next, not the first to come */
    ns_t reorder;          /* selective: how long a packet may be overtaken before it counts as lost */
    bool multipath;        /* the fabric leads packets of a flow different ways: disorder is usual */
    ns_t rto;              /* without progress for this long: send again; 0: never */
    ns_t rto_first;        /* adaptive: a silence's first time-out, each further one twice as long */
    uint32_t retry_limit;  /* time-outs in a row, with neither progress nor a NAK, before it errors */
    ns_t catch_up;         /* how much lateness to make up for; 1 under a virtual clock */
    uint16_t int_port;     /* UDP destination port of packets with INT on board */
    uint8_t csig;          /* bytes of the tag that packets of flows that hear of CSIG carry, or 0 */
    uint8_t control_priority; /* of CNPs */
    enum ep_acks acks;
    uint8_t lossless; /* bit i: in the fabric priority i is paused, or goes by credits */
    struct rx_buffer_config rx_buffer; /* a host slower than its link */
    uint8_t pause_classes;       /* bit i: priority i is paused while too much waits there */
    uint64_t pause_dscps;        /* bit i: frames of DSCP i are of these classes */
    struct credit_config credit; /* of classes that nobody pauses */
    ns_t storm_from, storm_until; /* a fault: pause whoever sends to us, all this time */
    ns_t base_rtt; /* what a full packet and its answer take in an empty fabric, by the longest way */
    struct cc_values cc[CC_COUNT]; /* parameters of congestion controls, by enum cc_name */
    enum ep_transport transport;
    enum ep_delivery delivery;   /* UET */
    bool security;               /* UET: packets are encrypted, each by its queue pair's domain (tss.h) */
    enum ep_headers headers;     /* UET */
    enum entropy_policy entropy; /* UET: which way the next packet goes, */
    uint16_t entropies;          /* of so many, a power of two */
    bool timestamps;             /* MRC: packets bear the time they left at, and answers tell it, */
    bool port_status;            /* peers are told which ports have a link, */
    bool reverse_set;            /* and answers take ways that are known to lead there */
    uint8_t last_hop_dscp;       /* of what was cut at the port to us */
    bool has_trimming;           /* whether switches cut what they have no room for */
    uint32_t hops;               /* links of the longest way */
    uint32_t seed;
};

/* Sensible values for a link: see the source. */
void ep_config_default(struct ep_config *config, bps_t link_bps);

/* NULL, or what is wrong with it, in words. */
const char *ep_config_problem(const struct ep_config *config);

enum { EP_DATA_HEADER = WIRE_HEADERS_MAX + WIRE_INT_SHIM + WIRE_INT_MD };

struct ep_qp_config {
    uint32_t number, remote; /* 24 bits each; the local one unique in its endpoint */
    uint32_t first_psn, remote_first_psn;
    uint8_t priority;
    uint8_t cc; /* enum cc_name */
    bps_t rate; /* a ceiling; 0: the link's rate */
    ns_t base_rtt; /* UET: what a full packet and its answer take in an empty fabric; 0: by the longest way */
    uint32_t sdi;  /* with security: its domain, which has a key */
    uint8_t port;   /* RoCEv2: the one it keeps to */
    /* UET with several ports: what headers say at the second and those after it, in place of the
     * first's: the MAC addresses, to and from, and those of IP, from and to. */
    uint8_t planes[(EP_PORTS - 1) * WIRE_ENDS_MAX];
    uint32_t planes_bytes;
    /* Whole headers, Ethernet to BTH, as a template; `data` may hold an INT shim and MD header. */
    uint8_t data[EP_DATA_HEADER], control[WIRE_HEADERS_MAX];
    uint32_t data_bytes, control_bytes;
};

/* One RDMA WRITE, at either end. The caller fills in the first group and leaves the rest alone. */
struct ep_message {
    uint32_t id;   /* its rkey and its immediate, unique among its receiver's */
    uint32_t size; /* 0 is fine: an immediate alone */
    struct qp *qp; /* the queue pair it is sent on or expected on */

    struct ep_message *next;
    uint64_t first; /* sequence number of its first packet */
    union {
        uint32_t packets;  /* of one that is sent */
        uint32_t received; /* of one that is expected: bytes in place */
    };
    uint16_t number; /* of those on its queue pair, counted round */
    bool done;
};

#define EP_MESSAGE_MAX 0x80000000u /* bytes; and fewer than 2^23 packets */

enum ep_event_kind {
    EP_SENT,     /* every byte of a posted message was acknowledged */
    EP_RECEIVED, /* every byte of an expected message is in its place */
    EP_FAILED,   /* a posted message will not be sent: its queue pair is in error */
    EP_QP_ERROR, /* a queue pair went to error; `message` is NULL */
};

enum ep_error {
    EP_OK,
    EP_RETRY_EXCEEDED,    /* the peer does not answer */
    EP_REMOTE_ACCESS,     /* the peer knows no such message, or a smaller one */
    EP_REMOTE_INVALID,    /* the peer saw opcodes out of order */
    EP_REMOTE_OPERATION,  /* the peer is in error */
    EP_LOCAL_PROTECTION,  /* as responder: the peer wrote where it may not */
    EP_LOCAL_INVALID,     /* as responder: opcodes out of order */
    EP_LOCAL_DATA,        /* as responder: right ICRC, wrong bytes */
};

const char *ep_error_name(enum ep_error error);

struct ep_event {
    enum ep_event_kind kind;
    enum ep_error error;
    struct ep_message *message;
    struct qp *qp;
    ns_t at;
};

struct ep_port {
    void *ctx, *transmit_ctx; /* for `event` and `expected`, for `transmit` */
    /* A frame for the wire: `stored` bytes of the `wire` bytes it is long (all of them unless the
     * payload mode is NONE), the first bit leaving at `at`. False: not now, the endpoint tries
     * again on its next service. The bytes are the endpoint's and change after the return. */
    bool (*transmit)(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire, uint8_t port,
                     uint8_t priority, ns_t at);
    /* Something ended. May post messages, must not call receive or service. */
    void (*event)(void *ctx, const struct ep_event *event);
    /* The message of an id that is expected, done or not; NULL if there is none. */
    struct ep_message *(*expected)(void *ctx, uint32_t id);
};

/* The counters of the adapter, after what mlx5 and its like publish. */
#define EP_COUNTERS(X)                                                                       \
    X(tx_packets, "frames sent, control included")                                        \
    X(tx_bytes, "bytes of those")                                                         \
    X(tx_data_packets, "packets of messages sent, again and again")                       \
    X(tx_data_bytes, "payload bytes of those")                                            \
    X(tx_acks, "acknowledgements sent")                                                   \
    X(tx_naks, "NAKs sent")                                                               \
    X(rx_packets, "frames received, of any kind")                                         \
    X(rx_bytes, "bytes of those")                                                         \
    X(rx_data_packets, "packets whose payload was put in place")                          \
    X(rx_data_bytes, "payload bytes put in place, once each")                             \
    X(rx_acks, "acknowledgements received")                                               \
    X(rx_other, "frames that are neither RoCEv2 nor PFC")                                 \
    X(rx_malformed, "RoCEv2 frames cut short or inconsistent")                            \
    X(rx_icrc_errors, "frames whose ICRC is wrong")                                       \
    X(rx_cut_packets, "packets that a switch cut to their headers")                        \
    X(cut_packets_known, "those whose whole had come before: all others get a NACK")          \
    X(answers_withheld, "answers that were not sent, because too many wait to be")            \
    X(rx_refused, "packets of a peer that fit nothing it was asked for, or asks for")         \
    X(rx_tss_unprotected, "packets without the header of a secure domain, where that is asked for")  \
    X(rx_tss_unknown, "packets of a domain, a source or a key that are not known here")      \
    X(rx_tss_forged, "packets that are not authentic")                                     \
    X(rx_tss_replayed, "packets that say a count once more")                               \
    X(rx_tss_late, "packets too far behind others of their source to tell")                \
    X(tx_probes, "questions sent about what was not answered")                                \
    X(tx_endpoint_requests, "MRC: requests of an adapter to another sent")                    \
    X(rx_port_status, "MRC: those received that told of a peer's ports")                      \
    X(tx_credits, "grants of credit sent")                                                    \
    X(rx_credits, "grants of credit received")                                                \
    X(rx_no_queue_pair, "packets for queue pairs that are not there, in error, or another's")\
    X(out_of_sequence, "packets that came before their turn")                             \
    X(duplicate_request, "packets that had come before")                                  \
    X(discarded_bytes, "payload bytes thrown away: out of order, or by a restart")        \
    X(packet_seq_err, "NAKs received for a sequence error")                               \
    X(retransmitted_packets, "packets of messages sent again")                            \
    X(retransmitted_bytes, "payload bytes of those")                                      \
    X(local_ack_timeout_err, "time-outs")                                                 \
    X(qp_errors, "queue pairs that went to error")                                        \
    X(np_ecn_marked_packets, "packets received with congestion experienced")              \
    X(np_cnp_sent, "CNPs sent")                                                           \
    X(rp_cnp_handled, "CNPs received and obeyed")                                         \
    X(rp_cnp_ignored, "CNPs received on a queue pair that has no use for them")                      \
    X(rp_fast_cnps, "those of all CNPs that a switch sent")                                \
    X(rx_discards, "frames that found the receive buffer full")                           \
    X(rx_discards_lossless, "those of them whose class the adapter pauses")               \
    X(tx_pfc_frames, "pause frames sent, those that end a pause included")                 \
    X(tx_xoff_frames, "those that begin or renew one")                                    \
    X(rx_pfc_frames, "pause frames received")                                             \
    X(rx_credit_grants, "grants of a switch's buffer received (credit.h)")                 \
    X(rx_foreign_credits, "words of credits that nobody here can have sent")               \
    X(tx_credit_questions, "words of how much was spent, sent")                            \
    X(credit_waits, "times at which a class waited for credits")                           \
    X(credit_waited_ns, "how long classes waited for credits, added up")                   \
    X(rx_pause_transitions, "priorities that went from sending to paused")                \
    X(tx_parts, "parts of collectives in the network sent, again and again")               \
    X(tx_parts_again, "those that had gone before")                                        \
    X(rx_results, "their results received")                                                \
    X(rx_results_twice, "those that had come before, or nobody waits for")                 \
    X(rx_wrong_results, "those that hold something else than the parts add up to")         \
    X(rx_parts, "parts that were to be added up here, where there is no tree")             \
    X(rx_parts_refused, "parts that came back, because a switch knows nothing of the job") \
    X(messages_sent, "messages acknowledged whole")                                       \
    X(messages_received, "messages received whole")

struct ep_counters {
#define EP_COUNTER(name, about) uint64_t name;
    EP_COUNTERS(EP_COUNTER)
#undef EP_COUNTER
    ns_t paused_ns[8]; /* time each priority was paused, at all ports together */
};

/* What of that went through one port. */
#define EP_PORT_COUNTERS(X) X(tx_packets) X(tx_bytes) X(rx_packets) X(rx_bytes)

struct ep_port_counters {
#define EP_COUNTER(name) uint64_t name;
    EP_PORT_COUNTERS(EP_COUNTER)
#undef EP_COUNTER
    ns_t paused_ns[8];
};

/* An endpoint with room for `qps` queue pairs. NULL when memory is short or the config has a
 * problem. */
struct ep *ep_new(const struct ep_config *config, const struct ep_port *port, uint32_t qps);
void ep_free(struct ep *ep);

/* NULL and `*problem` in words if it cannot be. */
struct qp *ep_add_qp(struct ep *ep, const struct ep_qp_config *config, const char **problem);

/* Send a message after those posted before on its queue pair. On one in error it fails at once. */
void ep_post(struct ep *ep, struct ep_message *message, ns_t now);

/* A frame came in: `stored` bytes of `wire` (equal unless payload is NONE). Any bytes are fine. */
void ep_receive(struct ep *ep, uint8_t port, const uint8_t *frame, uint32_t stored, uint32_t wire,
                ns_t now);

/* Send what may be sent, time out what is late. Returns when to call again at the latest, if
 * neither frame nor message comes before: later than `now`, NS_NEVER if there is nothing to wait
 * for. Call it after `ep_receive` and `ep_post` too. */
ns_t ep_service(struct ep *ep, ns_t now);

const struct ep_counters *ep_counters(struct ep *ep, ns_t now);
struct ep_port_counters ep_port_counters(const struct ep *ep, uint8_t port);
const struct ep_config *ep_get_config(const struct ep *ep);

/* Let a port have another rate, from the next frame on. What congestion control computed from
 * the old one stays: an adapter does not start again because its cable fell back. */
void ep_set_link(struct ep *ep, uint8_t port, bps_t link_bps);

/* Tell that a port has lost its link, or has one again: then a pause that is still wanted is asked for
 * again. An adapter with one port goes on otherwise as before: there is nothing else it could do. */
void ep_set_up(struct ep *ep, uint8_t port, bool is_up, ns_t now);

/* From when on a port is free; and its time, for so many bytes of somebody else's: from when on they
 * have it. */
ns_t ep_port_free(const struct ep *ep, uint8_t port);
ns_t ep_occupy(struct ep *ep, uint8_t port, uint32_t wire, ns_t now);

/* A controller's word of which ways of a queue pair are not to be used, in place of what it said
 * before: bit i of the ENTROPY_MAX bits is entropy i. What flies there is let land. False, and nothing
 * is changed, if the queue pair keeps no states of ways (entropy mrc does), or no way would be left. */
bool ep_deny(struct ep *ep, struct qp *qp, const uint64_t *denied, ns_t now);

/* That a way of a queue pair was left, or is used again, or that a controller denied it. */
struct ep_way_note {
    ns_t at;
    uint32_t queue_pair;
    uint16_t entropy;
    uint16_t state; /* enum way_state */
};

/* The first EP_WAY_NOTES of these, in order; the endpoint's. What is passed over once is not noted. */
enum { EP_WAY_NOTES = 4096 };
const struct ep_way_note *ep_way_notes(const struct ep *ep, uint32_t *count);
const char *way_state_name(uint16_t state);

/* Let what a queue pair sends by an entropy be carried along a list of micro-segments, an IPv6 address;
 * NULL, or what is wrong. Entropies without a list are not steered. */
const char *ep_steer(struct ep *ep, struct qp *qp, uint32_t entropy, const uint8_t *list);

/* All that goes for messages to come, told piece by piece and always in the same order: what matters as
 * it is, what is a time, and what only grows with packets and counts, of which nothing depends on how
 * large it is. False if a message is under way; RoCEv2 alone, without collectives in the
 * network. */
enum ep_trait { EP_SAME, EP_TIME, EP_GROWS };
typedef void (*ep_tell)(void *context, enum ep_trait trait, uint64_t value);
bool ep_traits(const struct ep *ep, ep_tell tell, void *context);

/* About a queue pair. */
uint32_t qp_number(const struct qp *qp);
enum ep_error qp_error(const struct qp *qp);
struct qp *ep_find_qp(const struct ep *ep, uint32_t number);

struct qp_state {
    bps_t rate;         /* what congestion control allows, the ceiling included */
    uint64_t in_flight; /* packets */
    uint64_t waiting;   /* packets posted and not yet sent for the first time */
    ns_t timeout_at;    /* when what was sent counts as lost for want of an answer; NS_NEVER */
    bool has_turn;      /* it has something to send, now or when its rate allows */
    bool has_asked;     /* RoCEv2, as responder: its one NAK has left for what is missing still */
};
void qp_state(const struct qp *qp, ns_t now, struct qp_state *state);

/* Until when a class stands still at a port: NS_NEVER for want of credits, 0 if it does not. */
ns_t ep_held_until(const struct ep *ep, uint8_t port, uint8_t priority, ns_t now);
/* Since when a class waits for credits; now, if it does not. */
ns_t ep_credit_since(const struct ep *ep, uint8_t priority, ns_t now);
