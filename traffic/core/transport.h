/* What a transport does for the rest of an endpoint: one table of operations. */
#ifndef EP_TRANSPORT_H
#define EP_TRANSPORT_H

#include "qp.h"

struct transport {
    bool (*can_send)(const struct ep *ep, struct qp *qp);
    uint32_t (*send)(struct ep *ep, struct qp *qp, ns_t now); /* bytes sent; 0 if it could not */
    void (*post)(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now);
    bool (*answer)(struct ep *ep, struct qp *qp, ns_t now);   /* one of what it owes */
    void (*timeout)(struct ep *ep, struct qp *qp, ns_t now);
    void (*alarm)(struct ep *ep, struct qp *qp, ns_t now);
};

extern const struct transport ROCE, UET;

#endif
