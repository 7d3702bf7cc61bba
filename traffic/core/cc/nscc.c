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
#define GAMMA 0.8          /* how hard a decrease is, */
#define LEAST_FACTOR 0.5   /* and at most */
#define AVERAGE_WEIGHT 0.0125
#define NO_DELAY_NS 1000u
#define FAIR 5.0           /* packets a round trip, when the queue drains already */
#define PROPORTIONAL 4.0   /* packets a round trip, with an empty queue */
#define ALWAYS 0.15        /* packets a round trip, whatever happens */
#define FAST 0.25          /* of what is acknowledged */
#define ADJUST_PACKETS 8.0
#define QUICK_SHARE 8.0    /* quick adapt if less than this part of the most got through */
#define QUICK_DELAY 4.0    /* targets of delay that count like a loss */
#define MOST_BDPS 1.5

struct nscc {
    double inc, average, achieved, fast, received;
    ns_t target, adjusted_at, decreased_at, quick_at, heard_at;
    double ignore;
    bool increasing, trouble;
};

static struct nscc *of(struct cc *cc) { return (struct nscc *)cc->state; }

static double scale(const struct cc *cc) { return cc_bdp(&cc->link) / REFERENCE_BDP; }

static void begin(struct cc *cc)
{
    ns_t base = cc->link.base_rtt;
    of(cc)->target = cc->link.has_trimming ? base * 3 / 4 : base;
    cc->most = MOST_BDPS * cc_bdp(&cc->link);
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
        bool in_trouble = n->trouble || (double)delay > QUICK_DELAY * (double)n->target;
        adapts = in_trouble && n->achieved < cc->most / QUICK_SHARE && n->achieved < cc->window;
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
    n->average += AVERAGE_WEIGHT * (counts - n->average);
}

/* Whether the way was empty for a whole window. */
static bool grows_fast(struct cc *cc, bytes_t acked, ns_t delay)
{
    struct nscc *n = of(cc);
    if (delay >= NO_DELAY_NS) {
        n->increasing = false;
        n->fast = 0;
        return false;
    }
    n->fast += (double)acked;
    if (!n->increasing && n->fast <= cc->window)
        return false;
    n->increasing = true;
    cc->window += (double)acked * FAST * scale(cc);
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
    double factor = 1 - GAMMA * (n->average - target) / n->average;
    cc->window *= factor < LEAST_FACTOR ? LEAST_FACTOR : factor;
    n->decreased_at = now;
}

static void adjust(struct cc *cc, ns_t now)
{
    struct nscc *n = of(cc);
    cc->window += n->inc / cc->window;
    if (now - n->adjusted_at >= cc->link.base_rtt) {
        cc->window += ALWAYS * (double)cc->link.packet * scale(cc);
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
        n->inc += FAIR * packet * a * (double)acked;
    else if (!marked && !grows_fast(cc, acked, delay))
        n->inc += PROPORTIONAL * packet * a * (target / REFERENCE_NS) *
                  (1 - (double)delay / target) * (double)acked;
    window_limit(cc);
    if (n->received > ADJUST_PACKETS * packet || now - n->adjusted_at > cc->link.base_rtt)
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
    .begin = begin,
    .acked = acked,
    .cut = cut,
    .lost = lost,
    .sent = sent,
    .may_send = window_may_send,
};
