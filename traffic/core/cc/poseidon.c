/* Poseidon over CSIG: a rate that holds the delay of the worst hop at a target, which is the higher
 * the less a flow has; and what that hop has free is taken up fast.
 *
 * Wang et al., Poseidon: An Efficient Congestion Control using Deployable INT for Data Center
 * Networks, NSDI 2023. With the rate r between r_min and r_max the target is
 *     T(r) = p (ln r_max - ln r) / (ln r_max - ln r_min) + k
 * and an answer that tells a largest hop delay d moves the rate to r U, with
 *     U = exp(m (T(r) - d) / p (ln r_max - ln r_min)),
 * which at m = 1 is the rate whose target d is: all flows of a hop see one d, and so come to one rate,
 * whatever they began with. A cut is made once a round trip, a raise in the share of the window that
 * the answer is about.
 *
 * Packets ask in turns for the delay and for the least free rate (ABW; draft-ravi-ippm-csig). While the
 * delay is below the target, a round trip adds a share of what is free. A bucket counts as the least
 * it holds. p and k are shares of the empty fabric's round trip, and ours: the paper's are for its own
 * network. A flow that hears nothing, its peer being unaware or a tag lost, stays at what it has: that
 * no hop spoke is no sign that there is room.
 */
#include "cc.h"

struct parameters {
    double range, least, step, claim;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_REAL(range, 1, 0.001, 1000,
            "The target delay of the slowest flow above the fastest's, p, in round trips of an empty fabric."),
    CC_REAL(least, 0.1, 0.001, 1000, "The target of a flow at the link's rate, k, in the same."),
    CC_SHARE(step, 0.25, "How far an answer moves the rate towards that whose target the delay is, m."),
    CC_SHARE(claim, 0.25, "The share of the free rate that a round trip adds while there is no delay."),
};

enum { SLOWEST = 1000 }; /* r_max / r_min */
#define SPAN 6.907755278982137 /* its logarithm */

struct poseidon {
    double delay; /* the worst hop's, of late */
    ns_t cut_at;
    bool has_cut;
};

/* Of at least 1. Written out, so that the same comes of it with any mathematics library. */
static double logarithm(double x)
{
    int halvings = 0;
    for (; x > 2; x /= 2)
        halvings++;
    double y = (x - 1) / (x + 1), power = y, sum = 0;
    for (int i = 1; i < 26; i += 2, power *= y * y)
        sum += power / i;
    return 2 * sum + halvings * 0.6931471805599453;
}

static double exponential(double x)
{
    double term = 1, sum = 1;
    x /= 1024;
    for (int i = 1; i < 8; i++)
        sum += term *= x / i;
    for (int i = 0; i < 10; i++)
        sum *= sum;
    return sum;
}

static struct poseidon *of(struct cc *flow) { return (struct poseidon *)flow->state; }

static void limit(struct cc *flow)
{
    double least = flow->most / SLOWEST;
    flow->window = flow->window < least ? least : flow->window > flow->most ? flow->most : flow->window;
}

static void begin(struct cc *flow)
{
    flow->window = flow->most = cc_bdp(&flow->link);
    flow->ask_every = 1;
    flow->signals[0] = CSIG_DELAY;
    flow->signals[1] = CSIG_ABW;
}

static double target(const struct cc *flow)
{
    const struct parameters *p = flow->parameters;
    double round = (double)flow->link.base_rtt;
    return (p->range * logarithm(flow->most / flow->window) / SPAN + p->least) * round;
}

/* What part of a round trip's answers this one is, of a signal that every other packet asks for. */
static double part(const struct cc *flow, const struct cc_ack *ack)
{
    double share = 2 * (double)ack->bytes / flow->window;
    return share < 1 ? share : 1;
}

static void follow_delay(struct cc *flow, const struct cc_ack *ack)
{
    const struct parameters *p = flow->parameters;
    double round = (double)flow->link.base_rtt, off = target(flow) - of(flow)->delay;
    double moves = p->step * off / (p->range * round) * SPAN;
    if (off >= 0) {
        moves = moves < 1 ? moves : 1;
        flow->window *= exponential(moves * part(flow, ack));
    } else if (!of(flow)->has_cut || (double)(ack->now - of(flow)->cut_at) >= round + of(flow)->delay) {
        moves = moves > -1 ? moves : -1;
        flow->window *= exponential(moves);
        of(flow)->cut_at = ack->now;
        of(flow)->has_cut = true;
    }
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    const struct parameters *p = flow->parameters;
    const struct csig *csig = ack->csig;
    if (!csig)
        return;
    if (csig->type == CSIG_DELAY) {
        of(flow)->delay = (double)csig->value;
        follow_delay(flow, ack);
    } else if (csig->type == CSIG_ABW && csig->locator && of(flow)->delay < target(flow)) {
        double is_free = (double)csig->value / 8e3 * (double)flow->link.base_rtt;
        flow->window += p->claim * is_free * part(flow, ack);
    }
    limit(flow);
}

static void look(const struct cc *flow, double inside[2])
{
    inside[0] = ((const struct poseidon *)flow->state)->delay;
    inside[1] = 0;
}

const struct cc_ops cc_poseidon = {
    .bytes = sizeof(struct poseidon),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .rate = cc_rate_of_window,
    .look = look,
};
