/* Taking turns with the loop. */
#include "hosted.h"

#include <errno.h>
#include <stdlib.h>

#include "pcap.h"
#include "state.h"

#define SLICE 64 /* records between two bursts */

#define PS_PER_S 1000000000000u

static ns_t enter(struct loop *loop, ns_t now)
{
    if (!loop)
        return now;
    loop_enter(loop);
    return loop_now(loop);
}

static void leave(struct loop *loop, bool wake)
{
    if (loop)
        loop_leave(loop, wake);
}

bool hosted_load(struct loop *loop, struct sw *sw, const struct sw_program *program, ns_t now)
{
    now = enter(loop, now);
    bool ok = sw_load(sw, program, now);
    leave(loop, true);
    return ok;
}

bool hosted_exchange(struct loop *loop, struct sw *sw, const struct sw_program *program)
{
    enter(loop, 0);
    bool ok = sw_exchange(sw, program);
    leave(loop, false);
    return ok;
}

struct sw *hosted_new(struct loop *loop, const char *name, int32_t cpu_port, uint32_t drop_port,
                      uint32_t queues, uint32_t whole, uint64_t seed)
{
    struct pkt_pool *own = loop ? NULL : calloc(1, sizeof *own);
    if (!loop && !own)
        return NULL;
    if (own)
        pkt_pool_init(own);
    struct sw_config config = {
        .name = name,
        .pool = loop ? loop_pool(loop) : own,
        .cpu_port = cpu_port,
        .drop_port = (uint16_t)drop_port,
        .queues = (uint8_t)queues,
        .whole = whole,
        .keep_on_wire = loop != NULL,
        .wants_events = true,
        .seed = seed,
    };
    struct sw *sw = sw_new(&config);
    if (sw)
        sw->own_pool = own;
    else
        free(own);
    enter(loop, 0);
    if (loop && sw && !loop_add(loop, sw)) {
        sw_free(sw);
        sw = NULL;
    }
    leave(loop, false);
    return sw;
}

void hosted_free(struct loop *loop, struct sw *sw)
{
    struct pkt_pool *own = sw->own_pool;
    enter(loop, 0);
    if (loop)
        loop_remove(loop, sw);
    sw_free(sw);
    leave(loop, false);
    if (own)
        pkt_pool_free(own);
    free(own);
}

size_t hosted_write(struct loop *loop, struct sw *sw, const void *records, size_t length,
                    struct ctl_result *results, size_t n, bool whole, ns_t now)
{
    size_t at = 0, done = 0;
    if (whole) {
        now = enter(loop, now);
        bool ok = ctl_write_whole(sw, records, length, results, now);
        leave(loop, true);
        return ok ? length : 0;
    }
    while (at < length && done < n) {
        size_t most = n - done < SLICE ? n - done : SLICE;
        now = enter(loop, now);
        at += ctl_write(sw, (const uint8_t *)records + at, length - at, results + done, most, now);
        leave(loop, at >= length || done + most >= n);
        done += most;
    }
    return at;
}

size_t hosted_read_entries(struct loop *loop, struct sw *sw, uint32_t table, uint32_t *position,
                           void *out, size_t room, ns_t now)
{
    now = enter(loop, now);
    size_t size = ctl_read_entries(sw, table, position, out, room, now);
    leave(loop, false);
    return size;
}

size_t hosted_read_entry(struct loop *loop, struct sw *sw, const struct ctl_table *record,
                         void *out, ns_t now)
{
    now = enter(loop, now);
    size_t size = ctl_read_entry(sw, record, out, now);
    leave(loop, false);
    return size;
}

size_t hosted_read_default(struct loop *loop, struct sw *sw, uint32_t table, void *out, ns_t now)
{
    now = enter(loop, now);
    size_t size = ctl_read_default(sw, table, out, now);
    leave(loop, false);
    return size;
}

size_t hosted_read_cells(struct loop *loop, struct sw *sw, uint32_t kind, uint32_t object,
                         uint64_t first, uint64_t n, void *out)
{
    ns_t now = enter(loop, 0);
    if (loop)
        sw_tell_time(sw, now); /* an idle switch has not looked for a while */
    size_t size = ctl_read_cells(sw, kind, object, first, n, out);
    leave(loop, false);
    return size;
}

ns_t hosted_receive(struct loop *loop, struct sw *sw, uint32_t port, const void *frame,
                    uint32_t len, ns_t now)
{
    now = enter(loop, now);
    sw_receive(sw, port, frame, len, now);
    ns_t wake = sw_service(sw, now);
    leave(loop, true);
    return wake;
}

/* Ports */

bool hosted_add_socket_port(struct loop *loop, struct sw *sw, uint32_t number,
                            struct socket_port *port, bytes_t ring_bytes)
{
    /* Outside: it takes tens of milliseconds, which several ports can spend at the same time. */
    if (!socket_start(port, ring_bytes)) {
        int saved = errno;
        socket_close(port);
        errno = saved;
        return false;
    }
    enter(loop, 0);
    bool ok = loop_add_port(loop, sw, number, port);
    leave(loop, true);
    return ok;
}

bool hosted_add_memory_port(struct loop *loop, struct sw *sw, uint32_t number,
                            struct memory_box *box)
{
    enter(loop, 0);
    bool ok = memory_attach(sw, number, box);
    leave(loop, false);
    return ok;
}

void hosted_remove_port(struct loop *loop, struct sw *sw, uint32_t number)
{
    enter(loop, 0);
    if (loop)
        loop_remove_port(loop, sw, number);
    else
        sw_detach(sw, number);
    leave(loop, true);
}

void hosted_set_up(struct loop *loop, struct sw *sw, uint32_t number, bool is_up, ns_t now)
{
    now = enter(loop, now);
    sw_set_up(sw, number, is_up, now);
    leave(loop, true);
}

bool hosted_set_link(struct loop *loop, struct sw *sw, uint32_t number, struct hosted_link link)
{
    enter(loop, 0);
    struct sw_port *port = sw_port(sw, number);
    if (port) {
        tm_set_link(&port->tm, link.rate, link.delay, link.overhead);
        sw_hasten(sw, number);
    }
    leave(loop, true);
    return port != NULL;
}

bool hosted_set_queue(struct loop *loop, struct sw *sw, uint32_t number,
                      const struct hosted_queue *queue)
{
    enter(loop, 0);
    struct sw_port *port = sw_port(sw, number);
    for (int32_t i = 0; port && i < SW_QUEUES; i++) {
        struct tm_queue *q = &port->tm.queues[i];
        if (queue->priority >= 0 && queue->priority != i)
            continue;
        if (queue->packets >= 0)
            q->max_packets = (uint32_t)queue->packets;
        if (queue->bytes >= 0)
            q->max_bytes = (bytes_t)queue->bytes;
        if (queue->packets_per_s >= 0) {
            q->pace = queue->packets_per_s ? PS_PER_S / (ps_t)queue->packets_per_s : 0;
            q->paced_until = 0;
        }
    }
    leave(loop, true);
    return port != NULL;
}

bool hosted_set_service(struct loop *loop, struct sw *sw, uint32_t number,
                        const struct hosted_service *service)
{
    enter(loop, 0);
    struct sw_port *port = sw_port(sw, number);
    bool ok = port && service->priority < SW_QUEUES;
    if (ok && service->priority < 0)
        ok = tm_shape(&port->tm, service->rate, service->burst, (uint8_t)service->classes);
    else if (ok)
        ok = tm_serve(&port->tm, (unsigned)service->priority,
                      (struct tm_service){service->quantum, service->rate, service->burst});
    leave(loop, true);
    return ok;
}

bool hosted_set_replay(struct loop *loop, struct sw *sw, uint32_t number,
                       const struct llr_config *config)
{
    enter(loop, 0);
    bool done = sw_set_replay(sw, number, config);
    leave(loop, true);
    return done;
}

bool hosted_set_credit(struct loop *loop, struct sw *sw, uint32_t number,
                       const struct sw_credit *credit)
{
    enter(loop, 0);
    bool done = sw_set_credit(sw, number, credit);
    leave(loop, true);
    return done;
}

bool hosted_set_cable(struct loop *loop, struct sw *sw, uint32_t number, uint32_t way,
                      const struct cable_faults *faults)
{
    enter(loop, 0);
    bool done = way < CABLE_WAYS && sw_set_cable(sw, number, (enum cable_way)way, faults);
    leave(loop, true);
    return done;
}

/* A register's cells, if it is there. */
static bool cells_of(const struct sw *sw, uint32_t reg, struct sw_cells *cells)
{
    bool is_there = sw->program && reg < sw->program->n_registers;
    if (is_there)
        *cells = state_register(&sw->state, reg);
    return is_there;
}

static bool holds_times(const struct sw_cells *cells)
{
    return cells->cell_bytes == 4 || cells->cell_bytes == 8;
}

bool hosted_share(struct loop *loop, struct sw *sw, uint32_t role, uint32_t reg)
{
    bool ok = role < SW_ROLES;
    struct sw_cells cells = {0};
    enter(loop, 0);
    if (ok && reg != TABLE_NONE)
        ok = cells_of(sw, reg, &cells) && (role == SW_PORT_DOWN || holds_times(&cells));
    if (ok)
        sw_share(sw, (enum sw_role)role, cells);
    leave(loop, true);
    return ok;
}

bool hosted_keep_times(struct loop *loop, struct sw *sw, uint32_t reg)
{
    struct sw_cells cells = {0};
    enter(loop, 0);
    bool ok = reg == TABLE_NONE || (cells_of(sw, reg, &cells) && cells.cell_bytes == 8);
    ok = ok && sw_keep_times(sw, cells);
    leave(loop, true);
    return ok;
}

bool hosted_set_pcap(struct loop *loop, struct sw *sw, uint32_t number, bool is_out,
                     const char *path)
{
    struct pcap *pcap = path ? pcap_open(path, true) : NULL;
    if (path && !pcap)
        return false;
    enter(loop, 0);
    struct sw_port *port = sw_port(sw, number);
    if (port) {
        struct pcap **place = is_out ? &port->pcap_out : &port->pcap_in;
        struct pcap *old = *place;
        *place = pcap;
        pcap = old;
    }
    leave(loop, false);
    pcap_close(pcap);
    return port != NULL;
}

void hosted_set_trace(struct loop *loop, struct sw *sw, sw_text_fn trace, sw_text_fn log)
{
    enter(loop, 0);
    sw->trace = trace;
    sw->log = log;
    leave(loop, false);
}

/* The account */

static void tell_stats(const struct sw *sw, struct hosted_stats *out)
{
    *out = (struct hosted_stats){sw->received, sw->copies, sw->sent, sw->held,
                                 sw->events.refused, {0}};
    memcpy(out->drops, sw->drops, sizeof out->drops);
}

void hosted_stats(struct loop *loop, struct sw *sw, struct hosted_stats *out)
{
    enter(loop, 0);
    tell_stats(sw, out);
    leave(loop, false);
}

uint32_t hosted_books(struct loop *loop, struct sw *sw, struct hosted_stats *stats,
                      struct book_line *lines, uint32_t room)
{
    enter(loop, 0);
    tell_stats(sw, stats);
    uint32_t n = sw_books(sw, lines, room);
    leave(loop, false);
    return n;
}

uint32_t hosted_ports(struct loop *loop, struct sw *sw, struct hosted_port *out, uint32_t room)
{
    uint32_t n = 0;
    enter(loop, 0);
    for (uint32_t i = 0; i < SW_PORTS && n < room; i++) {
        const struct sw_port *port = sw->ports[i];
        if (!port)
            continue;
        struct hosted_port *p = &out[n++];
        *p = (struct hosted_port){port->rx_packets, port->rx_bytes, port->tx_packets,
                                  port->tx_bytes,   port->number,   port->is_up,
                                  port->ops != NULL, 0, 0, {0}, {0}};
        if (port->ops && port->ops->missed)
            p->rx_missed = port->ops->missed(port->driver);
        for (unsigned q = 0; q < SW_QUEUES; q++) {
            p->queue_packets[q] = port->tm.queues[q].packets;
            p->queue_bytes[q] = port->tm.queues[q].bytes;
        }
    }
    leave(loop, false);
    return n;
}

int hosted_event_fd(const struct sw *sw) { return sw->events.fd; }
size_t hosted_drain(struct sw *sw, void *out, size_t room)
{
    return event_drain(&sw->events, out, room);
}

const char *hosted_drop_name(uint32_t reason)
{
    return reason < DROP_REASONS ? sw_drop_names[reason] : NULL;
}
const struct ctl_reason_text *hosted_reason(uint32_t reason)
{
    return reason < CTL_REASONS ? &ctl_reasons[reason] : NULL;
}
