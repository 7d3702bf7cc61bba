/* What a queue pair of scale-up Ethernet knows besides: sue.c tells how it works. */
#pragma once

#include "transport.h"

struct sue {
    uint64_t *starts; /* by sequence number, a ring: a PDU's first command; NULL until one is posted */
    uint64_t posted;  /* commands asked for */
    uint32_t mask;    /* of `starts` */
    uint32_t unanswered; /* PDUs taken since the last answer */
    uint8_t channel;     /* the virtual channel, of those between these two */
};

/* The longest frame. */
uint32_t sue_most_bytes(const struct ep_config *config);
/* Give a queue pair its channel; NULL, or what is wrong. */
const char *sue_prepare(struct ep *ep, struct qp *qp, uint32_t index);
void sue_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now);
