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
 * Where the paper's hops tell bytes sent and a time stamp, those of INT-MD tell the link's utilisation,
 * as for HPCC (hpcc.c), and the time between two packets at a hop is that between their answers. What
 * a hop tells of its queue includes the packet that it tells it to, which is taken off.
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
    ns_t last_ack;         /* 0: none yet */
    uint32_t queue[INT_HOPS];
};

static void begin(struct cc *flow)
{
    struct powertcp *cc = (struct powertcp *)flow->state;
    flow->window = flow->most = cc->old = cc_bdp(&flow->link);
    flow->ask_every = 1;
    cc->power = 1;
}

/* The power of the most loaded hop, `passed` ns after its hops were heard of last. */
static double most_power(const struct cc *flow, struct powertcp *cc, const struct int_stack *stack,
                         double passed)
{
    double most = 0;
    for (uint32_t i = 0; i < stack->hops && i < INT_HOPS; i++) {
        struct int_hop hop = int_read_hop(stack, i);
        double rate = int_bps(&hop, flow->link.rate) / 8e9; /* bytes a ns */
        double product = rate * (double)flow->link.base_rtt;
        uint32_t queue = hop.queue == INT_UNTOLD ? 0 : int_backlog(&hop, flow->link.packet);
        double growth = ((double)queue - (double)cc->queue[i]) / passed;
        double current = growth + int_use(&hop) * rate, voltage = (double)queue + product;
        double power = current * voltage / (rate * product);
        most = power > most ? power : most;
        cc->queue[i] = queue;
    }
    return most;
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
    double round = (double)flow->link.base_rtt, passed = (double)(ack->now - cc->last_ack);
    bool is_first = !cc->last_ack;
    if (!ack->stack || ack->now == cc->last_ack) /* of two at once the second tells no more */
        return;
    double power = most_power(flow, cc, ack->stack, passed), share = passed < round ? passed / round : 1;
    cc->last_ack = ack->now;
    if (is_first) /* from what a queue grew, or shrank, is not known */
        return;
    cc->power = (1 - share) * cc->power + share * power;
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
