/* How much a sprayed flow may have in flight: one table of operations, an algorithm a file.
 *
 *   nscc.c   the sender's: a window, by delay and marks
 *   rccc.c   the receiver's: credit that it grants, as fast as its link brings data
 *   swift.c  the sender's: a window, by delay against a target
 *
 * Sizes are of frames as they are, without what the wire adds. A flow without any of these has all
 * of its packets in flight that the sequence window holds.
 */
#ifndef EP_CONGESTION_H
#define EP_CONGESTION_H

#include "units.h"

struct congestion_link { /* what an algorithm starts from */
    bps_t rate;
    ns_t base_rtt;
    bytes_t packet; /* a full one */
    bool has_trimming;
    uint32_t hops; /* links of the longest way */
};

struct nscc {
    double inc, average, achieved, fast, received;
    ns_t target, adjusted_at, decreased_at, quick_at, heard_at;
    double ignore;
    bool increasing, trouble;
};

struct rccc {
    uint64_t spent, granted, credit; /* bytes: sent, granted by the peer, had before any grant */
};

struct swift {
    ns_t decreased_at, round_trip;
};

struct congestion;

#define DELAY_UNTOLD NS_NEVER

struct congestion_ops {
    void (*init)(struct congestion *);
    /* `acked` bytes more have arrived; of one of them it is known that it took `delay` longer than
     * in an empty fabric (or DELAY_UNTOLD: of a packet sent twice it may not be), and whether it was
     * marked. `in_flight` is what is left. */
    void (*acked)(struct congestion *, bytes_t acked, ns_t delay, bool marked, bytes_t in_flight,
                  ns_t now);
    /* A packet of so many bytes was cut, at its last hop or before. */
    void (*cut)(struct congestion *, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now);
    void (*lost)(struct congestion *, bytes_t size, bytes_t in_flight, ns_t now);
    /* May be NULL. Nothing else flies if `in_flight` is `size`. */
    void (*sent)(struct congestion *, bytes_t size, bytes_t in_flight, ns_t now);
    bool (*may_send)(const struct congestion *, bytes_t size, bytes_t in_flight);
};

struct congestion {
    const struct congestion_ops *ops;
    struct congestion_link link;
    double window, most; /* bytes */
    union {
        struct nscc nscc;
        struct rccc rccc;
        struct swift swift;
    };
};

extern const struct congestion_ops NSCC, RCCC, SWIFT;

static inline double congestion_bdp(const struct congestion_link *link)
{
    return (double)link->rate / 8e9 * (double)link->base_rtt;
}

/* What those with a window have in common: it is at most `most`, but holds a packet at least. */
void window_limit(struct congestion *);
bool window_may_send(const struct congestion *, bytes_t size, bytes_t in_flight);

/* rccc.c: the peer has granted so much in all, in units of 256 bytes modulo 2^24. */
void rccc_granted(struct congestion *, uint32_t units);

#endif
