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

struct parameters {
    double additive, beta, most_decrease, queue_base, hop_share, range, least_scaled, most_scaled;
    double most_bdps;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_REAL(additive, 1, 0.001, 1000, "Packets a round trip by which the window grows."),
    CC_SHARE(beta, 0.8, "How hard the window is cut, by how far the delay is above its target."),
    CC_SHARE(most_decrease, 0.5, "What the window is cut by at most, and after a loss."),
    CC_REAL(queue_base, 0.25, 0.001, 1000,
            "The base target: the delay a single flow may add, in round trips of an empty fabric."),
    CC_REAL(hop_share, 6.55, 0.1, 1000000, "A hop adds one part in so many of the base target."),
    CC_REAL(range, 5, 0, 1000, "What flow scaling adds at most, in base targets."),
    CC_REAL(least_scaled, 0.1, 0.001, 1, "Packets of a window up to which it adds all of that,"),
    CC_REAL(most_scaled, 100, 2, 1000000, "and from which on it adds nothing."),
    CC_REAL(most_bdps, 1.5, 0.01, 1000, "The largest window, in bandwidth-delay products."),
};

struct swift {
    ns_t decreased_at, round_trip;
    double base, range, alpha, floor; /* of the target: in ns, but for alpha */
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
    const struct parameters *p = cc->parameters;
    struct swift *swift = of(cc);
    double base = p->queue_base * (double)cc->link.base_rtt, range = p->range * base;
    swift->alpha = range / (1 / root(p->least_scaled) - 1 / root(p->most_scaled));
    swift->floor = swift->alpha / root(p->most_scaled);
    swift->base = base + cc->link.hops * base / p->hop_share;
    swift->range = range;
    swift->round_trip = cc->link.base_rtt;
    cc->most = p->most_bdps * cc_bdp(&cc->link);
    cc->window = cc->most;
    window_limit(cc);
}

/* The delay beyond an empty fabric's that is aimed at. */
static double target(const struct cc *cc)
{
    const struct swift *swift = (const struct swift *)cc->state;
    double scaled = swift->alpha / root(packets(cc)) - swift->floor;
    scaled = scaled < 0 ? 0 : scaled > swift->range ? swift->range : scaled;
    return swift->base + scaled;
}

static void decrease(struct cc *cc, double factor, ns_t now)
{
    double least = 1 - ((const struct parameters *)cc->parameters)->most_decrease;
    if (now - of(cc)->decreased_at <= of(cc)->round_trip)
        return;
    cc->window *= factor < least ? least : factor;
    of(cc)->decreased_at = now;
    window_limit(cc);
}

static void acked(struct cc *cc, const struct cc_ack *ack)
{
    const struct parameters *p = cc->parameters;
    double aim = target(cc), found;
    if (ack->round_trip != CC_UNTOLD)
        of(cc)->round_trip = cc->link.base_rtt + cc_delay(cc, ack);
    found = (double)(of(cc)->round_trip - cc->link.base_rtt);
    if (found < aim) {
        cc->window += p->additive * (double)cc->link.packet * (double)ack->bytes / cc->window;
        window_limit(cc);
    } else {
        decrease(cc, 1 - p->beta * (found - aim) / (found + (double)cc->link.base_rtt), ack->now);
    }
}

static void lost(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)size, (void)in_flight;
    decrease(cc, 0, now);
}

static void cut(struct cc *cc, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now)
{
    (void)last_hop;
    lost(cc, size, in_flight, now);
}

const struct cc_ops cc_swift = {
    .bytes = sizeof(struct swift),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .cut = cut,
    .lost = lost,
    .may_send = window_may_send,
};
