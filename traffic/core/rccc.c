/* Receiver credit congestion control (UET): the receiver, whose link is the bottleneck of an incast,
 * says who may send how much.
 *
 * A sender begins with a bandwidth-delay product of credit and spends it on every byte it sends, again
 * or not. Its packets tell how much it is to be granted in all (the credit target). The receiver goes
 * round those who want more and grants one packet each, a hundredth more slowly than its own link
 * brings packets (uet_receive.c paces all of its flows together); a grant says how much was granted in
 * all, so that a lost one costs nothing but time.
 *
 * Within the fabric nobody is held back: what is cut there is told, sent again from credit like
 * anything else, and asked for in the next target. The idea and the pace are EQDS's (NSDI 2022); the
 * first credit, 1.5 bandwidth-delay products, is the window UET's reference simulator starts with.
 */
#include "congestion.h"

#define FIRST_BDPS 1.5
enum { UNIT = 256 };

static void init(struct congestion *cc)
{
    double first = FIRST_BDPS * congestion_bdp(&cc->link);
    if (first < (double)cc->link.packet)
        first = (double)cc->link.packet;
    cc->window = cc->most = first;
    cc->rccc = (struct rccc){.credit = (uint64_t)first};
}

static void acked(struct congestion *cc, bytes_t acked, ns_t delay, bool marked, bytes_t in_flight,
                  ns_t now)
{
    (void)cc, (void)acked, (void)delay, (void)marked, (void)in_flight, (void)now;
}

static void cut(struct congestion *cc, bytes_t size, bool last_hop, bytes_t in_flight, ns_t now)
{
    (void)cc, (void)size, (void)last_hop, (void)in_flight, (void)now;
}

static void lost(struct congestion *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)cc, (void)size, (void)in_flight, (void)now;
}

static void sent(struct congestion *cc, bytes_t size, bytes_t in_flight, ns_t now)
{
    (void)in_flight, (void)now;
    cc->rccc.spent += size;
}

static bool may_send(const struct congestion *cc, bytes_t size, bytes_t in_flight)
{
    (void)in_flight;
    return cc->rccc.spent + size <= cc->rccc.credit + cc->rccc.granted;
}

void rccc_granted(struct congestion *cc, uint32_t units)
{
    uint32_t known = (uint32_t)(cc->rccc.granted / UNIT);
    uint32_t more = (units - known) & 0xFFFFFF;
    if (more < 0x800000) /* else it is an old one */
        cc->rccc.granted += (uint64_t)more * UNIT;
}

const struct congestion_ops RCCC = {init, acked, cut, lost, sent, may_send};
