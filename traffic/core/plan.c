/* Ending one transfer counts down those that wait for it; one that reaches zero starts, at once or
 * through a heap of start times. Edges lie in one array, sorted by the transfer that they leave. */
#include "plan.h"

#include <stdlib.h>

#include "heap.h"
#include "idmap.h"

struct edge {
    uint32_t from, to;
};

struct plan {
    struct ep *ep;
    struct plan_port port;
    struct transfer *transfers;
    struct edge *edges;
    struct heap starts; /* of transfers by number */
    struct idmap by_id;
    uint32_t transfer_count, transfer_room, edge_count, edge_room, open, failed;
};

static void ready(struct plan *plan, uint32_t index, ns_t now);

static void ended(struct plan *plan, struct transfer *transfer, ns_t now)
{
    transfer->state = TRANSFER_DONE;
    transfer->end = now;
    plan->open--;
    if (plan->port.ended)
        plan->port.ended(plan->port.ctx, transfer);
    for (uint32_t i = transfer->first_edge; i < (transfer + 1)->first_edge; i++) {
        uint32_t next = plan->edges[i].to;
        if (!--plan->transfers[next].waits_for)
            ready(plan, next, now);
    }
}

static void start(struct plan *plan, uint32_t index, ns_t now)
{
    struct transfer *transfer = &plan->transfers[index];
    if (transfer->kind == TRANSFER_COMPUTE) {
        ended(plan, transfer, now);
        return;
    }
    transfer->state = TRANSFER_STARTED;
    transfer->start = now;
    if (plan->port.began)
        plan->port.began(plan->port.ctx, transfer);
    if (transfer->kind == TRANSFER_COLLECTIVE)
        inc_post(plan->ep, &transfer->collective, now);
    else
        ep_post(plan->ep, &transfer->message, now);
}

/* It waits for no other transfer any more. A computation goes through the heap even if it lasts no
 * time, so that a long chain of them is a loop and not a recursion. */
static void ready(struct plan *plan, uint32_t index, ns_t now)
{
    struct transfer *transfer = &plan->transfers[index];
    if (transfer->kind == TRANSFER_RECEIVE)
        return;
    if (transfer->kind == TRANSFER_COMPUTE)
        transfer->start = now;
    if (transfer->delay || transfer->kind == TRANSFER_COMPUTE)
        heap_push(&plan->starts, (struct heap_item){now + transfer->delay, {.number = index}});
    else
        start(plan, index, now);
}

static void failed(struct plan *plan, struct transfer *transfer, ns_t now)
{
    transfer->state = TRANSFER_FAILED;
    transfer->end = now;
    plan->open--;
    plan->failed++;
    if (plan->port.ended)
        plan->port.ended(plan->port.ctx, transfer);
}

static struct ep_message *expected(void *ctx, uint32_t id)
{
    struct plan *plan = ctx;
    uint32_t index = idmap_find(&plan->by_id, id);
    if (index == IDMAP_NONE || plan->transfers[index].kind != TRANSFER_RECEIVE)
        return NULL;
    return &plan->transfers[index].message;
}

static void on_event(void *ctx, const struct ep_event *event)
{
    struct plan *plan = ctx;
    struct transfer *transfer = (struct transfer *)event->message;

    if (event->kind == EP_QP_ERROR) {
        if (plan->port.qp_error)
            plan->port.qp_error(plan->port.ctx, event->qp, event->error, event->at);
    } else if (event->kind == EP_FAILED) {
        failed(plan, transfer, event->at);
    } else {
        ended(plan, transfer, event->at);
    }
}

struct plan *plan_new(const struct ep_config *config, const struct plan_port *port, uint32_t qps,
                      uint32_t transfers, uint32_t edges)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    struct ep_port ep_port = {
        .ctx = plan,
        .event = on_event,
        .expected = expected,
        .transmit = port->transmit,
        .transmit_ctx = port->ctx,
    };
    plan->port = *port;
    plan->transfer_room = transfers;
    plan->edge_room = edges;
    plan->ep = ep_new(config, &ep_port, qps);
    plan->transfers = calloc(transfers + 1u, sizeof *plan->transfers); /* and where edges end */
    plan->edges = calloc(edges + 1u, sizeof *plan->edges);
    plan->starts.items = calloc(transfers + 1u, sizeof *plan->starts.items);
    plan->starts.by_number = true;
    bool map = idmap_init(&plan->by_id, transfers);
    if (!plan->ep || !plan->transfers || !plan->edges || !plan->starts.items || !map) {
        plan_free(plan);
        return NULL;
    }
    return plan;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    ep_free(plan->ep);
    free(plan->transfers);
    free(plan->edges);
    free(plan->starts.items);
    idmap_free(&plan->by_id);
    free(plan);
}

struct ep *plan_endpoint(struct plan *plan) { return plan->ep; }

static const char *add(struct plan *plan, struct transfer transfer)
{
    if (plan->transfer_count == plan->transfer_room)
        return "there are more transfers than room was made for";
    if (!idmap_add(&plan->by_id, transfer.message.id, plan->transfer_count))
        return "a transfer of that id is there already";
    transfer.start = NS_NEVER;
    plan->transfers[plan->transfer_count++] = transfer;
    plan->open++;
    return NULL;
}

const char *plan_add(struct plan *plan, enum transfer_kind kind, uint32_t id, struct qp *qp,
                     uint64_t size, ns_t delay)
{
    if (size > EP_MESSAGE_MAX || size / ep_get_config(plan->ep)->mtu >= PSN_HALF)
        return "a message has at most 2^31 bytes and fewer than 2^23 packets";
    struct ep_message message = {.id = id, .size = (uint32_t)size, .qp = qp};
    return add(plan, (struct transfer){.message = message, .kind = kind, .delay = delay});
}

const char *plan_add_collective(struct plan *plan, const struct inc_message *collective, ns_t delay)
{
    if (collective->size > EP_MESSAGE_MAX || !collective->first)
        return "a collective has at most 2^31 bytes, and chunks are numbered from 1";
    return add(plan, (struct transfer){.collective = *collective, .kind = TRANSFER_COLLECTIVE,
                                       .delay = delay});
}

const char *plan_after(struct plan *plan, uint32_t id, uint32_t earlier)
{
    uint32_t to = idmap_find(&plan->by_id, id), from = idmap_find(&plan->by_id, earlier);
    if (to == IDMAP_NONE || from == IDMAP_NONE)
        return "it names a transfer that this host has no part in";
    if (plan->transfers[to].kind == TRANSFER_RECEIVE)
        return "a receive waits for its peer and nothing else";
    if (plan->edge_count == plan->edge_room)
        return "there are more dependencies than room was made for";
    plan->edges[plan->edge_count++] = (struct edge){from, to};
    plan->transfers[to].waits_for++;
    return NULL;
}

static int by_origin(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

void plan_start(struct plan *plan, ns_t now)
{
    uint32_t edge = 0;
    qsort(plan->edges, plan->edge_count, sizeof *plan->edges, by_origin);
    for (uint32_t i = 0; i <= plan->transfer_count; i++) {
        plan->transfers[i].first_edge = edge;
        while (edge < plan->edge_count && plan->edges[edge].from == i)
            edge++;
    }
    for (uint32_t i = 0; i < plan->transfer_count; i++)
        if (!plan->transfers[i].waits_for)
            ready(plan, i, now);
}

void plan_receive(struct plan *plan, uint8_t port, const uint8_t *frame, uint32_t stored,
                  uint32_t wire, ns_t now)
{
    ep_receive(plan->ep, port, frame, stored, wire, now);
}

ns_t plan_service(struct plan *plan, ns_t now)
{
    ns_t wake;
    do {
        while (heap_key(&plan->starts) <= now)
            start(plan, (uint32_t)heap_pop(&plan->starts).number, now);
        wake = ep_service(plan->ep, now);
    } while (heap_key(&plan->starts) <= now);
    return ns_least(heap_key(&plan->starts), wake);
}

uint32_t plan_open(const struct plan *plan) { return plan->open; }

uint32_t plan_failed(const struct plan *plan) { return plan->failed; }

const struct transfer *plan_transfers(const struct plan *plan, uint32_t *count)
{
    *count = plan->transfer_count;
    return plan->transfers;
}
