/* Swift (SIGCOMM 2020): a window that holds the round trip at a target.
 *
 * Below the target the window grows by a packet a round trip; above it, it shrinks in proportion to
 * how far, at most by half and once a round trip. The target is that of an empty fabric, a share for
 * every hop, and flow scaling: with less in its window a flow allows more delay, so that many small
 * windows come to the same rate. What is cut or lost counts as the largest decrease, once a round trip.
 *
 * Constants are those of Swift in htsim (swift.cpp), whose base target of 20 us is for its own
 * network: here the base is the empty fabric's round trip, and what follows from it (a hop's share, the
 * range of flow scaling) in the proportions that htsim has. A window below a packet would have to be
 * paced; the least is one packet.
 */
#include "cc.h"

#define ADDITIVE 1.0
#define BETA 0.8
#define MOST_DECREASE 0.5
#define HOP_SHARE 6.55  /* a hop's part of the base target is one in this */
#define RANGE 5.0       /* of flow scaling, in base targets */
#define LEAST_SCALED 0.1
#define MOST_SCALED 100.0
#define QUEUE_BASE 0.25 /* of the empty fabric's round trip: what a single flow may add to it */
#define MOST_BDPS 1.5

struct swift {
    ns_t decreased_at, round_trip;
};

static struct swift *of(struct cc *cc) { return (struct swift *)cc->state; }

/* Newton's; so that programs with an endpoint need no mathematics library. */
static double root(double x)
{
    double r = x > 1 ? x : 1;
    for (int i = 0; i < 24; i++)
        r = (r + x / r) / 2;
    return r;
}

static double packets(const struct cc *cc) { return cc->window / (double)cc->link.packet; }

static void begin(struct cc *cc)
{
    cc->most = MOST_BDPS * cc_bdp(&cc->link);
    cc->window = cc->most;
    of(cc)->round_trip = cc->link.base_rtt;
    window_limit(cc);
}

/* The delay beyond an empty fabric's that is aimed at. */
static double target(const struct cc *cc)
{
    double base = QUEUE_BASE * (double)cc->link.base_rtt, range = RANGE * base;
    double alpha = range / (1 / root(LEAST_SCALED) - 1 / root(MOST_SCALED));
    double scaled = alpha / root(packets(cc)) - alpha / root(MOST_SCALED);
    scaled = scaled < 0 ? 0 : scaled > range ? range : scaled;
    return base + cc->link.hops * base / HOP_SHARE + scaled;
}

static void decrease(struct cc *cc, double factor, ns_t now)
{
    if (now - of(cc)->decreased_at <= of(cc)->round_trip)
        return;
    cc->window *= factor < 1 - MOST_DECREASE ? 1 - MOST_DECREASE : factor;
    of(cc)->decreased_at = now;
    window_limit(cc);
}

static void acked(struct cc *cc, const struct cc_ack *ack)
{
    double aim = target(cc), found;
    if (ack->round_trip != CC_UNTOLD)
        of(cc)->round_trip = cc->link.base_rtt + cc_delay(cc, ack);
    found = (double)(of(cc)->round_trip - cc->link.base_rtt);
    if (found < aim) {
        cc->window += ADDITIVE * (double)cc->link.packet * (double)ack->bytes / cc->window;
        window_limit(cc);
    } else {
        decrease(cc, 1 - BETA * (found - aim) / (found + (double)cc->link.base_rtt), ack->now);
    }
}

static void lost(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)size, (void)in_flight;
    decrease(cc, 1 - MOST_DECREASE, now);
}

static void cut(struct cc *cc, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now)
{
    (void)last_hop;
    lost(cc, size, in_flight, now);
}

const struct cc_ops cc_swift = {
    .bytes = sizeof(struct swift),
    .begin = begin,
    .acked = acked,
    .cut = cut,
    .lost = lost,
    .may_send = window_may_send,
};
