/* Congestion control from in-band telemetry, after HPCC: the window that fills the busiest link
 * of the path to `eta` of its rate, and no more.
 *
 * Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, Algorithm 1. Every hop wrote its
 * egress queue's occupancy, the bytes that its link has sent, when, and the link's rate into the
 * packet; the receiver echoes them in its acknowledgements. With T the base round-trip time, a link
 * counts as u = queue / (rate x T) + sent / passed / rate, the queue being the shorter of two answers',
 * bytes and time those between them; U follows the largest u, smoothed over T. (What a
 * hop tells of its queue includes the packet that it tells it to, which is no backlog and is taken
 * off: left in, it keeps a link with a short round trip some per cent below eta.) Once a round trip
 * (when an ACK passes what was sent at the last such moment) a reference window is set to
 * W / (U / eta) + W_ai; ACKs between move the window about that reference, so that no round
 * trip's congestion is counted twice. The rate is W / T; W is bytes, and where it is less than a
 * packet it is the rate alone that limits a queue pair.
 *
 * U begins at 1, as in its authors' simulator. Where the paper forgets what it knew of hops when the
 * path changes, this remembers a few paths (telemetry.h), so that sprayed flows are told of, too.
 */
#include "cc.h"

struct parameters {
    double eta;
    uint64_t max_stage;
    bytes_t additive;
    bps_t minimum;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_SHARE(eta, 0.95, "The share of the busiest link that is aimed at."),
    CC_NUMBER(max_stage, 5, 0, 1000, "Round trips of additive increase before the window follows the load."),
    CC_SIZE(additive, 80, 0, 1000000000, "What a round trip adds to the window."),
    CC_RATE(minimum, CC_DEFAULT, 1, 1000000000000,
            "The least rate; without it a thousandth of the link's, whatever the window."),
};

struct hpcc {
    double reference, u;
    uint64_t update_after; /* the sequence number that ends this round trip */
    uint32_t stage;
    struct int_memory memory;
};

static void begin(struct cc *flow)
{
    struct hpcc *cc = (struct hpcc *)flow->state;
    flow->window = flow->most = cc->reference = cc_bdp(&flow->link);
    flow->ask_every = 1;
    cc->u = 1;
}

/* Let U follow the busiest link. */
static void weigh(struct hpcc *cc, const struct int_change *changes, uint32_t hops, double round)
{
    double most = 0, passed = 0;

    for (uint32_t i = 0; i < hops; i++) {
        const struct int_change *hop = &changes[i];
        double queue = hop->queue < hop->queue_then ? hop->queue : hop->queue_then;
        if (!hop->passed)
            continue;
        double u = queue / (hop->rate * round) + hop->sent / hop->passed / hop->rate;
        if (u >= most) {
            most = u;
            passed = hop->passed;
        }
    }
    double share = passed < round ? passed / round : 1;
    cc->u = (1 - share) * cc->u + share * most;
}

static void move_window(struct cc *flow, struct hpcc *cc, const struct cc_ack *ack)
{
    const struct parameters *p = flow->parameters;
    double least = (double)p->minimum / 8e9 * (double)flow->link.base_rtt;
    bool follows = cc->u >= p->eta || cc->stage >= p->max_stage;

    flow->window = cc->reference / (follows ? cc->u / p->eta : 1) + (double)p->additive;
    flow->window = flow->window < least ? least : flow->window;
    flow->window = flow->window > flow->most ? flow->most : flow->window;
    if (ack->acked > cc->update_after) {
        cc->stage = follows ? 0 : cc->stage + 1;
        cc->reference = flow->window;
        cc->update_after = ack->next;
    }
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct hpcc *cc = (struct hpcc *)flow->state;
    struct int_change changes[INT_HOPS];
    if (!ack->stack)
        return;
    uint32_t hops =
        int_since(&cc->memory, ack->stack, flow->link.rate, flow->link.packet, ack->now, changes);
    if (!cc->update_after) /* the first answer, of which a round trip is to come */
        cc->update_after = ack->next;
    if (!hops)
        return;
    weigh(cc, changes, hops, (double)flow->link.base_rtt);
    move_window(flow, cc, ack);
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
