/* What becomes of queue pairs and messages, told to the host. */
#include "qp.h"

void ep_event(struct ep *ep, enum ep_event_kind kind, struct qp *qp, struct ep_message *message,
              ns_t now)
{
    struct ep_event event = {
        .kind = kind,
        .error = qp->error,
        .message = message,
        .qp = qp,
        .at = now,
    };
    ep->port.event(ep->port.ctx, &event);
}

void qp_fail(struct ep *ep, struct qp *qp, enum ep_error error, ns_t now)
{
    if (qp->error)
        return;
    struct ep_message *message = qp->head;
    qp->error = (uint8_t)error;
    if (qp->out) {
        qp->out->rto_at = NS_NEVER;
        qp->out->cursor = NULL;
    }
    qp->head = qp->tail = NULL;
    ep->counters.qp_errors++;
    ep_event(ep, EP_QP_ERROR, qp, NULL, now);
    while (message) {
        struct ep_message *next = message->next;
        ep_event(ep, EP_FAILED, qp, message, now);
        message = next;
    }
}
