/* Network signal congestion control (UET, sender side): a window moved by queueing delay and marks.
 *
 * Four cases, after every acknowledgement, of the delay that a packet found beyond an empty fabric's
 * and of its mark:
 *
 *                    not marked                              marked
 *   below target     the window grows in proportion to       nothing: that way alone is busy, and
 *                    what is left to the target              the entropy changes
 *   above target     it grows a little: the queue drains     it shrinks in proportion to how far the
 *                    already                                 average is above target, once a round trip
 *
 * Increases are gathered over eight packets or a round trip and then applied, divided by the window;
 * once a round trip the window grows a little whatever happens. A flow that finds next to no delay for
 * a whole window grows by a quarter of what is acknowledged (fast increase). A flow that gets far less
 * through than it has in flight while packets are cut or lost takes what it got through for its window
 * at once (quick adapt), and then ignores what speaks ill of what was in flight. A packet that was cut
 * or lost leaves the window; one that was cut counts as having found a queue of a round trip as well,
 * which is where switches cut.
 *
 * The target is 3/4 of a round trip where switches trim, a round trip where they do not. Constants
 * scale from a network of 100 Gb/s and 12 us, as UET's reference simulator (htsim, uec.cpp) has them:
 * a is this network's bandwidth-delay product over that one's, b the target over 12 us.
 */
#include "cc.h"

#define REFERENCE_NS 12000.0
#define REFERENCE_BDP (100e9 / 8e9 * REFERENCE_NS)

struct parameters {
    double gamma, least_factor, average_weight, fair, proportional, always, fast, adjust_packets;
    double quick_share, quick_delay, most_bdps;
    ns_t no_delay;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_SHARE(gamma, 0.8, "How hard the window is cut, by how far the average is above target,"),
    CC_SHARE(least_factor, 0.5, "and what is left of it at least."),
    CC_SHARE(average_weight, 0.0125, "How fast the average delay follows the newest one."),
    CC_REAL(fair, 5, 0, 1000, "Packets a round trip it grows by while the queue drains already."),
    CC_REAL(proportional, 4, 0, 1000, "Packets a round trip it grows by with an empty queue."),
    CC_REAL(always, 0.15, 0, 1000, "Packets a round trip it grows by, whatever happens."),
    CC_REAL(fast, 0.25, 0, 1000, "Fast increase: by which share of what is acknowledged it grows."),
    CC_TIME(no_delay, 1000, 1, 1000000000, "Delays below are none, for fast increase."),
    CC_REAL(adjust_packets, 8, 0.01, 1000000, "Packets over which increases are gathered."),
    CC_REAL(quick_share, 8, 1, 1000000,
            "Quick adapt: if less than one part in so many of the largest window got through."),
    CC_REAL(quick_delay, 4, 0.01, 1000000, "Delays of so many targets count there like a loss."),
    CC_REAL(most_bdps, 1.5, 0.01, 1000, "The largest window, in bandwidth-delay products."),
};

struct nscc {
    double inc, average, achieved, fast, received;
    ns_t target, adjusted_at, decreased_at, quick_at, heard_at;
    double ignore;
    bool increasing, trouble;
};

static struct nscc *of(struct cc *cc) { return (struct nscc *)cc->state; }

static const struct parameters *given(const struct cc *cc) { return cc->parameters; }

static double scale(const struct cc *cc) { return cc_bdp(&cc->link) / REFERENCE_BDP; }

static void begin(struct cc *cc)
{
    ns_t base = cc->link.base_rtt;
    of(cc)->target = cc->link.has_trimming ? base * 3 / 4 : base;
    cc->most = given(cc)->most_bdps * cc_bdp(&cc->link);
    cc->window = cc->most;
    window_limit(cc);
}

/* Look, once in a while, whether what gets through is far from what is tried. */
static bool quick_adapt(struct cc *cc, ns_t delay, bytes_t in_flight, ns_t now)
{
    struct nscc *n = of(cc);
    bool adapts = false;
    if (now <= n->quick_at)
        return false;
    if (n->quick_at) {
        bool in_trouble = n->trouble || (double)delay > given(cc)->quick_delay * (double)n->target;
        adapts = in_trouble && n->achieved < cc->most / given(cc)->quick_share && n->achieved < cc->window;
        if (adapts) {
            cc->window = n->achieved;
            n->ignore = (double)in_flight;
            n->inc = n->received = 0;
            n->trouble = false;
            window_limit(cc);
        }
    }
    n->achieved = 0;
    n->quick_at = now + cc->link.base_rtt + n->target;
    return adapts;
}

/* Whether this is about what was in flight when the window was taken anew. */
static bool ignores(struct cc *cc, bool speaks_ill)
{
    struct nscc *n = of(cc);
    if (n->ignore <= 0 || !speaks_ill)
        return false;
    n->inc = n->received = 0;
    return true;
}

static void note_delay(struct cc *cc, ns_t delay, bool marked)
{
    struct nscc *n = of(cc);
    /* Late and not marked: a queue that drains, which says little about the next packets. */
    double counts = !marked && delay > n->target ? (double)cc->link.base_rtt / 4 : (double)delay;
    n->average += given(cc)->average_weight * (counts - n->average);
}

/* Whether the way was empty for a whole window. */
static bool grows_fast(struct cc *cc, bytes_t acked, ns_t delay)
{
    struct nscc *n = of(cc);
    if (delay >= given(cc)->no_delay) {
        n->increasing = false;
        n->fast = 0;
        return false;
    }
    n->fast += (double)acked;
    if (!n->increasing && n->fast <= cc->window)
        return false;
    n->increasing = true;
    cc->window += (double)acked * given(cc)->fast * scale(cc);
    return true;
}

static void decrease(struct cc *cc, ns_t now)
{
    struct nscc *n = of(cc);
    double target = (double)n->target;
    n->increasing = false;
    n->fast = 0;
    if (n->average <= target || now - n->decreased_at <= cc->link.base_rtt)
        return;
    double factor = 1 - given(cc)->gamma * (n->average - target) / n->average;
    cc->window *= factor < given(cc)->least_factor ? given(cc)->least_factor : factor;
    n->decreased_at = now;
}

static void adjust(struct cc *cc, ns_t now)
{
    struct nscc *n = of(cc);
    cc->window += n->inc / cc->window;
    if (now - n->adjusted_at >= cc->link.base_rtt) {
        cc->window += given(cc)->always * (double)cc->link.packet * scale(cc);
        n->adjusted_at = now;
    }
    n->inc = n->received = 0;
}

static void acked(struct cc *cc, const struct cc_ack *ack)
{
    struct nscc *n = of(cc);
    ns_t now = ack->now, delay = cc_delay(cc, ack);
    bytes_t acked = ack->bytes;
    bool marked = ack->marked;
    double packet = (double)cc->link.packet, a = scale(cc), target = (double)n->target;
    n->heard_at = now;
    n->achieved += (double)acked;
    n->received += (double)acked;
    n->ignore -= (double)acked;
    if (ack->round_trip == CC_UNTOLD)
        delay = (ns_t)n->average;
    else
        note_delay(cc, delay, marked);
    if (ignores(cc, marked) || quick_adapt(cc, delay, ack->in_flight, now))
        return;
    if (marked && delay >= n->target)
        decrease(cc, now);
    else if (!marked && delay >= n->target)
        n->inc += given(cc)->fair * packet * a * (double)acked;
    else if (!marked && !grows_fast(cc, acked, delay))
        n->inc += given(cc)->proportional * packet * a * (target / REFERENCE_NS) *
                  (1 - (double)delay / target) * (double)acked;
    window_limit(cc);
    if (n->received > given(cc)->adjust_packets * packet || now - n->adjusted_at > cc->link.base_rtt)
        adjust(cc, now);
    window_limit(cc);
}

static void lost(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    struct nscc *n = of(cc);
    n->heard_at = now;
    n->ignore -= (double)size;
    n->trouble = true;
    if (ignores(cc, true) || quick_adapt(cc, 0, in_flight + size, now))
        return;
    cc->window -= (double)size;
    window_limit(cc);
}

static void cut(struct cc *cc, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now)
{
    (void)last_hop;
    note_delay(cc, cc->link.base_rtt, true);
    lost(cc, size, in_flight, now);
}

/* After a rest of a round trip what gets through is measured anew: having sent nothing is no trouble.
 * Whoever has but one packet in flight and waits for word of it does not rest. */
static void sent(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    struct nscc *n = of(cc);
    if (in_flight != size || now - n->heard_at <= cc->link.base_rtt)
        return;
    n->quick_at = 0;
    n->achieved = 0;
}

const struct cc_ops cc_nscc = {
    .bytes = sizeof(struct nscc),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .cut = cut,
    .lost = lost,
    .sent = sent,
    .may_send = window_may_send,
};
