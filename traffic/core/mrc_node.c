/* What MRC's adapters ask each other, whatever their queue pairs do: endpoint requests.
 *
 *   port status   which of our ports have a link: told to every peer when that changes, again and again
 *                 until it answers. Who hears of a dead port sends nothing more to its plane, where it
 *                 would have found out way by way, by what is lost
 *   EV probe      whether a way leads there. A queue pair that receives and does not send asks once a
 *                 round trip, by a way in turn; the last of each plane that was answered is the one its
 *                 answers take (the reverse set). Who sends learns that from SACKs
 *
 * Both are kept by queue pair, of which the first of each peer speaks for the adapter.
 */
#include "uet.h"

enum { MAX_TRIES = 8 };

/* The next of the ports that lead to a peer. */
static uint8_t port_in_turn(const struct ep *ep, const struct qp *qp, uint16_t number)
{
    uint8_t links = uet_links(ep, qp);
    for (uint8_t i = 0; i < ep->config.ports; i++) {
        uint8_t port = (uint8_t)((number + i) & (ep->config.ports - 1u));
        if (links >> port & 1)
            return port;
    }
    return 0;
}

static void ask(struct ep *ep, struct qp *qp, struct mrc_request *request, enum mrc_operation what,
                uint8_t turn, ns_t now)
{
    uint8_t port = port_in_turn(ep, qp, (uint16_t)(request->number + turn));
    request->at = now;
    request->entropy = uet_next_entropy(ep, qp, port, now);
    struct uet_answer question = {
        .kind = UET_SAY_EP_REQ,
        .seq = request->number,
        .entropy = request->entropy,
        .code = (uint8_t)what,
        .opaque = what == MRC_PORT_STATUS ? (uint16_t)(ep->up << 1) : 0, /* ports count from 1 */
    };
    uet_owe(ep, qp, &question, now);
}

void mrc_seek_way(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    bool sends = qp->una < qp->out->posted;
    ns_t least = uet->round_trip << uet->probe.open; /* one in vain is waited for twice as long */
    if (sends || now - uet->probe.at < least || uet->n_answers >= UET_ANSWERS / 2)
        return;
    uet->probe = (struct mrc_request){.number = ++ep->requests, .open = true};
    ask(ep, qp, &uet->probe, MRC_EV_PROBE, 0, now);
}

/* Whether it is the first that leads to its peer. */
static bool speaks(const struct ep *ep, const struct qp *qp)
{
    for (const struct qp *other = ep->qps; other < qp; other++)
        if (!memcmp(other->flow.address, qp->flow.address, sizeof qp->flow.address))
            return false;
    return true;
}

/* How long to wait for an answer. */
static ns_t patience(const struct uet *uet) { return 2 * uet->base_rtt << uet->tries; }

void mrc_ports_changed(struct ep *ep, ns_t now)
{
    for (uint32_t i = 0; i < ep->qp_count; i++) {
        struct qp *qp = &ep->qps[i];
        struct uet *uet = qp->uet;
        uet->status.open = false;
        if (!ep->up || !speaks(ep, qp))
            continue;
        uet->status = (struct mrc_request){.number = ++ep->requests, .open = true};
        uet->tries = 0;
        ask(ep, qp, &uet->status, MRC_PORT_STATUS, 0, now);
        ep->repeat_at = ns_least(ep->repeat_at, now + patience(uet));
    }
}

void mrc_repeat(struct ep *ep, ns_t now)
{
    ep->repeat_at = NS_NEVER;
    for (uint32_t i = 0; i < ep->qp_count; i++) {
        struct uet *uet = ep->qps[i].uet;
        if (!uet->status.open)
            continue;
        if (uet->status.at + patience(uet) <= now) {
            uet->status.open = ++uet->tries < MAX_TRIES;
            if (!uet->status.open)
                continue;
            ask(ep, &ep->qps[i], &uet->status, MRC_PORT_STATUS, uet->tries, now);
        }
        ep->repeat_at = ns_least(ep->repeat_at, uet->status.at + patience(uet));
    }
}

/* A peer's word of its ports, unless it has said something newer since. */
static void hear(struct ep *ep, struct qp *qp, uint16_t number, uint8_t up, ns_t now)
{
    struct uet *uet = qp->uet;
    if (uet->has_told && (int16_t)(number - uet->told) < 0)
        return;
    uet->has_told = true;
    uet->told = number;
    bool changes = uet->peer_up != up;
    uet->peer_up = up;
    if (changes)
        ep->transport->ports_changed(ep, qp, now);
}

static void take_request(struct ep *ep, struct qp *first, const uint8_t *ip,
                         const struct uet_packet *packet, ns_t now)
{
    uint8_t all = (uint8_t)((1u << ep->config.ports) - 1), up = packet->links >> 1 & all;
    bool tells = packet->code == MRC_PORT_STATUS;
    if (packet->code > MRC_EV_PROBE || (tells && !up)) {
        ep->counters.rx_refused++;
        return;
    }
    ep->counters.rx_port_status += tells;
    for (struct qp *qp = first; tells && qp < ep->qps + ep->qp_count; qp++)
        if (!qp->error && uet_is_from_peer(ep, qp, ip))
            hear(ep, qp, (uint16_t)packet->psn, up, now);
    struct uet_answer response = {
        .kind = UET_SAY_EP_RSP,
        .seq = packet->psn,
        .entropy = packet->entropy,
        .code = packet->code,
        .stamp = packet->stamp,
    };
    uet_owe(ep, first, &response, now);
}

/* Whether it is what a request was waiting for. */
static bool answers(struct mrc_request *request, const struct uet_packet *packet)
{
    bool fits = request->open && request->number == packet->psn;
    request->open &= !fits;
    return fits;
}

static void take_response(struct ep *ep, struct qp *first, const uint8_t *ip,
                          const struct uet_packet *packet)
{
    for (struct qp *qp = first; qp < ep->qps + ep->qp_count; qp++) {
        struct uet *uet = qp->uet;
        if (qp->error || !uet_is_from_peer(ep, qp, ip))
            continue;
        if (packet->code == MRC_PORT_STATUS && answers(&uet->status, packet))
            return;
        if (packet->code == MRC_EV_PROBE && answers(&uet->probe, packet)) {
            uet->reverse[uet_plane(ep, uet->probe.entropy)] = uet->probe.entropy;
            return;
        }
    }
    ep->counters.rx_refused++; /* nobody asked, or the answer is late */
}

/* The first queue pair that leads to who sent something; NULL if none does. */
static struct qp *first_to(const struct ep *ep, const uint8_t *ip)
{
    for (struct qp *qp = ep->qps; qp < ep->qps + ep->qp_count; qp++)
        if (!qp->error && uet_is_from_peer(ep, qp, ip))
            return qp;
    return NULL;
}

void mrc_take(struct ep *ep, const uint8_t *ip, const struct uet_packet *packet, ns_t now)
{
    struct qp *first = first_to(ep, ip);
    if (packet->to != MRC_NODE || !first)
        ep->counters.rx_no_queue_pair++;
    else if (packet->cut)
        ep->counters.rx_refused++; /* nobody has reason to cut it */
    else if (packet->kind == UET_IS_EP_REQ)
        take_request(ep, first, ip, packet, now);
    else
        take_response(ep, first, ip, packet);
}
