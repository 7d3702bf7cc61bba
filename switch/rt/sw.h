/* A switch: ports, a program with its state, the traffic manager, and an account of every packet.
 *
 * A switch is passive. It is handed frames and the time (sw_receive), and is asked to send what
 * may leave by then (sw_service), which answers when it wants to be asked again. Whoever does
 * that owns the switch for the moment: a real-time loop (loop.h), a simulator, or a test. All
 * switches that share a packet pool belong to the same thread.
 *
 * The account: received + copies = sent + dropped (by reason) + held, at any moment between calls.
 * Beside it the books tell the same by class, and in bytes: books.h.
 */
#pragma once

#include "cable.h"
#include "event.h"
#include "llr.h"
#include "pre.h"
#include "profile.h"
#include "traffic_manager.h"

enum sw_drop { /* why a packet went no further; keep in step with sw_drop_names */
    DROP_NO_PROGRAM,
    DROP_INGRESS,
    DROP_EGRESS,
    DROP_QUEUE_FULL,
    DROP_PRIORITY,
    DROP_NO_PORT,
    DROP_PORT_DOWN,
    DROP_SEND_FAILED,
    DROP_OVERSIZE,
    DROP_NO_GROUP,
    DROP_EMPTY_GROUP,
    DROP_ASSERT,
    DROP_LOOPING,
    DROP_ENDLESS,
    DROP_NO_MEMORY,
    DROP_CPU_BUSY,
    DROP_REPLACED,
    DROP_REASONS,
};
extern const char *const sw_drop_names[DROP_REASONS];

#define SW_FRAME_MAX 9728    /* bytes of a frame: jumbo frames with room for tags */
#define SW_TURNS_MAX 4096    /* resubmissions and recirculations served in one call */
#define SW_LOOPING_MAX 65536 /* packets that may wait to go round again */

struct port_left {
    struct port_count lost;    /* since the last time, of what the port had taken */
    struct port_count waiting; /* in the port, until its interface takes them */
};

/* What a port is to the switch. `send` copies the frame, or keeps nothing of it; `when` is when
 * its last bit arrives at the other end. */
struct port_ops {
    bool (*send)(void *port, const uint8_t *frame, uint32_t len, ns_t when);
    /* The same for a frame of which only the first `len` bytes exist; NULL where that cannot be. */
    bool (*send_cut)(void *port, const uint8_t *frame, uint32_t len, uint32_t absent, ns_t when);
    /* After a burst of sends: what of them did not leave. May be NULL; if not, so is not `full`:
     * whether the port can take no more for now. Then nothing is sent to it until sw_resume. */
    struct port_left (*flush)(void *port);
    bool (*full)(const void *port);
    /* Whether the other end has room to let one more wait until it is due: then it is sent as soon as
     * it leaves. May be NULL. */
    bool (*is_waited_for)(const void *port);
    /* Something will soon be sent: bring what that takes to the cache. May be NULL. */
    void (*fetch)(const void *port);
    /* Frames that arrived and could not be received, for want of room. May be NULL. */
    uint64_t (*missed)(void *port);
    void (*close)(void *port);
};

struct pcap;

/* Where there are thousands of them what a frame touches shares cache lines: the first, that of the
 * link, its queue's, and those of counts that have the usual classes in them. */
struct sw_port {
    _Alignas(64) uint16_t number;
    bool is_up;
    bool was_full; /* its link had no room when last looked at */
    bool is_stalled; /* full: its queues stand still until sw_resume */
    const struct port_ops *ops; /* NULL: packets for it are processed, then dropped */
    void *driver;
    struct cable *cables[CABLE_WAYS]; /* bad ones; NULL where there never was one */
    struct llr *llr;                  /* NULL: its link loses what it loses */
    struct pcap *pcap_in, *pcap_out;

    struct tm_port tm;

    uint64_t rx_packets;
    bytes_t rx_bytes;
    struct port_count in[CLASSES];
    struct port_count lost, waiting; /* waiting: in the driver; held, and not yet sent */
    uint64_t tx_packets;
    bytes_t tx_bytes;
    struct port_count out[CLASSES]; /* handed to it, whatever it then lost */
    struct pkt *wire, *wire_tail; /* deparsed and on their way, if the switch keeps them */
    struct cable_frame *extra, *extra_tail; /* of llr: on the wire, if the switch keeps them */
};

/* Soon a frame leaves it. */
static inline void sw_port_fetch_out(const struct sw_port *port)
{
    __builtin_prefetch(&port->tx_packets);
    __builtin_prefetch(&port->out[3]);
}

/* Soon frames arrive at it, and leave it. */
static inline void sw_port_fetch(const struct sw_port *port)
{
    __builtin_prefetch(port);
    __builtin_prefetch(&port->tm);
    __builtin_prefetch(&port->tm.queues[3]);
    __builtin_prefetch(&port->rx_packets);
    __builtin_prefetch(&port->in[3]);
    sw_port_fetch_out(port);
}

struct sw_digest { /* see digest.c */
    bool enabled;
    ns_t max_timeout, ack_timeout;
    uint32_t max_list, list_id;
    uint8_t *samples; /* of the list being filled */
    uint32_t n_samples;
    ns_t first_ns;
    struct sw_index seen; /* sent and not acknowledged, or in the list */
    struct digest_seen *sent;
    uint32_t sent_used, sent_room, sent_free, oldest, newest;
};

typedef void (*sw_text_fn)(void *context, const char *text);

struct sw_config {
    const char *name;
    struct pkt_pool *pool;
    int32_t cpu_port; /* -1: none */
    uint16_t drop_port;
    uint8_t queues;     /* priorities that exist; a packet of a higher one is dropped */
    uint32_t whole;     /* so many packets of a queue wait as they are, what is behind them packed */
    bool keep_on_wire;  /* hold frames until they arrive, else hand them over when they start */
    bool wants_events;  /* make an event queue */
    uint64_t seed;
};

/* Registers by which switch and program tell each other things; the program names them by
 * annotations of its P4 source. */
enum sw_role {
    SW_QUEUE_GATE, /* [port * 8 + priority]: until when a queue stands still (traffic_manager.h) */
    SW_PORT_DOWN,  /* [port]: 1 while the port has no carrier; the switch writes it */
    SW_TIMER,      /* deadlines, the last cell the earliest of them (timer.c) */
    SW_CLOCK,      /* [0]: what time it is, for whoever reads it from outside */
    SW_QUEUE_LIMIT,  /* [port * 8 + priority]: up to which byte a queue may send (traffic_manager.h), */
    SW_QUEUE_SPENT,  /* what it has sent, */
    SW_QUEUE_WAITED, /* how long it could not for want of credits, */
    SW_QUEUE_WAITS,  /* and how often; the switch writes these three */
    SW_LINK_COUNTS,  /* [port * 8 + enum llr_count]; the switch writes them */
    SW_ROLES,
};

/* A program's clock has 48 bits, as v1model's has. Before it would begin anew it is set back, and
 * with it the times that the program keeps: in registers that it names, @times, and in those of a
 * gate and of timers. A time of before the clock's new 0 becomes 1, which is long ago; 0 stays 0,
 * no time. Of a program that names none the clock begins anew. */
#define SW_TIMES_MAX 32
#define SW_CLOCK_MAX (((ns_t)1 << 48) - ((ns_t)1 << 44))
#define SW_CLOCK_BACK ((ns_t)1 << 47) /* differences of times in 32 bits stay what they are */

struct sw {
    char name[64];
    struct pkt_pool *pool;
    struct pkt_pool *own_pool; /* the same, if it is nobody else's */
    const struct sw_program *program;
    uint32_t loads; /* programs loaded so far: tells events of one from those of the next */
    struct sw_state state;
    struct sw_port *ports[SW_PORTS];
    uint64_t backlog[SW_PORTS / 64]; /* ports with packets queued, or on the wire: to be looked at */
    uint64_t busy[SW_PORTS / 64];    /* the same, but that none is to be before `soonest` */
    uint64_t to_flush[SW_PORTS / 64];
    uint8_t backlog_words, busy_words; /* bit w: backlog[w], busy[w] is not zero */
    bool wants_flush;      /* to_flush is not all zero */
    uint32_t n_stalled; /* ports */
    uint32_t n_cables;  /* that are, or were, bad */
    bool has_newcomers; /* packets were queued since ports were last looked through */
    ns_t soonest;              /* when the first of those that are busy is free */
    ns_t busy_until[SW_PORTS]; /* before then a port need not be looked at */
    struct sw_cells shared[SW_ROLES];
    struct sw_cells times[SW_TIMES_MAX]; /* more registers that hold times */
    uint32_t n_times;
    ns_t began; /* when the program's clock was 0 */
    struct pre_table groups, sessions;
    struct pkt *gathered[SW_GATHER]; /* received and parsed, in order */
    uint32_t n_gathered;
    struct pkt *again, *again_tail; /* resubmitted and recirculated */
    uint32_t n_again;
    int32_t cpu_port;
    uint8_t queues;
    uint32_t whole; /* as in its config */
    bool keep_on_wire;
    uint64_t seed;
    struct sw_digest *digests;
    struct event_queue events;
    ns_t due; /* the earliest that what was handed over should have arrived; whoever reads it resets it */
    ns_t idle_check; /* when to look for idle entries next */
    sw_text_fn trace, log;
    void *trace_context, *log_context;
    bool assert_failed; /* by the packet being processed */
    bool endless;       /* ... which took more turns of loops than it may */
    uint64_t received, copies, sent, held;
    uint64_t drops[DROP_REASONS];
    struct sw_books { /* books.h */
        struct port_count in[BOOKS], left[CLASSES][BOOKS], dropped[DROP_REASONS][BOOKS];
        int64_t changed[BOOKS];
    } books;
};

struct sw *sw_new(const struct sw_config *config); /* NULL when memory is out */
void sw_free(struct sw *sw);

/* Drop all packets inside as replaced; those to come are of another pool. */
void sw_move(struct sw *sw, struct pkt_pool *pool);

/* Run a program from now on, all its state fresh; packets inside are dropped as replaced. False,
 * nothing changed, when memory is out. */
bool sw_load(struct sw *sw, const struct sw_program *program, ns_t now);
/* Go on with other code of the same C, between two packets: nothing that is kept changes. The code
 * before must stay loaded, for tables know their descriptions in it. False, nothing changed, if
 * it is not of the same C. */
bool sw_exchange(struct sw *sw, const struct sw_program *program);

/* A port, made on first use: queues exist for numbers without an interface too. NULL when memory
 * is out or the number is too large. */
struct sw_port *sw_port_new(struct sw *sw, uint32_t number);
static inline struct sw_port *sw_port(struct sw *sw, uint32_t number)
{
    struct sw_port *port = number < SW_PORTS ? sw->ports[number] : NULL;
    return SW_LIKELY(port != NULL) ? port : sw_port_new(sw, number);
}

/* false, and errno EBUSY, if the port has a driver already. */
bool sw_attach(struct sw *sw, uint32_t number, const struct port_ops *ops, void *driver);
void sw_detach(struct sw *sw, uint32_t number); /* closes the driver */
void sw_set_up(struct sw *sw, uint32_t number, bool is_up, ns_t now);
/* Let the cable at a port be as good or bad as that from now on; false when memory is out. */
bool sw_set_cable(struct sw *sw, uint32_t number, enum cable_way way,
                  const struct cable_faults *faults);
/* Let the link at a port try again what it lost (llr.h), or no more if there is no room for it; let
 * a queue go by credits, or no more if `least` is 0. False when memory is out, or the program shares
 * no registers for it. */
bool sw_set_replay(struct sw *sw, uint32_t number, const struct llr_config *config);
struct sw_credit {
    uint32_t priority, least, cell, credit;
    ns_t ask_after;
};
bool sw_set_credit(struct sw *sw, uint32_t number, const struct sw_credit *credit);
void sw_resume(struct sw *sw, uint32_t number); /* its driver can take more again */
void sw_hasten(struct sw *sw, uint32_t number); /* its link may be free sooner than was said */
/* Share a register with the program from now on; none if `cells.at` is NULL. */
void sw_share(struct sw *sw, enum sw_role role, struct sw_cells cells);

/* One more register holds times; none does if `cells.at` is NULL. False if there are too many. */
bool sw_keep_times(struct sw *sw, struct sw_cells cells);

/* Write the time where the program wants it, if it does; sw_service does so too. */
void sw_tell_time(struct sw *sw, ns_t now);

/* A frame arrives; it is copied. It may wait for sw_service to be looked at. */
void sw_receive(struct sw *sw, uint32_t port, const void *frame, uint32_t len, ns_t now);
/* A frame of which only the first `len` bytes exist: the rest takes room and time, and nobody may
 * want to read it. For simulators, where payload would only be carried about. */
void sw_receive_cut(struct sw *sw, uint32_t port, const void *frame, uint32_t len, uint32_t absent,
                    ns_t now);
/* A frame arrived that cannot be taken in. */
void sw_refuse(struct sw *sw, uint32_t port, const void *frame, uint32_t len, uint32_t absent,
               enum sw_drop why);
/* Send what may leave by `now`; returns when to be called again, or SW_NEVER. */
ns_t sw_service(struct sw *sw, ns_t now);

void sw_trace_drop(const struct sw *sw, enum sw_drop why);
/* Of what is no packet yet: `book` is its class, plus BOOK_MADE if it was made here. */
static inline void sw_drop_frame(struct sw *sw, unsigned book, bytes_t bytes, enum sw_drop why)
{
    sw->drops[why]++;
    count_bytes(&sw->books.dropped[why][book], bytes);
}
static inline void sw_drop(struct sw *sw, struct pkt *p, enum sw_drop why)
{
    sw_drop_frame(sw, p->book, p->ingress_len, why);
    if (SW_UNLIKELY(sw->trace != NULL))
        sw_trace_drop(sw, why);
    pkt_release(sw->pool, p);
}

/* digest.c */
bool digest_init(struct sw *sw);
void digest_free(struct sw *sw);
void digest_sample(struct sw *sw, uint32_t digest, const void *phv, ns_t now);
ns_t digest_service(struct sw *sw, ns_t now);
bool digest_configure(struct sw *sw, uint32_t digest, bool enabled, ns_t max_timeout,
                      uint32_t max_list, ns_t ack_timeout);
void digest_ack(struct sw *sw, uint32_t digest, uint32_t list_id);

/* timer.c: packets that the program ordered for a time. */
typedef void (*timer_bell)(struct sw *sw, uint32_t number, ns_t now);
void timer_ring(struct sw *sw, timer_bell ring, ns_t now); /* those that are due, one by one */
static inline ns_t timer_due(const struct sw *sw) /* when the next is; SW_NEVER */
{
    const struct sw_cells *cells = &sw->shared[SW_TIMER];
    ns_t due = cells->at ? sw_cell_read(cells, cells->count - 1) : 0;
    return due ? cells->from + due : SW_NEVER;
}
/* A port came up: what its queues are to send again, they send now. */
void timer_hasten(struct sw *sw, uint32_t port, ns_t now);
/* What the books say: the lines that are not zero, up to `room`; returns how many there are. */
uint32_t sw_books(const struct sw *sw, struct book_line *lines, uint32_t room);

/* idle.c: entries that nobody hits */
ns_t idle_service(struct sw *sw, ns_t now);
