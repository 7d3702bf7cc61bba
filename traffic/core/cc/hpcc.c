/* Congestion control from in-band telemetry, after HPCC: the window that fills the busiest link
 * of the path to `eta` of its rate, and no more.
 *
 * Every hop wrote its egress queue's occupancy, its link's utilisation and its link's rate into the
 * packet; the receiver echoes them in its acknowledgements. With T the base round-trip time, a link
 * counts as u = queue / (rate x T) + utilisation; U follows the largest u, smoothed over T. (What a
 * hop tells of its queue includes the packet that it tells it to, which is no backlog and is taken
 * off: left in, it keeps a link with a short round trip some per cent below eta.) Once a round trip
 * (when an ACK passes what was sent at the last such moment) a reference window is set to
 * W / (U / eta) + W_ai; ACKs between move the window about that reference, so that no round
 * trip's congestion is counted twice. The rate is W / T; W is bytes, and where it is less than a
 * packet it is the rate alone that limits a queue pair.
 *
 * Where HPCC reads a byte count and a time stamp per hop and divides, this reads the utilisation
 * that INT-MD defines, so a sender remembers only the last queue per hop.
 */
#include "cc.h"

struct parameters {
    double eta;
    uint64_t max_stage;
    bytes_t additive;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_SHARE(eta, 0.95, "The share of the busiest link that is aimed at."),
    CC_NUMBER(max_stage, 5, 0, 1000, "Round trips of additive increase before the window follows the load."),
    CC_SIZE(additive, 80, 0, 1000000000, "What a round trip adds to the window."),
};

struct hpcc {
    double reference, u;
    uint64_t update_after; /* the sequence number that ends this round trip */
    ns_t last_ack;
    uint32_t stage;
    uint32_t queue[INT_HOPS];
};

static void begin(struct cc *flow)
{
    struct hpcc *cc = (struct hpcc *)flow->state;
    flow->window = flow->most = cc->reference = cc_bdp(&flow->link);
    flow->ask_every = 1;
}

static double busiest_link(const struct cc *flow, struct hpcc *cc, const struct int_stack *stack)
{
    double most = 0;

    for (uint32_t i = 0; i < stack->hops && i < INT_HOPS; i++) {
        struct int_hop hop = int_read_hop(stack, i);
        double u = 0;
        if (hop.queue != INT_UNTOLD) {
            uint32_t behind = int_backlog(&hop, flow->link.packet);
            uint32_t queue = behind < cc->queue[i] ? behind : cc->queue[i];
            u += (double)queue / (int_bps(&hop, flow->link.rate) / 8e9 * (double)flow->link.base_rtt);
            cc->queue[i] = behind;
        }
        u += int_use(&hop);
        most = u > most ? u : most;
    }
    return most;
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct hpcc *cc = (struct hpcc *)flow->state;
    const struct parameters *p = flow->parameters;
    if (!ack->stack)
        return;
    double round = (double)flow->link.base_rtt, passed = (double)(ack->now - cc->last_ack);
    double share = passed < round ? passed / round : 1;
    bool round_over = ack->acked > cc->update_after;

    cc->u = (1 - share) * cc->u + share * busiest_link(flow, cc, ack->stack);
    cc->last_ack = ack->now;
    if (cc->u >= p->eta || cc->stage >= p->max_stage)
        flow->window = cc->reference / (cc->u / p->eta) + (double)p->additive;
    else
        flow->window = cc->reference + (double)p->additive;
    if (flow->window > flow->most)
        flow->window = flow->most;
    if (round_over) {
        cc->stage = cc->u >= p->eta || cc->stage >= p->max_stage ? 0 : cc->stage + 1;
        cc->reference = flow->window;
        cc->update_after = ack->next;
    }
}

static void look(const struct cc *flow, double inside[2])
{
    inside[0] = ((const struct hpcc *)flow->state)->u;
    inside[1] = 0;
}

const struct cc_ops cc_hpcc = {
    .bytes = sizeof(struct hpcc),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .rate = cc_rate_of_window,
    .look = look,
};
