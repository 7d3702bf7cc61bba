/* Congestion controls: how much of a flow may be in flight, and at which rate it leaves.
 *
 * A control is a file of this folder and a line of registry.h. The file has a table of operations,
 * the state of a flow, and the parameters, declared beside the code that uses them. An operation
 * that a control has no use for is NULL. A control takes no memory while it runs and does not know
 * which clock it is under; flows without one have all in flight that their window of packets holds.
 *
 *   begin      a flow starts: `link` and `parameters` are set, the state is all zeroes
 *   sent       a packet leaves, right after `rate` was asked
 *   acked      an answer came, with what it tells
 *   cut, lost  what became of a packet otherwise
 *   rate       how fast it may leave now; a control without is as fast as the link
 *   may_send   whether one more packet may be in flight; a RoCEv2 flow is held to `window` instead
 *
 * Sizes are of frames as they are, without what the wire adds.
 */
#pragma once

#include <stdalign.h>

#include "../units.h"
#include "csig.h"
#include "telemetry.h"

enum cc_users { CC_ROCE = 1, CC_UET = 2, CC_MRC = 4, CC_SUE = 8 };

/* What a control hears of the fabric, and its adapter has to see to. */
enum cc_signal {
    CC_MARKS,     /* RoCEv2: receivers answer marks by notifications (CNPs) */
    CC_TELEMETRY, /* RoCEv2: packets ask every hop for telemetry, answers bring it back */
    CC_DELAY,     /* round trips are timed */
    CC_CREDIT,    /* UET: the receiver is asked for credit, and grants it */
    CC_CSIG,      /* RoCEv2: packets carry a tag that hops write into, and answers bring it back */
    CC_ECHOES,    /* RoCEv2: answers say whether what they are about was marked (BECN) */
};

enum cc_name {
    CC_NONE,
#define CC(name, users, hears, about) CC_##name,
#include "registry.h"
#undef CC
    CC_COUNT
};

/* --- parameters --------------------------------------------------------------------------------- */

enum { CC_PARAMETERS = 16 }; /* of one control, at most */

/* A parameter is one of these by kind; all take eight bytes. Scenarios give times and rates with
 * their unit: `name_ns`, `name_mbps`. */
enum cc_kind { CC_IS_TIME, CC_IS_RATE, CC_IS_SIZE, CC_IS_NUMBER, CC_IS_REAL, CC_IS_SHARE, CC_IS_FLAG, CC_IS_WORD, CC_IS_FILE };

struct cc_parameter {
    const char *name;
    enum cc_kind kind;
    size_t place;
    double usual, least, most;
    const char *words; /* of CC_IS_WORD: what may be said, between blanks; its value is which */
};

/* In a file's list of parameters, each a field of its `struct parameters`. Python reads these lines
 * too: values are plain numbers, and the last argument is the documentation. CC_DEFAULT stands for
 * zero where the file itself finds a value if none is given. */
#define CC_DEFAULT 0
#define CC_TIME(name, usual, least, most, about) CC_IN(name, ns_t, CC_IS_TIME, usual, least, most, NULL)
#define CC_RATE(name, usual, least, most, about) CC_IN(name, bps_t, CC_IS_RATE, usual, least, most, NULL)
#define CC_SIZE(name, usual, least, most, about) CC_IN(name, bytes_t, CC_IS_SIZE, usual, least, most, NULL)
#define CC_NUMBER(name, usual, least, most, about) \
    CC_IN(name, uint64_t, CC_IS_NUMBER, usual, least, most, NULL)
#define CC_REAL(name, usual, least, most, about) CC_IN(name, double, CC_IS_REAL, usual, least, most, NULL)
#define CC_SHARE(name, usual, about) CC_IN(name, double, CC_IS_SHARE, usual, 0, 1, NULL) /* above 0 */
#define CC_FLAG(name, usual, about) CC_IN(name, uint64_t, CC_IS_FLAG, usual, 0, 1, NULL)
#define CC_WORD(name, usual, words, about) CC_IN(name, uint64_t, CC_IS_WORD, usual, 0, 0, words)
#define CC_FILE(name, about) CC_IN(name, const struct pcm_program *, CC_IS_FILE, 0, 0, 1, NULL)
#define CC_IN(name, type, kind, usual, least, most, words)                                           \
    {                                                                                                \
        #name, kind, CC_PLACE(name, type), usual, least, most, words                                 \
    }
/* Where a field is, and whether it is of its parameter's type. */
#define CC_PLACE(name, type)                                                                         \
    (offsetof(struct parameters, name) +                                                             \
     0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((struct parameters *)0)->name), type)  \
                         ? 1                                                                         \
                         : -1]))

struct cc_values {
    uint64_t slots[CC_PARAMETERS];
};

/* --- operations --------------------------------------------------------------------------------- */

struct cc_link { /* what a control starts from */
    bps_t rate;
    ns_t base_rtt;  /* what a full packet and its answer take in an empty fabric */
    bytes_t packet; /* a full one */
    bool has_trimming;
    uint32_t hops; /* links of the longest way */
};

#define CC_UNTOLD NS_NEVER

struct cc_ack {
    ns_t now;
    bytes_t bytes;       /* have arrived of which that was not known */
    bytes_t in_flight;   /* what is left */
    ns_t round_trip;     /* CC_DELAY: of a packet, from when it began to leave; or CC_UNTOLD */
    bool marked;         /* UET: that packet was; CC_ECHOES: of those that had arrived, one was */
    uint64_t acked, next; /* sequence numbers: all before have arrived; the next to leave */
    const struct int_stack *stack; /* CC_TELEMETRY; NULL: none came */
    const struct csig *csig;       /* CC_CSIG; the same */
};

struct cc;

struct cc_ops {
    size_t bytes; /* of a flow's state */
    const struct cc_parameter *parameters;
    size_t parameter_count;
    /* Fill in what is not declared, of a link of `line`: called before anything is given, and again
     * when the first parameter is, if that is a word (a profile). */
    void (*usual)(void *parameters, bps_t line);
    /* CC_MARKS: a receiver sends a flow no more than one notification in so long. */
    ns_t (*notice_interval)(const void *parameters);

    void (*begin)(struct cc *);
    void (*acked)(struct cc *, const struct cc_ack *);
    void (*notified)(struct cc *, ns_t now); /* CC_MARKS: a notification came */
    bps_t (*rate)(struct cc *, ns_t now);
    /* Nothing else flies if `in_flight` is `size`. */
    void (*sent)(struct cc *, bytes_t size, bytes_t in_flight, ns_t now);

    /* UET. A packet of so many bytes was cut, at its last hop or before; or lost. */
    void (*cut)(struct cc *, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now);
    void (*lost)(struct cc *, bytes_t size, bytes_t in_flight, ns_t now);
    bool (*may_send)(const struct cc *, bytes_t size, bytes_t in_flight);
    /* CC_CREDIT: the peer has granted so much in all; what it is to have granted in all, if so many
     * bytes wait. Both in units of 256 bytes modulo 2^24. */
    void (*granted)(struct cc *, uint32_t units);
    uint32_t (*target)(const struct cc *, bytes_t backlog);

    /* For who looks in: its measure of congestion, and what else it steers by. */
    void (*look)(const struct cc *, double inside[2]);
};

/* A flow's. */
struct cc {
    const struct cc_ops *ops;
    const void *parameters;
    struct cc_link link;
    double window, most; /* bytes: that may be in flight, and that this may ever be */
    uint32_t ask_every;  /* RoCEv2: an answer is asked for with every so manieth packet at least */
    uint8_t signals[2];  /* CC_CSIG: enum csig_type, that packets ask for in turns */
    uint64_t time_from;  /* RoCEv2: the sequence number from which on packets are to be timed */
    alignas(8) uint8_t state[];
};

/* What a line of the registry says. */
struct cc_entry {
    const char *name;
    uint8_t users; /* enum cc_users */
    enum cc_signal hears;
    const struct cc_ops *ops; /* NULL of CC_NONE */
};

extern const struct cc_entry CC_REGISTRY[CC_COUNT];

/* Of a name; CC_COUNT if there is none. */
unsigned cc_named(const char *name);

/* The usual values of all parameters of a control. */
void cc_usual(struct cc_values *values, unsigned name, bps_t line);

/* Whether a key is `control-parameter`, and let that be what a text says. False: it cannot be. */
bool cc_has(const char *key);
bool cc_assign(struct cc_values values[CC_COUNT], const char *key, const char *text, bps_t line);

/* An algorithm that was built (pcm/program.h), which stays; NULL: there is none at this path. */
const struct pcm_program *pcm_load(const char *path);

/* What an algorithm did for which the run has to end; NULL: nothing, or there is none. */
const struct pcm_fault *pcm_fault_of(const struct cc_values values[CC_COUNT]);

/* A flow's control, to be freed; NULL when memory is short. */
struct cc *cc_new(unsigned name, const struct cc_values *values, const struct cc_link *link);

/* The same once more, to look at without a change; NULL when memory is short. */
struct cc *cc_copy(const struct cc *cc);

static inline bool cc_hears(unsigned name, enum cc_signal signal)
{
    return name != CC_NONE && CC_REGISTRY[name].hears == signal;
}

static inline double cc_bdp(const struct cc_link *link)
{
    return (double)link->rate / 8e9 * (double)link->base_rtt;
}

/* The rate of a window: so much in every round trip, the link's at most, a thousandth of it at least. */
bps_t cc_rate_of_window(struct cc *, ns_t now);

/* What windows of sprayed flows have in common: one is at most `most`, but holds a packet at least. */
void window_limit(struct cc *);
bool window_may_send(const struct cc *, bytes_t size, bytes_t in_flight);

/* How much longer than in an empty fabric a round trip took. */
static inline ns_t cc_delay(const struct cc *cc, const struct cc_ack *ack)
{
    return ack->round_trip > cc->link.base_rtt ? ack->round_trip - cc->link.base_rtt : 0;
}
