/* What a queue pair of UET owes its peer, one after the other: answers, questions, and credit.
 *
 * Credit: flows whose peers would send more than they were granted stand in a ring, and each turn
 * grants one packet, a packet's time on our link after the one before and a hundredth more. All of a
 * host's flows share that one clock: together they bring a little less than the link does, so that a
 * queue which their first windows left drains (the pace is htsim's).
 */
#include <stdlib.h>

#include "uet.h"

enum { GRANTED_PERCENT = 99 }; /* of our link's rate */

void uet_owe(struct ep *ep, struct qp *qp, const struct uet_answer *answer, ns_t now)
{
    struct uet *uet = qp->uet;
    if (!uet->answers && !(uet->answers = malloc(UET_ANSWERS * sizeof *uet->answers)))
        return;
    if (uet->n_answers == UET_ANSWERS) {
        ep->counters.answers_withheld++; /* the peer finds out by itself, later */
        return;
    }
    uet->answers[(uet->first_answer + uet->n_answers++) % UET_ANSWERS] = *answer;
    qp->in->owed |= OWE_ACK;
    schedule_answer(ep, qp, now);
}

static bool several(const struct ep *ep) { return ep->config.ports > 1; }

uint8_t uet_answer_port(const struct ep *ep, const struct qp *qp)
{
    const struct uet *uet = qp->uet;
    uint16_t entropy = uet->owes_grant || !uet->answers ? uet->heard
                                                        : uet->answers[uet->first_answer].entropy;
    return uet_port(ep, qp, entropy);
}

/* The way an answer takes: that of its plane which is known to lead there, or else that of what it
 * answers, unless that is known to be no good from here. */
static uint16_t way_back(const struct ep *ep, const struct qp *qp, uint16_t entropy)
{
    uint16_t ports = ep->config.ports, ways = ep->config.entropies;
    const uint16_t *reverse = qp->uet->reverse;
    if (reverse && reverse[uet_plane(ep, entropy)] != MRC_NO_WAY)
        return reverse[uet_plane(ep, entropy)];
    if (!qp->uet->ways || entropy >= ways)
        return entropy;
    const struct health *health = &qp->uet->entropy[uet_plane(ep, entropy)].health;
    if (!health->good || health->ways[entropy / ports].state < WAY_BAD)
        return entropy;
    do
        entropy = (uint16_t)((entropy + ports) % ways);
    while (health->ways[entropy / ports].state >= WAY_BAD);
    return entropy;
}

static bytes_t backlog_frames(const struct ep *ep, const struct qp *qp)
{
    struct sending *out = qp->out;
    bytes_t packets = out->posted - out->next;
    return qp->uet->backlog + packets * uet_frame_size(ep, 0) +
           (bytes_t)qp->uet->lost_count * uet_frame_size(ep, ep->config.mtu);
}

uint32_t uet_target(const struct ep *ep, const struct qp *qp)
{
    return uet_spends(qp) ? qp->out->cc->ops->target(qp->out->cc, backlog_frames(ep, qp)) : 0;
}

static uint32_t answer_frame(struct ep *ep, struct qp *qp, const struct uet_answer *answer, ns_t now,
                             uint32_t *stored)
{
    struct uet *uet = qp->uet;
    if (uet->owes_grant) {
        struct uet_answer grant = {.seq = qp->expected - 1, .way = several(ep) ? uet->heard : 0};
        return ep->format->control(ep, qp, UET_CTRL_CREDIT, &grant,
                                 (uint32_t)(uet->granted / UET_CREDIT_UNIT) & 0xFFFFFF, stored);
    }
    struct uet_answer its = *answer;
    its.way = its.entropy;
    if (its.kind == UET_SAY_PROBE || its.kind == UET_SAY_EP_REQ)
        its.stamp = mrc_stamp(now);
    if (its.kind == UET_SAY_EP_REQ)
        return ep->format->node(ep, qp, &its, stored);
    if (its.kind == UET_SAY_PROBE)
        return ep->format->control(ep, qp, UET_CTRL_PROBE, &its, (uint32_t)its.seq, stored);
    if (its.kind == UET_SAY_CREDIT_REQ) {
        its.seq = qp->una;
        return ep->format->control(ep, qp, UET_CTRL_CREDIT_REQ, &its, uet_target(ep, qp), stored);
    }
    its.way = way_back(ep, qp, its.entropy);
    if (its.kind == UET_SAY_EP_RSP)
        return ep->format->node(ep, qp, &its, stored);
    return its.kind == UET_SAY_NACK ? ep->format->nack(ep, qp, &its, stored)
                                    : ep->format->ack(ep, qp, &its, stored);
}

bool uet_answer(struct ep *ep, struct qp *qp, ns_t now)
{
    struct uet *uet = qp->uet;
    if (!uet->owes_grant && !uet->n_answers)
        return true;
    const struct uet_answer *answer = uet->answers ? &uet->answers[uet->first_answer] : NULL;
    uint32_t stored, wire = answer_frame(ep, qp, answer, now, &stored);
    uint8_t port = uet_answer_port(ep, qp), priority = answer_priority(ep, qp);
    if (schedule_send(ep, port, stored, wire, priority, qp->in->answer_ready, now) == PS_NEVER)
        return false;
    if (uet->owes_grant) {
        uet->owes_grant = false;
        ep->counters.tx_credits++;
    } else {
        ep->counters.tx_naks += answer->kind == UET_SAY_NACK;
        ep->counters.tx_acks += answer->kind == UET_SAY_ACK;
        ep->counters.tx_probes += answer->kind == UET_SAY_PROBE;
        ep->counters.tx_endpoint_requests += answer->kind == UET_SAY_EP_REQ;
        uet->first_answer = (uint8_t)((uet->first_answer + 1) % UET_ANSWERS);
        uet->n_answers--;
    }
    if (!uet->n_answers)
        qp->in->owed &= (uint8_t)~OWE_ACK;
    if (uet->n_answers)
        qp->in->owed |= OWE_ACK;
    return true;
}

void uet_want_credit(struct ep *ep, struct qp *qp, uint32_t units, ns_t now)
{
    struct uet *uet = qp->uet;
    uint32_t known = (uint32_t)(uet->demand / UET_CREDIT_UNIT);
    uint32_t more = (units - known) & 0xFFFFFF;
    if (more >= 0x800000)
        return; /* an old one */
    uet->demand += (uint64_t)more * UET_CREDIT_UNIT;
    if (uet->in_demands || uet->granted >= uet->demand)
        return;
    uet->in_demands = true;
    uet->demands_next = NULL;
    if (ep->demands.head)
        ep->demands.tail->uet->demands_next = qp;
    else
        ep->demands.head = qp;
    ep->demands.tail = qp;
    if (ep->grant_at < ps_of_ns(now))
        ep->grant_at = ps_of_ns(now);
}

void uet_grant(struct ep *ep, ns_t now)
{
    uint32_t packet = uet_frame_size(ep, ep->config.mtu);
    ps_t lasts = ps_for_bytes(packet + ep->config.overhead_bytes, ep_bps(ep));
    lasts = lasts * 100 / GRANTED_PERCENT;
    while (ep->demands.head && ep->grant_at <= ps_of_ns(now)) {
        struct qp *qp = ep->demands.head;
        struct uet *uet = qp->uet;
        ep->demands.head = uet->demands_next;
        uet->in_demands = false;
        uet->granted += (packet + UET_CREDIT_UNIT - 1) / UET_CREDIT_UNIT * UET_CREDIT_UNIT;
        uet->owes_grant = true;
        ep->grant_at += lasts;
        schedule_answer(ep, qp, now);
        if (uet->granted < uet->demand)
            uet_want_credit(ep, qp, (uint32_t)(uet->demand / UET_CREDIT_UNIT) & 0xFFFFFF, now);
    }
}
