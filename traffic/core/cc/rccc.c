/* Receiver credit congestion control (UET): the receiver, whose link is the bottleneck of an incast,
 * says who may send how much.
 *
 * A sender begins with a bandwidth-delay product of credit and spends it on every byte it sends, again
 * or not. Its packets tell how much it is to be granted in all (the credit target). The receiver goes
 * round those who want more and grants one packet each, a hundredth more slowly than its own link
 * brings packets (uet_answer.c paces all of its flows together); a grant says how much was granted in
 * all, so that a lost one costs nothing but time.
 *
 * Within the fabric nobody is held back: what is cut there is told, sent again from credit like
 * anything else, and asked for in the next target. The idea and the pace are EQDS's (NSDI 2022); the
 * first credit, 1.5 bandwidth-delay products, is the window UET's reference simulator starts with.
 */
#include "cc.h"

struct parameters {
    double first_bdps;
};

static const struct cc_parameter PARAMETERS[] = {
    CC_REAL(first_bdps, 1.5, 0.01, 1000,
            "What a sender has before any grant, in bandwidth-delay products; a packet at least."),
};

enum { UNIT = 256 };

struct rccc {
    uint64_t spent, granted, credit; /* bytes: sent, granted by the peer, had before any grant */
};

static void begin(struct cc *cc)
{
    double first = ((const struct parameters *)cc->parameters)->first_bdps * cc_bdp(&cc->link);
    if (first < (double)cc->link.packet)
        first = (double)cc->link.packet;
    cc->window = cc->most = first;
    ((struct rccc *)cc->state)->credit = (uint64_t)first;
}

static void sent(struct cc *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)in_flight, (void)now;
    ((struct rccc *)cc->state)->spent += size;
}

static bool may_send(const struct cc *cc, bytes_t size, bytes_t in_flight)
{
    const struct rccc *rccc = (const struct rccc *)cc->state;
    (void)in_flight;
    return rccc->spent + size <= rccc->credit + rccc->granted;
}

static void granted(struct cc *cc, uint32_t units)
{
    struct rccc *rccc = (struct rccc *)cc->state;
    uint32_t known = (uint32_t)(rccc->granted / UNIT);
    uint32_t more = (units - known) & 0xFFFFFF;
    if (more < 0x800000) /* else it is an old one */
        rccc->granted += (uint64_t)more * UNIT;
}

/* What we began with is left out, for it follows from our link, which is not the peer's. */
static uint32_t target(const struct cc *cc, bytes_t backlog)
{
    const struct rccc *rccc = (const struct rccc *)cc->state;
    bytes_t all = rccc->spent + backlog;
    bytes_t more = all > rccc->credit ? all - rccc->credit : 0;
    return (uint32_t)((more + UNIT - 1) / UNIT) & 0xFFFFFF;
}

const struct cc_ops cc_rccc = {
    .bytes = sizeof(struct rccc),
    .parameters = PARAMETERS,
    .parameter_count = sizeof PARAMETERS / sizeof *PARAMETERS,
    .begin = begin,
    .sent = sent,
    .may_send = may_send,
    .granted = granted,
    .target = target,
};
