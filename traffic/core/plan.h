/* What a host has to do, as a graph: transfers that wait for one another.
 *
 *   receive 1 ──► send 2 ──► ...        send 2 starts when 1 has arrived
 *   receive 1 ──► compute 3 ──► send 4  compute 3 lasts a while, then 4 starts
 *
 * A host that is given its part of a collective runs it with no controller in the loop. A send has
 * ended when every byte of it was acknowledged, a receive when every byte of it is in its place, a
 * computation when its delay is over. A send may have a delay too: it is posted that long after
 * the last transfer that it waits for. What waits for a transfer that failed never starts.
 *
 * A plan owns an endpoint and stands before it: hosts call `plan_receive` and `plan_service` where
 * they would call `ep_receive` and `ep_service`.
 */
#pragma once

#include "endpoint.h"

enum transfer_kind { TRANSFER_SEND, TRANSFER_RECEIVE, TRANSFER_COMPUTE, TRANSFER_COLLECTIVE };

enum transfer_state {
    TRANSFER_WAITING, /* for others, for its delay, or for the peer */
    TRANSFER_STARTED, /* posted */
    TRANSFER_DONE,
    TRANSFER_FAILED,
};

struct transfer {
    union { /* must be first: the endpoint knows a transfer by it */
        struct ep_message message;
        struct inc_message collective; /* ids and sizes are in the same place */
    };
    uint32_t waits_for : 28;   /* transfers that have not ended yet */
    uint32_t kind : 2, state : 2;
    uint32_t first_edge; /* who waits for this one: up to the next one's first */
    ns_t start;          /* posted, or NS_NEVER */
    union {
        ns_t delay; /* until it has ended: state */
        ns_t end;
    };
};

_Static_assert(sizeof(struct transfer) <= 64, "a thousand hosts may have two million of these");

/* NS_NEVER until it has. */
static inline ns_t transfer_end(const struct transfer *transfer)
{
    return transfer->state >= TRANSFER_DONE ? transfer->end : NS_NEVER;
}

struct plan;

struct plan_port {
    void *ctx;
    bool (*transmit)(void *ctx, const uint8_t *frame, uint32_t stored, uint32_t wire, uint8_t port,
                     uint8_t priority, ns_t at);
    /* A message was posted. May be NULL. */
    void (*began)(void *ctx, const struct transfer *transfer);
    /* A transfer ended, well or not. May be NULL. */
    void (*ended)(void *ctx, const struct transfer *transfer);
    /* A queue pair went to error. May be NULL. */
    void (*qp_error)(void *ctx, const struct qp *qp, enum ep_error error, ns_t at);
};

/* Room for so many queue pairs, transfers and edges. NULL when memory is short or the config has a
 * problem. */
struct plan *plan_new(const struct ep_config *config, const struct plan_port *port, uint32_t qps,
                      uint32_t transfers, uint32_t edges);
void plan_free(struct plan *plan);

struct ep *plan_endpoint(struct plan *plan);

/* These return NULL, or what is wrong, in words. `qp` is NULL for a computation. */
const char *plan_add(struct plan *plan, enum transfer_kind kind, uint32_t id, struct qp *qp,
                     uint64_t size, ns_t delay);
const char *plan_add_collective(struct plan *plan, const struct inc_message *collective, ns_t delay);
const char *plan_after(struct plan *plan, uint32_t id, uint32_t earlier);

/* From now on. Transfers that wait for nothing start at `now` plus their delay. */
void plan_start(struct plan *plan, ns_t now);

void plan_receive(struct plan *plan, uint8_t port, const uint8_t *frame, uint32_t stored,
                  uint32_t wire, ns_t now);
ns_t plan_service(struct plan *plan, ns_t now);

/* Transfers that have neither ended nor failed; 0: there is nothing more to come. */
uint32_t plan_open(const struct plan *plan);
uint32_t plan_failed(const struct plan *plan);

const struct transfer *plan_transfers(const struct plan *plan, uint32_t *count);
