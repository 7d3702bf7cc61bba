/* The inside of Ultra Ethernet Transport, shared by its files and by nobody else.
 *
 *   uet_send.c     messages out: what flies, what is lost, probes for a tail
 *   uet_receive.c  messages in: placed where they say
 *   uet_answer.c   what is owed to a peer: answers, questions, credit
 *   uet_frame.c    templates to frames
 *   mrc_node.c     what MRC's adapters ask each other, and ways for answers
 *
 * Every packet takes a way of its own (entropy.h), says where its bytes belong and is answered by
 * itself. Nothing is ever sent again but what is known to be lost: by a NACK for what was cut, by what
 * was sent long after it having arrived, or by a probe's answer. How much may fly is up to congestion controls
 * (cc/cc.h). That is RUD; the other modes of delivery differ in this:
 *
 *   ROD    all go one way and are taken in order; what comes early is refused, told by a NACK, and from
 *          what is missing on everything goes again
 *   RUDI   a target keeps nothing and answers each packet by its id; the sender alone knows what arrived.
 *          Writing twice does no harm. Nobody is there to be probed: the second silence in a
 *          row finds all lost
 *   UUD    nothing is answered, and nothing sent again: what has left is done with
 */
#pragma once

#include "entropy.h"
#include "mrc_wire.h"
#include "transport.h"
#include "tss.h"
#include "uet_wire.h"

/* The last transmission of a packet. */
struct uet_sent {
    uint64_t order; /* the how manieth transmission it was */
    ns_t at;
    uint32_t size;
    uint16_t entropy;
    bool flies; /* neither answered nor lost */
    bool again; /* it was not the first */
};

enum uet_answer_kind {
    UET_SAY_ACK, UET_SAY_NACK, UET_SAY_PROBE, UET_SAY_CREDIT_REQ, UET_SAY_EP_REQ, UET_SAY_EP_RSP
};

/* An answer that is owed. */
struct uet_answer {
    uint64_t seq;
    uint16_t entropy; /* whose answer it is; of a probe, that which it asks about */
    uint16_t way;     /* the entropy that it takes itself, as it leaves */
    uint8_t kind, code;
    uint16_t opaque; /* a probe's own, that its answer has too: one and the way it asks about, or which
                      * question it is of a lossless class, or 0 */
    uint16_t stamp; /* that of what it answers */
    bool marked, again, to_probe;
};

/* The last request of a queue pair's adapter, if it was not answered (mrc_node.c). */
struct mrc_request {
    ns_t at;
    uint16_t number, entropy;
    bool open;
};

enum { UET_ANSWERS = 64, UET_QUESTIONS = 16, UET_QUESTION = 0x8000 /* in `opaque`: it is one */ };

/* Of a lossless class: a probe that left behind whatever of its way has a lower order. */
struct uet_question {
    uint64_t order, end; /* end: its answer tells of packets before, as many as a map has */
    ns_t at;
    uint16_t entropy;
    bool open;
};

/* Whether a probe is of a way, and not of what has come. */
static inline bool uet_is_of_way(uint16_t opaque) { return opaque && !(opaque & UET_QUESTION); }

struct uet {
    /* Requester. */
    struct seqset acked, lost;
    struct uet_sent *sent; /* by sequence number, as many as `acked` has bits; made when first used */
    uint64_t *line;        /* transmissions in order: whose they were; twice as many */
    uint64_t line_first, line_end; /* those of `line` that may still count */
    uint64_t newest;               /* the order of the newest that has arrived */
    uint64_t first_lost;           /* none before is */
    uint32_t lost_count;
    bytes_t in_flight, backlog;    /* backlog: posted and not yet sent */
    ns_t round_trip;               /* the longest of late */
    double overtaken;              /* by how many packets one was that arrived, at most of late */
    ns_t probed_at;
    struct uet_question *questions; /* the last; made with `sent` in a lossless class */
    uint16_t asked;                 /* and how many there were */
    struct entropy *entropy; /* by port: its own values, of which each is planes x index + port */
    struct way *ways;        /* by MRC, or NULL */
    uint16_t posted;         /* messages, counted round */
    uint8_t *planes;         /* ends at all ports but the first; or NULL */
    uint16_t heard;          /* the entropy of the last packet of the peer's */
    uint8_t *lists;          /* by entropy: where a carrier leads; NULL: it is not steered */
    ns_t base_rtt;           /* of an empty fabric */
    uint32_t source;         /* what the peer is in its domain (tss.c) */
    uint8_t peer_up;         /* bit i: the peer's port i has a link, as far as it told */

    /* Responder. */
    struct seqset got;
    uint64_t high; /* one more than the last that arrived */
    uint64_t received; /* bytes of frames, cut ones included at what they were */
    struct uet_answer *answers; /* a ring; made when first used */
    uint8_t first_answer, n_answers;
    uint64_t demand, granted; /* bytes: what the peer would be granted, and was */
    struct qp *demands_next;
    bool in_demands, owes_grant;

    /* MRC: */
    uint16_t *reverse;          /* by port: the entropy that answers take, or MRC_NO_WAY; or NULL */
    struct mrc_request probe;   /* of a way for answers */
    struct mrc_request status;  /* of our ports: to be answered by the peer, of which this is the first */
    uint16_t told;              /* the number of the last that the peer told of its ports */
    uint8_t tries;
    bool has_told;
};

#define MRC_NO_WAY UINT16_MAX

enum uet_kind {
    UET_IS_NOTHING, /* that is known, or too short */
    UET_IS_UNASKED, /* known, and nothing that would be answered */
    UET_IS_DATA,
    UET_IS_ACK,
    UET_IS_NACK,
    UET_IS_PROBE,
    UET_IS_CREDIT,
    UET_IS_CREDIT_REQ,
    UET_IS_EP_REQ,
    UET_IS_EP_RSP,
};

#define UET_UNTOLD UINT32_MAX

/* A packet taken apart, as far as its kind has it. */
struct uet_packet {
    enum uet_kind kind;
    const uint8_t *pds;    /* what stands behind UDP */
    uint32_t bytes, there; /* from there on, without the CRC; and how many of them are */
    uint32_t was;          /* the frame's size before it was cut */
    uint16_t entropy;      /* the way it came, */
    uint16_t about;        /* and the one that an answer is about */
    uint32_t to, from;     /* the connection's numbers here and there, or UET_UNTOLD */
    uint32_t psn;          /* its low bits; of an ACK, of the last before which nothing is missing */
    int32_t ahead;         /* ACK: how much further the packet is that it answers */
    uint64_t map;          /* ACK: bit i: that which is i + `map_ahead` further has come */
    uint16_t map_ahead, opaque; /* opaque: of a probe, and its answer */
    uint8_t code;          /* NACK, */
    uint32_t wanted;       /* and of what came out of order the PSN that should have */
    uint32_t credit;       /* granted, or wanted; of 256 bytes */
    uint32_t links;        /* EP_REQ: of the peer's ports */
    uint16_t stamp;        /* MRC: of data and what asks; of answers that of what they answer */
    bool marked;           /* on the way here */
    bool told_marked, told_bad; /* answers: the packet they answer was; its way is not to be used */
    bool again, to_probe, spends; /* spends: of a connection that needs credit */
    bool cut, cut_at_last_hop;
    uint32_t source; /* who encrypted it, by number (tss.c) */
    /* Data that is whole. */
    bool has_content;
    uint64_t key, offset;
    uint32_t size, whole; /* whole: of the message, or UET_UNTOLD */
    const uint8_t *data;
};

struct uet_segment {
    uint64_t seq;
    uint32_t offset, bytes, credit_target;
    uint16_t entropy, stamp;
    bool again;
    const struct ep_message *message;
};

/* What differs from one wire to the other: uet_frame.c has UET's, mrc_frame.c MRC's. Frames are built in
 * ep->frame; `*stored` is how much of the returned length is there. */
struct uet_format {
    uint16_t port;     /* of UDP */
    uint32_t headers;  /* of data, behind UDP, the longest, */
    uint32_t least;    /* and of anything */
    uint32_t psn_mask;
    uint32_t (*data)(struct ep *ep, const struct qp *qp, const struct uet_segment *segment,
                     uint32_t *stored);
    uint32_t (*ack)(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                    uint32_t *stored);
    uint32_t (*nack)(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                     uint32_t *stored);
    uint32_t (*control)(struct ep *ep, const struct qp *qp, unsigned what,
                        const struct uet_answer *answer, uint32_t payload, uint32_t *stored);
    /* A request of the adapter itself, or a response: `seq` is its number, `code` the operation,
     * `opaque`, of a request, the ports that have a link. MRC's alone. */
    uint32_t (*node)(struct ep *ep, const struct qp *qp, const struct uet_answer *answer,
                     uint32_t *stored);
    /* Of a packet whose lengths and CRC are right. */
    void (*read)(struct uet_packet *packet);
};

extern const struct uet_format MRC_FORMAT, *const UET_FORMATS[]; /* by enum ep_delivery */

static inline bool uet_delivers(const struct ep *ep, enum ep_delivery how)
{
    return ep->config.delivery == how;
}

/* The sequence number nearest to `near` with a PSN's low bits. */
static inline uint64_t uet_unwrap_as(const struct ep *ep, uint64_t near, uint32_t psn)
{
    uint32_t mask = ep->format->psn_mask;
    if (mask == UINT16_MAX)
        return near + (uint64_t)(int64_t)(int16_t)(psn - (uint32_t)near);
    return mask == PSN_MASK ? psn_unwrap(near, psn) : uet_unwrap(near, psn);
}

/* uet_frame.c: begin a frame from a template, of which only Ethernet, IP and UDP count; returns what is
 * behind UDP. And 64 bits of what has arrived, from one packet on; and the first such that an answer
 * about a packet is to tell of. */
uint8_t *uet_begin(struct ep *ep, const struct qp *qp, const uint8_t *template, uint16_t entropy);
uint64_t uet_map_from(const struct uet *uet, uint64_t from);
uint64_t uet_map_begin(const struct qp *qp, const struct uet_answer *answer);
uint16_t uet_early(const struct qp *qp); /* how far the last that came is ahead */
bool uet_is_from_peer(const struct ep *ep, const struct qp *qp, const uint8_t *ip); /* by any plane */

/* uet_send.c */
void uet_prepare(struct ep *ep, struct qp *qp, ns_t base_rtt);
void uet_acked(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now);
void uet_nacked(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now);
/* The ways that are not to be used, bit i: entropy i. False if none would be left, or no states are kept. */
bool uet_deny(struct ep *ep, struct qp *qp, const uint64_t *denied, ns_t now);
void uet_credited(struct ep *ep, struct qp *qp, const struct uet_packet *packet, ns_t now);
uint16_t uet_next_entropy(const struct ep *ep, const struct qp *qp, uint8_t port, ns_t now);

/* uet_receive.c */
void uet_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now);

/* mrc_node.c */
void mrc_ports_changed(struct ep *ep, ns_t now);
void mrc_seek_way(struct ep *ep, struct qp *qp, ns_t now); /* data came: know a way for answers */
void mrc_take(struct ep *ep, const uint8_t *ip, const struct uet_packet *packet, ns_t now);
void mrc_repeat(struct ep *ep, ns_t now);

/* uet_answer.c */
void uet_owe(struct ep *ep, struct qp *qp, const struct uet_answer *answer, ns_t now);
bool uet_answer(struct ep *ep, struct qp *qp, ns_t now);
uint8_t uet_answer_port(const struct ep *ep, const struct qp *qp);
/* The credit target, in units: what a receiver is to have granted in all. And to be such a receiver:
 * what a peer would have granted, and granting what is due by now. */
uint32_t uet_target(const struct ep *ep, const struct qp *qp);
void uet_want_credit(struct ep *ep, struct qp *qp, uint32_t units, ns_t now);
void uet_grant(struct ep *ep, ns_t now);

/* When the next grant is due; NS_NEVER. */
static inline ns_t uet_grant_due(const struct ep *ep)
{
    return ep->demands.head ? ns_after_ps(ep->grant_at) : NS_NEVER;
}

/* Whether a queue pair spends credit that its receiver grants. */
static inline bool uet_spends(const struct qp *qp) { return cc_hears(qp->cc, CC_CREDIT); }

/* What a message's packets say behind the PDS header; and how long that is. */
static inline unsigned uet_next(const struct ep *ep, const struct ep_message *message)
{
    bool is_short = message->size <= ep->config.mtu;
    return !is_short || ep->config.headers == EP_STANDARD ? UET_NEXT_STD
           : ep->config.headers == EP_MEDIUM              ? UET_NEXT_MEDIUM
                                                          : UET_NEXT_SMALL;
}

static inline uint32_t uet_ses_bytes(unsigned next)
{
    return next == UET_NEXT_STD      ? UET_SES
           : next == UET_NEXT_MEDIUM ? UET_SES_MEDIUM
           : next == UET_NEXT_SMALL  ? UET_SES_SMALL
                                     : 0;
}

/* The size of a packet with so much on board, at most; and of one of a message. */
static inline uint32_t uet_frame_size(const struct ep *ep, uint32_t bytes)
{
    uint32_t stamp = ep->config.timestamps ? MRC_TSETH : 0;
    return bth_at(ep) + ep->tss_bytes + ep->format->headers + stamp + bytes + WIRE_ICRC;
}

static inline uint32_t uet_size_of(const struct ep *ep, const struct ep_message *message, uint32_t bytes)
{
    return uet_frame_size(ep, bytes) - UET_SES + uet_ses_bytes(uet_next(ep, message));
}

/* The port of an entropy's plane. */
static inline uint8_t uet_plane(const struct ep *ep, uint16_t entropy)
{
    return (uint8_t)(entropy & (ep->config.ports - 1u));
}

/* The ports that have a link at both ends, as far as is known; if there is none, ours that have one. */
static inline uint8_t uet_links(const struct ep *ep, const struct qp *qp)
{
    uint8_t both = ep->up & qp->uet->peer_up;
    return both ? both : ep->up;
}

/* The port that something of an entropy leaves by, whatever it says: its plane's, or any that has a
 * link. */
static inline uint8_t uet_port(const struct ep *ep, const struct qp *qp, uint16_t entropy)
{
    uint8_t plane = uet_plane(ep, entropy), up = uet_links(ep, qp);
    return up >> plane & 1 || !up ? plane : first_port(up);
}
