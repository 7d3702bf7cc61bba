/* Choosing the next packet. */
#include "tm.h"

#define PS 1000u

void tm_init(struct tm_port *port)
{
    memset(port, 0, sizeof *port);
    port->overhead = TM_OVERHEAD_DEFAULT;
    for (unsigned i = 0; i < SW_QUEUES; i++) {
        port->queues[i].max_packets = TM_PACKETS_DEFAULT;
        port->queues[i].max_bytes = TM_BYTES_DEFAULT;
    }
}

ns_t tm_gate_time(const struct tm_gate *gate, unsigned cell)
{
    if (!gate->cells || cell >= gate->count)
        return 0;
    if (gate->cell_bytes == 8)
        return ((const uint64_t *)gate->cells)[cell];
    return ((const uint32_t *)gate->cells)[cell];
}

static ns_t whole_ns(ps_t t) { return t / PS + (t % PS != 0); }

/* When the queue's head may leave: not before the gate opens and its pace allows. */
static ns_t queue_ready(const struct tm_port *port, unsigned number, unsigned priority,
                        const struct tm_gate *gate)
{
    ns_t open = tm_gate_time(gate, number * SW_QUEUES + priority);
    ns_t paced = whole_ns(port->queues[priority].paced_until);
    return open > paced ? open : paced;
}

static struct pkt *unlink_head(struct tm_port *port, unsigned priority)
{
    struct tm_queue *q = &port->queues[priority];
    struct pkt *p = q->head;
    q->head = p->next;
    q->packets--;
    q->bytes -= p->queued_len;
    if (!q->head)
        port->backlog &= (uint8_t)~(1u << priority);
    return p;
}

struct pkt *tm_take(struct tm_port *port, unsigned number, const struct tm_gate *gate, ns_t now,
                    ns_t *start, ns_t *wake)
{
    *wake = SW_NEVER;
    ns_t idle_at = whole_ns(port->busy_until);
    if (port->rate && idle_at > now) {
        *wake = idle_at;
        return NULL;
    }
    for (unsigned left = port->backlog; left;) {
        unsigned priority = 31 - (unsigned)__builtin_clz(left);
        left &= ~(1u << priority);
        ns_t ready = queue_ready(port, number, priority, gate);
        if (ready > now) {
            *wake = ready < *wake ? ready : *wake;
            continue;
        }
        struct tm_queue *q = &port->queues[priority];
        struct pkt *p = unlink_head(port, priority);
        if (q->pace) {
            ps_t base = p->enq_ns * PS > q->paced_until ? p->enq_ns * PS : q->paced_until;
            q->paced_until = base + q->pace;
        }
        /* Service may be late; the link was free from then on. */
        ns_t free_at = idle_at > p->enq_ns ? idle_at : p->enq_ns;
        free_at = ready > free_at ? ready : free_at;
        *start = port->rate ? free_at : now;
        return p;
    }
    return NULL;
}

ns_t tm_sent(struct tm_port *port, bytes_t size, ns_t start)
{
    if (!port->rate)
        return start + port->delay;
    ps_t begin = start * PS > port->busy_until ? start * PS : port->busy_until;
    /* A remainder of the link's last picoseconds is kept: `start` was rounded up from it. */
    if (whole_ns(port->busy_until) == start)
        begin = port->busy_until;
    ps_t last = (ps_t)((u128)(size + port->overhead) * 8 * PS * 1000000000u / port->rate);
    port->busy_until = begin + last;
    return whole_ns(port->busy_until) + port->delay;
}
