/* PowerTCP: a window that follows power, the product of what is in the network and how fast it flows.
 *
 * Addanki, Michel and Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI
 * 2022, Algorithm 1. Of every hop: with b the link's rate, T the base round trip, q the queue,
 *
 *   current   what arrives at the link: how fast the queue grows, and what the link sends
 *   voltage   b T + q: what is on the way and what waits
 *   power     current x voltage, which in an uncongested fabric is b x b T: the power of a hop is their
 *             ratio, the path's that of its most loaded hop, smoothed over T
 *
 * and with every answer window = gamma x (old / power + beta) + (1 - gamma) x window, where old is the
 * window when the answered packet left (noted once a round trip, as the paper has it) and beta is b T
 * over the flows that are expected to share the host's link. The rate is window / T. In balance, the
 * queue is as long as the beta of all its flows together.
 *
 * What a hop tells of its queue includes the packet that it tells it to, which is taken off.
 */
#include "cc.h"

struct parameters {
    double gamma;
    uint64_t flows;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_SHARE(gamma, 0.9, "How fast the window follows power: the weight of the newest."),
    CC_NUMBER(flows, 10, 1, 1000000,
              "How many flows are expected to share a host's link: a bandwidth-delay product over these "
              "is what each adds to its window, and to the queue."),
};

struct powertcp {
    double power, old;
    uint64_t update_after; /* the sequence number that ends this round trip */
    struct int_memory memory;
};

static void begin(struct cc *flow)
{
    struct powertcp *cc = (struct powertcp *)flow->state;
    flow->window = flow->most = cc->old = cc_bdp(&flow->link);
    flow->ask_every = 1;
    cc->power = 1;
}

/* Let power follow that of the most loaded hop. */
static void weigh(struct powertcp *cc, const struct int_change *changes, uint32_t hops, double round)
{
    double most = 0, passed = 0;
    for (uint32_t i = 0; i < hops; i++) {
        const struct int_change *hop = &changes[i];
        if (!hop->passed)
            continue;
        double product = hop->rate * round;
        double current = (hop->queue - hop->queue_then + hop->sent) / hop->passed;
        double power = current * (hop->queue + product) / (hop->rate * product);
        if (power > most || !passed) {
            most = power > 0 ? power : 0; /* a queue may shrink faster than its link sends */
            passed = hop->passed;
        }
    }
    double share = passed < round ? passed / round : 1;
    cc->power = (1 - share) * cc->power + share * most;
}

static void move_window(struct cc *flow, struct powertcp *cc, const struct cc_ack *ack)
{
    const struct parameters *p = flow->parameters;
    double beta = cc_bdp(&flow->link) / (double)p->flows;
    double aim = (cc->power > 0 ? cc->old / cc->power : flow->most) + beta;
    flow->window = p->gamma * aim + (1 - p->gamma) * flow->window;
    if (flow->window > flow->most)
        flow->window = flow->most;
    if (ack->acked > cc->update_after) {
        cc->old = flow->window;
        cc->update_after = ack->next;
    }
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct powertcp *cc = (struct powertcp *)flow->state;
    struct int_change changes[INT_HOPS];
    if (!ack->stack)
        return;
    uint32_t hops =
        int_since(&cc->memory, ack->stack, flow->link.rate, flow->link.packet, ack->now, changes);
    if (!hops) /* from what a queue grew, or shrank, is not known */
        return;
    weigh(cc, changes, hops, (double)flow->link.base_rtt);
    move_window(flow, cc, ack);
}

static void look(const struct cc *flow, double inside[2])
{
    const struct powertcp *cc = (const struct powertcp *)flow->state;
    inside[0] = cc->power;
    inside[1] = cc->old;
}

const struct cc_ops cc_powertcp = {
    .bytes = sizeof(struct powertcp),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .rate = cc_rate_of_window,
    .look = look,
};
