/* DCTCP: a window that shrinks by how much of it was marked.
 *
 * Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010; RFC 8257. Answers say which of what they
 * are about was marked. Once a window of data, F being the share of its bytes that were, alpha moves:
 *
 *   alpha = (1 - g) alpha + g F
 *
 * A mark cuts the window to W (1 - alpha / 2), and until what was sent by then is answered, no other
 * does. A window of data without a cut adds `additive`, which is a packet's bytes as TCP has it.
 *
 * Adapters begin at their link's rate, so there is no slow start; what is under way at most is one
 * bandwidth-delay product, as in HPCC's comparison (SIGCOMM 2019), and the rate is W / T, T the base
 * round trip. Switches are to mark by a step (ecn.kmin = ecn.kmax).
 */
#include "cc.h"

struct parameters {
    double g, first_alpha;
    bytes_t additive;
    bps_t minimum;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_SHARE(g, 0.0625, "How fast alpha follows the share of marks: the newest window's weight."),
    CC_REAL(first_alpha, 1, 0, 1, "What alpha begins with; 1: the first cut halves the window."),
    CC_SIZE(additive, CC_DEFAULT, 1, 1000000000,
            "What a window of data without a cut adds to the window; without it a packet."),
    CC_RATE(minimum, CC_DEFAULT, 1, 1000000000000,
            "The least rate; without it a packet every round trip."),
};

struct dctcp {
    double alpha, answered, marked; /* bytes of this window of data */
    uint64_t alpha_after, cut_after; /* the sequence numbers that end it, and a cut */
    bool begun, was_cut;
};

static void begin(struct cc *flow)
{
    struct dctcp *cc = (struct dctcp *)flow->state;
    flow->window = flow->most = cc_bdp(&flow->link);
    flow->ask_every = 1;
    cc->alpha = ((const struct parameters *)flow->parameters)->first_alpha;
}

/* Whether a window of data is over, and alpha has moved by it; the first is the first answer. */
static bool move_alpha(struct dctcp *cc, double g, const struct cc_ack *ack)
{
    cc->answered += (double)ack->bytes;
    cc->marked += ack->marked ? (double)ack->bytes : 0;
    if (ack->acked <= cc->alpha_after)
        return false;
    if (cc->begun && cc->answered > 0)
        cc->alpha = (1 - g) * cc->alpha + g * cc->marked / cc->answered;
    cc->begun = true;
    cc->answered = cc->marked = 0;
    cc->alpha_after = ack->next;
    return true;
}

static void acked(struct cc *flow, const struct cc_ack *ack)
{
    struct dctcp *cc = (struct dctcp *)flow->state;
    const struct parameters *p = flow->parameters;
    double packet = (double)flow->link.packet, round = (double)flow->link.base_rtt;
    double least = p->minimum ? (double)p->minimum / 8e9 * round : packet;
    bool is_over = move_alpha(cc, p->g, ack);

    if (ack->acked > cc->cut_after)
        cc->was_cut = false;
    if (ack->marked && !cc->was_cut) {
        flow->window *= 1 - cc->alpha / 2;
        cc->was_cut = true;
        cc->cut_after = ack->next;
    } else if (is_over && !cc->was_cut) {
        flow->window += p->additive ? (double)p->additive : packet;
    }
    flow->window = flow->window < least ? least : flow->window;
    flow->window = flow->window > flow->most ? flow->most : flow->window;
}

static void look(const struct cc *flow, double inside[2])
{
    inside[0] = ((const struct dctcp *)flow->state)->alpha;
    inside[1] = 0;
}

const struct cc_ops cc_dctcp = {
    .bytes = sizeof(struct dctcp),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .acked = acked,
    .rate = cc_rate_of_window,
    .look = look,
};
