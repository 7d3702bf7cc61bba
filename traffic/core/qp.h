/* The inside of an endpoint, shared by its files and by nobody else.
 *
 *   endpoint.c   making one, taking frames apart, counters
 *   scheduler.c  who sends next, and when to wake
 *   requester.c  messages out: segments, windows, ACKs and NAKs, time-outs
 *   responder.c  messages in: order, placement, what is owed in return
 *   halves.c     what queue pairs know while they send or receive: made and given back
 *   qp.c         what became of queue pairs
 *   frame.c      templates to frames
 *   transport.h  what a transport is; the above are RoCEv2's, uet.h and sue.h begin others
 *
 * Sequence numbers are 64 bits inside and never wrap; the low 24 are the PSN. They start one wrap
 * above zero so that an old PSN unwraps to a small number rather than to a negative one.
 */
#pragma once

#include "endpoint.h"
#include "heap.h"
#include "idmap.h"

#define SEQ_START (PSN_MASK + 1u)

/* What a queue pair has to say to its peer. */
enum { OWE_ACK = 1, OWE_NAK = 2, OWE_CNP = 4 };

/* A set of sequence numbers within a window: one bit each, in a ring. */
struct seqset {
    uint64_t *words;
    uint32_t mask;
};

static inline bool seqset_has(const struct seqset *set, uint64_t seq)
{
    uint32_t at = (uint32_t)seq & set->mask;
    return set->words[at / 64] >> at % 64 & 1;
}

static inline void seqset_add(struct seqset *set, uint64_t seq)
{
    uint32_t at = (uint32_t)seq & set->mask;
    set->words[at / 64] |= (uint64_t)1 << at % 64;
}

static inline void seqset_remove(struct seqset *set, uint64_t seq)
{
    uint32_t at = (uint32_t)seq & set->mask;
    set->words[at / 64] &= ~((uint64_t)1 << at % 64);
}

/* The INT header, from shim to stack, of the last packet received: the next ACK carries it back. */
struct echo {
    uint32_t bytes; /* 0: none */
    uint8_t header[WIRE_INT_SHIM + WIRE_INT_MD + WIRE_INT_STACK_MAX];
};

/* That something after a hole has arrived, and when: what holes there are before `before` are lost
 * if they still are holes after a while. */
struct evidence {
    uint64_t before;
    ns_t at, until;
};

/* What selective recovery knows of a queue pair besides. */
struct selective {
    /* Requester: `resend` walks the holes before `lost_before`; what lies before `sack_end` and is
     * no hole has arrived. */
    struct seqset sacked;
    uint64_t resend, sack_end, lost_before;
    struct evidence seen[4]; /* a ring, the oldest first */
    uint8_t first_seen, n_seen;
    uint8_t patience;   /* doublings of the wait, for what was sent again in vain */
    uint8_t tries;      /* how often the first hole was filled in vain */
    bool lost_again;    /* the first hole was filled, and that was lost */
    bool is_timed, in_alarms;
    uint64_t timed;     /* a packet sent once, whose round trip is measured */
    ns_t timed_at, round_trip; /* the longest of late, 0: none yet */
    ns_t lateness;      /* how long holes lasted at most that filled by themselves */
    ns_t again_at;      /* when the filling of the first hole counts as lost */
    ns_t alarm_at, alarm_seen_to;

    /* Responder. */
    struct seqset early;  /* arrived before their turn */
    uint64_t high;        /* one more than the last that arrived */
    uint64_t recent;      /* the last early one to come */
    uint64_t provoked_by; /* the packet that the NAK owed is about */
    bool twice;           /* one came twice, which was not told yet */
};

/* What many queue pairs have in common: what is at the head of their frames, but for what is each
 * one's own (struct flow), and what they are set to. */
struct common {
    struct common *next;
    bps_t rate; /* the ceiling */
    uint32_t data_bytes;
    uint8_t own_port; /* RoCEv2: the one they keep to as long as that has a link */
    uint8_t data[EP_DATA_HEADER], control[WIRE_HEADERS_MAX];
};

/* The rest, as it stands in frames; besides, the BTH has `remote`. */
struct flow {
    uint8_t mac[6], label[2], port[2]; /* label: the lower bits of IPv6's */
    uint8_t address[16];               /* the peer's; of IPv4 the first four */
};

/* RoCEv2: packets whose round trips are timed, the oldest first, in a ring. */
enum { STAMPS = 16 };

struct stamps {
    struct stamp {
        uint64_t seq;
        ns_t at; /* when it began to leave */
    } ring[STAMPS];
    uint8_t first, count;
};

/* What a queue pair knows while it sends: una <= acked <= next <= sent <= posted. */
struct sending {
    uint64_t acked;     /* everything before was acknowledged; a restart revokes it */
    uint64_t next;      /* the next to send */
    uint64_t sent;      /* everything before was sent at least once */
    uint64_t posted;    /* everything before was asked for */
    uint64_t requested; /* the packet before is the last that asked for an ACK */
    struct ep_message *cursor; /* the one that `next` is in */
    ns_t rto_at, rto; /* when time is out, and how long that was to take */
    ns_t silent;      /* time-outs since the last progress, all together */
    ps_t left_at;     /* follow_rate: when the last packet left, */
    uint32_t left;    /* and its bytes on the wire; 0: none has */
    struct cc *cc;         /* its congestion control, or NULL */
    struct stamps *stamps; /* if that is to hear of round trips */
    int32_t deficit; /* bytes it may send before the next one's turn */
    uint32_t since_request;
    uint8_t retries;
    bool rewound; /* a time-out rewound it and nothing has left since */
};

/* And while it receives. */
struct receiving {
    struct qp *answers_next, *notices_next;
    ps_t answer_ready, notice_ready; /* ACK or NAK, CNP: not before */
    struct ep_message *writing;
    uint64_t writing_first; /* sequence number the message being written began with */
    struct echo *echo;
    uint8_t csig[CSIG_WIDE]; /* the tag of the last packet that had one: the next ACK carries it back */
    uint8_t csig_bytes;      /* 0: none */
    ns_t cnp_at;
    uint32_t offset; /* bytes of it in place */
    uint8_t owed, nak_syndrome;
    bool nak_sent, cnp_sent, in_answers, in_notices;
    bool marked; /* something was, since the last answer, which the next one tells */
};

struct qp {
    /* Scheduling. */
    struct qp *ring_next;
    ps_t ready; /* data: not before */

    struct sending *out;  /* NULL when there is nothing to know: halves.c */
    struct receiving *in; /* the same */
    union {
        struct selective *selective; /* RoCEv2; NULL in the ordered modes */
        struct uet *uet;             /* UET */
        struct sue *sue;             /* scale-up Ethernet */
    };

    struct ep_message *head, *tail; /* the oldest unacknowledged, the newest if there is one */
    uint64_t una;                   /* everything before is acknowledged for good */
    ns_t rto_seen_to;               /* when its time-out comes up in the heap */
    uint64_t expected;

    /* Identity, and what else is small. */
    const struct common *common;
    uint32_t number : 24, error : 8;
    uint32_t remote : 24, ports : 8; /* bit i: port i may carry its data */
    uint32_t msn : 24, in_ring : 1, in_pace : 1, in_rto : 1; /* msn: messages completed */
    struct flow flow;
    uint8_t priority, cc;
};

_Static_assert(sizeof(struct qp) <= 128, "a thousand hosts may have two million of these");

/* Everything before was asked for. */
static inline uint64_t qp_posted(const struct qp *qp)
{
    if (qp->out)
        return qp->out->posted;
    return qp->head ? qp->tail->first + qp->tail->packets : qp->una;
}

/* Memory for many of a kind, one at a time. */
struct spares {
    struct spare {
        struct spare *next;
    } *first;
    struct spares_block *blocks;
};

struct ring {
    struct qp *head, *tail;
};

struct transport;

struct ep {
    /* What every service looks at, side by side: */
    struct heap pace, rto, alarms;
    ns_t storm_next; /* when the next frame of a pause storm is due */
    ns_t asks_again; /* when the sender has to be told again to pause, */
    bool asked;      /* which it was, because too much waits to be taken */
    bool stalled;    /* the host would not take the last frame */
    bool is_inc_turn;   /* what `inc` sends takes turns with messages */
    uint8_t port_turn;  /* the port that is asked first */
    uint8_t up;         /* bit i: port i has a link */
    uint8_t turn;       /* the priority whose turn it is */
    uint8_t has_data, has_answers; /* bit p: something is in ring p of these */
    ns_t repeat_at;  /* MRC: when requests that nobody answered go again */
    ps_t grant_at;   /* UET: when the next of `demands` gets credit */
    const struct transport *transport;
    const struct inc_ops *inc; /* of `jobs`; NULL: there are none */
    struct qp *qps;
    struct idmap qp_by_number;
    uint32_t last_sent; /* by_number: which queue pair did, by place */
    struct rx_buffer rx_buffer;

    struct ep_config config;
    struct ep_port port;
    struct ep_counters counters;

    struct lane {
        ps_t free; /* the wire is busy until, */
        ps_t rest; /* and for data until */
        bps_t rate;
        ns_t paused_until[8], paused_since[8]; /* since: NS_NEVER when not paused */
        struct ep_port_counters counters;
    } lanes[EP_PORTS];  /* by port */
    struct ring rings[8], answers[8], notices;
    struct credit credit;

    struct ring demands; /* UET: queue pairs that want credit */

    struct inc_job *jobs; /* whose collectives switches add up; the first is the next to send */

    const struct uet_format *format; /* UET: how its packets are written */
    struct common *commons; /* a list: few differ */
    struct spares senders, receivers; /* halves of queue pairs */
    struct selective *selective; /* one per queue pair, or NULL */
    struct uet *uet;             /* the same */
    struct sue *sue;             /* the same */
    struct entropy *entropies;   /* UET: one per queue pair and port */
    struct way *ways;            /* UET by MRC: one per queue pair and value; or NULL */
    uint16_t *reverse;           /* MRC: the ways of answers, one per queue pair and port; or NULL */
    uint16_t requests;           /* how many there were, counted round */
    struct ep_way_note *way_notes; /* of these, made when the first is */
    uint32_t n_way_notes;
    uint8_t *planes;             /* UET with several ports: by queue pair, ends at all but the first */
    uint32_t qp_count, qp_room;
    struct idmap sue_by_peer;    /* scale-up Ethernet: by short address and virtual channel */
    uint64_t *bitmaps; /* two per queue pair when selective, three for UET */
    uint8_t *room;     /* memory for a frame, */
    uint8_t *frame;    /* where it is built in there, */
    uint32_t in_front; /* and how much stands before: a carrier (uet_frame.c) */
    struct tss *tss;   /* NULL: nothing is encrypted, */
    uint32_t tss_bytes; /* and what frames have more than without */
};

/* Where headers stand in this endpoint's frames, INT aside. */
static inline uint32_t udp_at(const struct ep *ep)
{
    return WIRE_IP_AT + (ep->config.ip == 6 ? (uint32_t)WIRE_IPV6 : (uint32_t)WIRE_IPV4);
}
static inline uint32_t bth_at(const struct ep *ep) { return udp_at(ep) + WIRE_UDP; }

/* What an endpoint can send at all, with all of its ports. */
static inline bps_t ep_bps(const struct ep *ep) { return ep->config.ports * ep->config.link_bps; }

/* Whether congestion takes none of its packets. */
static inline bool qp_is_lossless(const struct ep *ep, const struct qp *qp)
{
    return ep->config.lossless >> qp->priority & 1;
}

/* Whether what it answers travels as its data does. */
static inline bool qp_answers_as_data(const struct ep *ep, const struct qp *qp)
{
    enum ep_acks acks = ep->config.acks;
    return acks == EP_ACKS_DATA || (acks == EP_ACKS_LOSSLESS && qp_is_lossless(ep, qp));
}

/* How much of a plane's entry there is: MAC and IP addresses of both ends. */
static inline uint32_t ends_bytes(const struct ep *ep) { return ep->config.ip == 6 ? 44 : 20; }

/* When a port is free for data. */
static inline ps_t free_for_data(const struct lane *lane)
{
    return lane->free > lane->rest ? lane->free : lane->rest;
}

/* The only port that is in a set, or the first. */
static inline uint8_t first_port(uint8_t ports) { return (uint8_t)__builtin_ctz(ports); }

/* A RoCEv2 packet taken apart. */
struct packet {
    uint8_t opcode, pad;
    bool ack_request, congested, echoes; /* echoes: an answer, to what was congested */
    bool reflects; /* an answer that tells of a CSIG tag */
    uint32_t psn, remote;
    const uint8_t *body; /* behind the BTH */
    uint32_t body_bytes; /* without the ICRC, with the pad */
    uint32_t there;      /* of those, and the ICRC: fewer if the payload was left out */
    const uint8_t *int_header;
    uint32_t int_bytes; /* 0: none */
    struct int_stack stack;
    const uint8_t *tag; /* of CSIG: what stands before IP, or in an answer behind the AETH */
    uint32_t tag_bytes; /* 0: none */
    uint32_t answer_bytes; /* of an answer: the AETH and what it reflects */
};

/* frame.c: build in ep->frame; `*stored` is how much of the returned length is there. */
struct segment {
    uint8_t opcode;
    bool ack_request;
    uint64_t seq;
    uint32_t offset, bytes, length; /* within the message; the RETH's length */
    const struct ep_message *message;
};
/* Put into a frame that was begun by a template what is a queue pair's own. */
static inline void stamp_flow(uint8_t *frame, const struct flow *flow)
{
    uint8_t *ip = frame + WIRE_IP_AT;
    uint32_t bytes = ip_address_bytes(ip);
    uint8_t *address = ip + ip_source_at(ip) + bytes;
    memcpy(frame, flow->mac, sizeof flow->mac);
    if (ip_is_v6(ip))
        memcpy(ip + 2, flow->label, sizeof flow->label);
    memcpy(address, flow->address, bytes);
    memcpy(address + bytes, flow->port, sizeof flow->port);
}

uint32_t frame_data(struct ep *ep, const struct qp *qp, const struct segment *segment,
                    uint32_t *stored);
uint32_t frame_ack(struct ep *ep, const struct qp *qp, uint64_t seq, uint8_t syndrome,
                   uint32_t *stored);
/* Close a frame that goes up to `end`, `behind` bytes of payload left out and the CRC to come; what
 * is summed after IP and UDP begins at `from`. */
uint32_t frame_close(struct ep *ep, uint8_t *from, uint8_t *end, uint32_t behind, uint32_t *stored);
void close_ipv4(uint8_t *ip, uint32_t length); /* its length and checksum */
uint32_t frame_cnp(struct ep *ep, const struct qp *qp, uint32_t *stored);
uint32_t frame_pause(struct ep *ep, uint8_t classes, uint16_t quanta); /* all of it stored */

/* scheduler.c */
void schedule_data(struct ep *ep, struct qp *qp, ns_t now); /* it may have something to send now */
void schedule_sooner(struct ep *ep, struct qp *qp); /* `ready` may be less than it was */
void schedule_answer(struct ep *ep, struct qp *qp, ns_t now);
void schedule_notice(struct ep *ep, struct qp *qp, ns_t now);
uint8_t answer_priority(const struct ep *ep, const struct qp *qp);
void schedule_rto(struct ep *ep, struct qp *qp); /* its time-out was set */
void schedule_alarm(struct ep *ep, struct qp *qp); /* so was that of its patience with holes */
void note_paused(struct ep *ep, struct lane *lane, uint8_t priority, ns_t took);
void schedule_pause(struct ep *ep, uint8_t port, const uint8_t *pfc, ns_t now);
ns_t schedule_all(struct ep *ep, ns_t now); /* send what may be sent; when to do so again */
bool schedule_is_held(const struct ep *ep, uint8_t port, uint8_t priority, ns_t now);
ps_t schedule_send(struct ep *ep, uint8_t port, uint32_t stored, uint32_t wire, uint8_t priority,
                   ps_t ready, ns_t now);

/* requester.c */
/* Let time be out when this one is, from now on; progress begins with the first again. */
void requester_await(const struct ep *ep, struct qp *qp, ns_t now, bool progress);
/* Time was out: whether all from what is not answered on is to go again. */
bool requester_timed_out(struct ep *ep, struct qp *qp, ns_t now);
/* Put a message behind those posted before; let go of those that end at or before a number. */
void requester_append(struct ep *ep, struct qp *qp, struct ep_message *message);
void requester_complete(struct ep *ep, struct qp *qp, uint64_t acked, ns_t now);
void requester_answer(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now);
void requester_cnp(struct ep *ep, struct qp *qp, ns_t now);

/* responder.c */
void responder_data(struct ep *ep, struct qp *qp, const struct packet *packet, ns_t now);
bool responder_answer(struct ep *ep, struct qp *qp, ns_t now); /* the ACK or NAK that it owes */
/* The message of an id, if the peer may write these bytes of it; NULL if not. */
struct ep_message *responder_target(const struct ep *ep, const struct qp *qp, uint32_t id,
                                    uint64_t offset, uint32_t length);
/* Put bytes in their place. False if they are wrong. */
bool responder_place(struct ep *ep, struct ep_message *message, uint64_t offset,
                     const uint8_t *data, uint32_t n);
void responder_received(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now);
bool responder_notify(struct ep *ep, struct qp *qp, ns_t now); /* a CNP */

/* halves.c */
/* A queue pair's half, made if there is none. NULL when memory is short. */
struct sending *sending(struct ep *ep, struct qp *qp);
struct receiving *receiving(struct ep *ep, struct qp *qp);
/* Give it back if nothing in it will be asked for. */
void sending_over(struct ep *ep, struct qp *qp);
void receiving_over(struct ep *ep, struct qp *qp);
void halves_free(struct qp *qp); /* what is theirs besides */
void spares_give(struct spares *spares, void *given);
void spares_free(struct spares *spares);

/* qp.c */
/* The queue pair of a number; NULL if there is none. */
static inline struct qp *qp_find(const struct ep *ep, uint32_t number)
{
    uint32_t index = idmap_find(&ep->qp_by_number, number);
    return index == IDMAP_NONE ? NULL : &ep->qps[index];
}
/* Queue pair numbers are each endpoint's own: a packet that strayed here may bear one of ours. */
static inline bool qp_is_from_peer(const struct qp *qp, const uint8_t *ip)
{
    const uint8_t *ours = qp->common->data + WIRE_IP_AT;
    uint32_t source = ip_source_at(ours), bytes = ip_address_bytes(ours);
    return !memcmp(ip + source, qp->flow.address, bytes) &&
           !memcmp(ip + source + bytes, ours + source, bytes);
}
void ep_event(struct ep *ep, enum ep_event_kind kind, struct qp *qp, struct ep_message *message,
              ns_t now);
void qp_fail(struct ep *ep, struct qp *qp, enum ep_error error, ns_t now);
