/* The halves of queue pairs: made when something is sent or comes, given back when it is over.
 *
 * Most queue pairs of a large job do nothing most of the time, and where one host only writes to the
 * other each end has but one half to do. So what a queue pair knows while it is at work is not part of
 * it. Halves come from blocks of the endpoint's, which keeps those that are given back for the next
 * queue pair: it takes memory only if more are at work than ever before.
 *
 * A half is given back when it knows nothing that a new one would not. One with the state of a
 * congestion control stays, and so do those of UET.
 */
#include "transport.h"

#include <stdlib.h>

enum { HALVES_AT_ONCE = 16 };

struct spares_block {
    struct spares_block *next;
};

/* Cleared; NULL when memory is short. */
static void *pool_alloc(struct spares *spares, size_t bytes)
{
    if (!spares->first) {
        struct spares_block *block = malloc(sizeof *block + HALVES_AT_ONCE * bytes);
        if (!block)
            return NULL;
        block->next = spares->blocks;
        spares->blocks = block;
        uint8_t *at = (uint8_t *)(block + 1);
        for (int i = 0; i < HALVES_AT_ONCE; i++, at += bytes)
            spares_give(spares, at);
    }
    struct spare *taken = spares->first;
    spares->first = taken->next;
    return memset(taken, 0, bytes);
}

void spares_give(struct spares *spares, void *given)
{
    struct spare *spare = given;
    spare->next = spares->first;
    spares->first = spare;
}

void spares_free(struct spares *spares)
{
    for (struct spares_block *next, *block = spares->blocks; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* What its congestion control keeps, if it has one that does. False when memory is short. */
static bool make_cc(const struct ep *ep, const struct qp *qp, struct sending *out)
{
    if (qp->cc == CC_NONE)
        return true;
    struct cc_link link = ep->transport->link(ep, qp);
    out->cc = cc_new(qp->cc, &ep->config.cc[qp->cc], &link);
    if (out->cc && !ep->uet && cc_hears(qp->cc, CC_DELAY) &&
        !(out->stamps = calloc(1, sizeof *out->stamps))) {
        free(out->cc);
        out->cc = NULL;
    }
    return out->cc;
}

struct sending *sending(struct ep *ep, struct qp *qp)
{
    if (qp->out)
        return qp->out;
    struct sending *out = pool_alloc(&ep->senders, sizeof *out);
    if (!out || !make_cc(ep, qp, out)) {
        if (out)
            spares_give(&ep->senders, out);
        return NULL;
    }
    out->acked = out->next = out->sent = qp->una;
    out->posted = qp_posted(qp);
    out->cursor = qp->head;
    out->rto_at = NS_NEVER;
    out->deficit = (int32_t)ep->config.mtu;
    return qp->out = out;
}

struct receiving *receiving(struct ep *ep, struct qp *qp)
{
    if (qp->in)
        return qp->in;
    struct receiving *in = pool_alloc(&ep->receivers, sizeof *in);
    if (in && cc_hears(qp->cc, CC_TELEMETRY) && !(in->echo = calloc(1, sizeof *in->echo))) {
        spares_give(&ep->receivers, in);
        in = NULL;
    }
    return qp->in = in;
}

void sending_over(struct ep *ep, struct qp *qp)
{
    struct sending *out = qp->out;
    if (qp->head || qp->error || qp->in_ring || out->since_request || qp->cc)
        return;
    spares_give(&ep->senders, out);
    qp->out = NULL;
}

void receiving_over(struct ep *ep, struct qp *qp)
{
    struct receiving *in = qp->in;
    if (ep->uet || in->writing || in->owed || in->in_answers || in->in_notices || in->nak_sent ||
        in->cnp_sent || in->marked || in->echo)
        return;
    spares_give(&ep->receivers, in);
    qp->in = NULL;
}

void halves_free(struct qp *qp)
{
    if (qp->in)
        free(qp->in->echo);
    if (qp->out) {
        free(qp->out->cc);
        free(qp->out->stamps);
    }
}
