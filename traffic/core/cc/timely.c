/* TIMELY: a rate that follows the gradient of round trips.
 *
 * Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, Algorithm 1. A
 * flow's bytes leave in segments, and the answer to each segment's last packet times a round trip.
 * What this differs from the one before, smoothed and taken in least round trips, is the gradient.
 *
 *   below `low_rtt`    the rate grows by `additive`: bursts alone make such queues
 *   above `high_rtt`   it shrinks towards what would bring the round trip back: rate x (1 - beta x
 *                      (1 - high / round trip)), whatever the gradient
 *   between            no gradient or a falling one: it grows by `additive`, and five times as fast
 *                      from the fifth such answer in a row on; a rising one: rate x (1 - beta x gradient)
 *
 * The paper's times are those of its network, whose least round trip is 20 us: 50 and 500 us. Without
 * others they are as many round trips of this fabric. So is its step, 10 Mb/s at links of 10 Gb/s.
 * Round trips are from when a segment's last packet begins to leave, and so need no allowance for the
 * segment's own length. The newest difference weighs an eighth, as TCP smooths its round trips; studies
 * made after the paper have 7/8, with which eight flows here stay as unequal as chance makes them.
 */
#include "cc.h"

struct parameters {
    ns_t low_rtt, high_rtt, least_rtt;
    bps_t additive;
    double beta, weight;
    uint64_t hyper_rounds, hyper;
    bytes_t segment;
    bps_t minimum;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_TIME(low_rtt, CC_USUAL, 1, 1000000000,
            "T_low: below such round trips the rate grows; without it 2.5 of an empty fabric's."),
    CC_TIME(high_rtt, CC_USUAL, 1, 1000000000,
            "T_high: above such it shrinks; without it 25 of an empty fabric's."),
    CC_TIME(least_rtt, CC_USUAL, 1, 1000000000,
            "What gradients are measured in; without it an empty fabric's round trip."),
    CC_RATE(additive, CC_USUAL, 1, 1000000000000,
            "The step by which the rate grows; without it a thousandth of the link's."),
    CC_SHARE(beta, 0.8, "How hard the rate is cut."),
    CC_SHARE(weight, 0.125, "How fast the gradient follows what is measured: the newest one's weight."),
    CC_NUMBER(hyper_rounds, 5, 1, 1000, "Answers in a row without a rising gradient, before hyper."),
    CC_NUMBER(hyper, 5, 1, 1000, "How many steps the rate grows by then."),
    CC_SIZE(segment, 16000, 64, 1000000000, "Bytes from one packet that times a round trip to the next."),
    CC_RATE(minimum, CC_USUAL, 1, 1000000000000,
            "The least rate; without it a hundredth of the link's."),
};

struct timely {
    double rate, difference, previous; /* previous: round trip; 0: none yet */
    uint64_t rounds;                   /* answers in a row without a rising gradient */
};

static void begin(struct cc *flow)
{
    const struct parameters *p = flow->parameters;
    uint64_t packets = p->segment / flow->link.packet;
    ((struct timely *)flow->state)->rate = (double)flow->link.rate;
    flow->ask_every = packets ? packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX : 1;
}

static double usual(uint64_t given, double otherwise) { return given ? (double)given : otherwise; }

static double next_rate(struct timely *cc, const struct parameters *p, const struct cc_link *link,
                        double rtt)
{
    double base = (double)link->base_rtt, step = usual(p->additive, (double)link->rate / 1000);
    double high = usual(p->high_rtt, 25 * base);
    double gradient = cc->difference / usual(p->least_rtt, base);
    bool rises = gradient > 0;

    if (rtt < usual(p->low_rtt, 2.5 * base))
        return cc->rate + step;
    if (rtt > high)
        return cc->rate * (1 - p->beta * (1 - high / rtt));
    cc->rounds = rises ? 0 : cc->rounds + 1;
    if (rises)
        return cc->rate * (1 - p->beta * gradient);
    return cc->rate + (cc->rounds >= p->hyper_rounds ? (double)p->hyper : 1) * step;
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct timely *cc = (struct timely *)flow->state;
    const struct parameters *p = flow->parameters;
    double most = (double)flow->link.rate, least = usual(p->minimum, most / 100);
    double rtt = (double)ack->round_trip;
    if (ack->round_trip == CC_UNTOLD)
        return;
    if (cc->previous > 0)
        cc->difference = (1 - p->weight) * cc->difference + p->weight * (rtt - cc->previous);
    cc->previous = rtt;
    cc->rate = next_rate(cc, p, &flow->link, rtt);
    cc->rate = cc->rate < least ? least : cc->rate;
    cc->rate = cc->rate > most ? most : cc->rate;
}

static bps_t rate(struct cc *flow, ns_t now)
{
    bps_t found = (bps_t)((struct timely *)flow->state)->rate;
    (void)now;
    return found ? found : 1;
}

static void look(const struct cc *flow, double inside[2])
{
    const struct timely *cc = (const struct timely *)flow->state;
    inside[0] = cc->difference;
    inside[1] = cc->previous;
}

const struct cc_ops cc_timely = {
    .bytes = sizeof(struct timely),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .rate = rate,
    .look = look,
};
