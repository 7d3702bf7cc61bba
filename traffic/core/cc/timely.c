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
 *
 * Profile `hpcc-ns3` is `timely` of HPCC's simulator (SIGCOMM 2019; its run.py and rdma-hw.cc), which
 * differs: one packet of each round trip is timed, not each segment's last; the paper's times as they
 * are; weight 7/8; and any five rises in a row make the next ones five times as large, those below
 * `low_rtt` too, while any fall begins again (`sample`, `hyper_below`).
 */
#include "cc.h"

enum { PAPER, HPCC_NS3 };
enum { SEGMENTS, ROUNDS };

struct parameters {
    uint64_t profile, sample;
    ns_t low_rtt, high_rtt, least_rtt;
    bps_t additive;
    double beta, weight;
    uint64_t hyper_rounds, hyper, hyper_below;
    bytes_t segment;
    bps_t minimum;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_WORD(profile, 0, "paper hpcc-ns3", "Whose rules: SIGCOMM 2015, or the HPCC simulator."),
    CC_WORD(sample, CC_DEFAULT, "segments rounds",
            "What is timed: the last packet of each segment, or one packet each round trip."),
    CC_TIME(low_rtt, CC_DEFAULT, 1, 1000000000,
            "T_low: below such round trips the rate grows; without it 2.5 of an empty fabric's."),
    CC_TIME(high_rtt, CC_DEFAULT, 1, 1000000000,
            "T_high: above such it shrinks; without it 25 of an empty fabric's."),
    CC_TIME(least_rtt, CC_DEFAULT, 1, 1000000000,
            "What gradients are measured in; without it an empty fabric's round trip."),
    CC_RATE(additive, CC_DEFAULT, 1, 1000000000000,
            "The step by which the rate grows; without it a thousandth of the link's."),
    CC_SHARE(beta, 0.8, "How hard the rate is cut."),
    CC_SHARE(weight, CC_DEFAULT, "How fast the gradient follows what is measured: the newest one's weight."),
    CC_NUMBER(hyper_rounds, CC_DEFAULT, 1, 1000, "Answers in a row without a rising gradient, before hyper."),
    CC_NUMBER(hyper, 5, 1, 1000, "How many steps the rate grows by then."),
    CC_FLAG(hyper_below, CC_DEFAULT, "Whether every rise counts, and may be hyper, below low_rtt too."),
    CC_SIZE(segment, 16000, 64, 1000000000, "Bytes from one packet that times a round trip to the next."),
    CC_RATE(minimum, CC_DEFAULT, 1, 1000000000000,
            "The least rate; without it a hundredth of the link's."),
};

struct timely {
    double rate, difference, previous; /* previous: round trip; 0: none yet */
    uint64_t rounds;                   /* answers in a row without a rising gradient */
    uint64_t update_after;             /* rounds: the sequence number that ends this one */
};

/* What differs by profile; times and rates that are 0 follow from the link and its round trip. */
static const struct parameters PROFILES[] = {
    [PAPER] = {.sample = SEGMENTS, .weight = 0.125, .hyper_rounds = 5},
    [HPCC_NS3] = {.sample = ROUNDS,
                  .low_rtt = 50000,
                  .high_rtt = 500000,
                  .least_rtt = 20000,
                  .weight = 0.875,
                  .hyper_rounds = 6,
                  .hyper_below = true,
                  .minimum = 1000000000},
};

static void usual_values(void *parameters, bps_t line)
{
    struct parameters *p = parameters;
    const struct parameters *of = &PROFILES[p->profile];
    (void)line;
    p->sample = of->sample;
    p->low_rtt = of->low_rtt;
    p->high_rtt = of->high_rtt;
    p->least_rtt = of->least_rtt;
    p->weight = of->weight;
    p->hyper_rounds = of->hyper_rounds;
    p->hyper_below = of->hyper_below;
    p->minimum = of->minimum;
}

static void begin(struct cc *flow)
{
    const struct parameters *p = flow->parameters;
    uint64_t packets = p->segment / flow->link.packet;
    ((struct timely *)flow->state)->rate = (double)flow->link.rate;
    if (p->sample == ROUNDS)
        packets = 1;
    flow->ask_every = packets ? packets < UINT32_MAX ? (uint32_t)packets : UINT32_MAX : 1;
}

static double usual(uint64_t given, double otherwise) { return given ? (double)given : otherwise; }

static double rise(struct timely *cc, const struct parameters *p, double step)
{
    cc->rounds++;
    return cc->rate + (cc->rounds >= p->hyper_rounds ? (double)p->hyper : 1) * step;
}

static double next_rate(struct timely *cc, const struct parameters *p, const struct cc_link *link,
                        double rtt)
{
    double base = (double)link->base_rtt, step = usual(p->additive, (double)link->rate / 1000);
    double high = usual(p->high_rtt, 25 * base);
    double gradient = cc->difference / usual(p->least_rtt, base);

    if (rtt < usual(p->low_rtt, 2.5 * base))
        return p->hyper_below ? rise(cc, p, step) : cc->rate + step;
    if (rtt > high) {
        cc->rounds = p->hyper_below ? 0 : cc->rounds;
        return cc->rate * (1 - p->beta * (1 - high / rtt));
    }
    if (gradient <= 0)
        return rise(cc, p, step);
    cc->rounds = 0;
    return cc->rate * (1 - p->beta * gradient);
}

/* Whether what was timed counts: where rounds do, the first packet of one, and none before. */
static bool counts(struct cc *flow, const struct cc_ack *ack)
{
    struct timely *cc = (struct timely *)flow->state;
    if (ack->round_trip == CC_UNTOLD)
        return false;
    if (((const struct parameters *)flow->parameters)->sample == SEGMENTS)
        return true;
    if (ack->acked <= cc->update_after)
        return false;
    cc->update_after = flow->time_from = ack->next;
    return true;
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct timely *cc = (struct timely *)flow->state;
    const struct parameters *p = flow->parameters;
    double most = (double)flow->link.rate, least = usual(p->minimum, most / 100);
    double rtt = (double)ack->round_trip;
    if (!counts(flow, ack))
        return;
    bool is_first = cc->previous <= 0;
    if (!is_first)
        cc->difference = (1 - p->weight) * cc->difference + p->weight * (rtt - cc->previous);
    cc->previous = rtt;
    if (is_first && p->sample == ROUNDS)
        return;
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
    .usual = usual_values,
    .begin = begin,
    .acked = acked,
    .rate = rate,
    .look = look,
};
