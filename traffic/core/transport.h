/* What a transport does for the rest of an endpoint: one table of operations. */
#pragma once

#include "qp.h"

struct transport {
    bool (*can_send)(const struct ep *ep, struct qp *qp);
    /* By a port that may carry it; bytes sent, 0 if it could not. */
    uint32_t (*send)(struct ep *ep, struct qp *qp, uint8_t port, ns_t now);
    void (*post)(struct ep *ep, struct qp *qp, struct ep_message *message, ns_t now);
    /* What a queue pair's congestion control begins with. */
    struct cc_link (*link)(const struct ep *ep, const struct qp *qp);
    /* The port that its next answer leaves by. */
    uint8_t (*answer_port)(const struct ep *ep, const struct qp *qp);
    bool (*answer)(struct ep *ep, struct qp *qp, ns_t now);   /* one of what it owes */
    void (*timeout)(struct ep *ep, struct qp *qp, ns_t now);
    void (*alarm)(struct ep *ep, struct qp *qp, ns_t now);
    /* A port has a link, or has none any more. May be NULL. */
    void (*ports_changed)(struct ep *ep, struct qp *qp, ns_t now);
    bool (*notify)(struct ep *ep, struct qp *qp, ns_t now); /* the CNP that it owes, if it ever does */
    void (*grant)(struct ep *ep, ns_t now);                 /* credit that is due by now. May be NULL */
};

extern const struct transport ROCE, UET, SUE;
