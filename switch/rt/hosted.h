/* Calls on a switch from any thread: what the Python binding uses.
 *
 * With a loop each call waits for the end of a burst and has the switch to itself; without one
 * (NULL) the caller is the switch's thread, and `now` is its clock. Long batches are carried out
 * in slices, so packets wait for none of them longer than for a slice.
 */
#pragma once

#include "ctl.h"
#include "loop.h"
#include "port_memory.h"

/* With a loop the switch is added to it, shares its packets, and frames stay on the wire until
 * they are due; without one they are handed over as they start. NULL when memory is out. */
struct sw *hosted_new(struct loop *loop, const char *name, int32_t cpu_port, uint32_t drop_port,
                      uint32_t queues, uint32_t whole, uint64_t seed);
bool hosted_load(struct loop *loop, struct sw *sw, const struct sw_program *program, ns_t now);
bool hosted_exchange(struct loop *loop, struct sw *sw, const struct sw_program *program);
void hosted_free(struct loop *loop, struct sw *sw);

size_t hosted_write(struct loop *loop, struct sw *sw, const void *records, size_t length,
                    struct ctl_result *results, size_t n, bool whole, ns_t now);
size_t hosted_read_entries(struct loop *loop, struct sw *sw, uint32_t table, uint32_t *position,
                           void *out, size_t room, ns_t now);
size_t hosted_read_entry(struct loop *loop, struct sw *sw, const struct ctl_table *record,
                         void *out, ns_t now);
size_t hosted_read_default(struct loop *loop, struct sw *sw, uint32_t table, void *out, ns_t now);
size_t hosted_read_cells(struct loop *loop, struct sw *sw, uint32_t kind, uint32_t object,
                         uint64_t first, uint64_t n, void *out);

/* A frame arrives at a port and what may leave leaves; returns when to service next. */
ns_t hosted_receive(struct loop *loop, struct sw *sw, uint32_t port, const void *frame,
                    uint32_t len, ns_t now);

/* Ports. socket_open is apart: it may take its time, and needs no switch. */
bool hosted_add_socket_port(struct loop *loop, struct sw *sw, uint32_t number,
                            struct socket_port *port, bytes_t ring_bytes);
bool hosted_add_memory_port(struct loop *loop, struct sw *sw, uint32_t number,
                            struct memory_box *box);
void hosted_remove_port(struct loop *loop, struct sw *sw, uint32_t number);
void hosted_set_up(struct loop *loop, struct sw *sw, uint32_t number, bool is_up, ns_t now);

struct hosted_link {
    bps_t rate;
    ns_t delay;
    uint32_t overhead;
};
bool hosted_set_link(struct loop *loop, struct sw *sw, uint32_t number, struct hosted_link link);

/* Each value: -1 leaves it as it is. `priority` -1: every queue. */
struct hosted_queue {
    int32_t priority;
    int64_t packets, bytes, packets_per_s;
};
bool hosted_set_queue(struct loop *loop, struct sw *sw, uint32_t number,
                      const struct hosted_queue *queue);

/* How a queue is served (traffic_manager.h), or, `priority` being -1, how some queues together are shaped. False
 * for a port or priority that cannot be, or when memory is out. */
struct hosted_service {
    int32_t priority;
    uint32_t classes;
    uint64_t quantum, rate, burst;
};
bool hosted_set_service(struct loop *loop, struct sw *sw, uint32_t number,
                        const struct hosted_service *service);

/* See sw_set_replay and sw_set_credit. */
bool hosted_set_replay(struct loop *loop, struct sw *sw, uint32_t number,
                       const struct llr_config *config);
bool hosted_set_credit(struct loop *loop, struct sw *sw, uint32_t number,
                       const struct sw_credit *credit);

/* See sw_set_cable. */
bool hosted_set_cable(struct loop *loop, struct sw *sw, uint32_t number, uint32_t way,
                      const struct cable_faults *faults);

/* Share a register with the program; TABLE_NONE for none. False if there is no such register, or
 * its cells cannot hold times where times are wanted. */
bool hosted_share(struct loop *loop, struct sw *sw, uint32_t role, uint32_t reg);
bool hosted_keep_times(struct loop *loop, struct sw *sw, uint32_t reg); /* TABLE_NONE: none */

/* Capture what a port receives or sends; NULL stops. False with errno. */
bool hosted_set_pcap(struct loop *loop, struct sw *sw, uint32_t number, bool is_out,
                     const char *path);
void hosted_set_trace(struct loop *loop, struct sw *sw, sw_text_fn trace, sw_text_fn log);

struct hosted_stats {
    uint64_t received, copies, sent, held;
    uint64_t events_refused;
    uint64_t drops[DROP_REASONS];
};
void hosted_stats(struct loop *loop, struct sw *sw, struct hosted_stats *out);

/* See sw_books. Both are of one moment: between two, packets go on. */
uint32_t hosted_books(struct loop *loop, struct sw *sw, struct hosted_stats *stats,
                      struct book_line *lines, uint32_t room);

struct hosted_port {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    uint32_t number;
    uint32_t is_up, is_attached;
    uint32_t unused;
    uint64_t rx_missed;
    uint64_t queue_packets[SW_QUEUES], queue_bytes[SW_QUEUES];
};
/* All ports that exist, up to `room`; returns how many. */
uint32_t hosted_ports(struct loop *loop, struct sw *sw, struct hosted_port *out, uint32_t room);

int hosted_event_fd(const struct sw *sw);
size_t hosted_drain(struct sw *sw, void *out, size_t room);

const char *hosted_drop_name(uint32_t reason);
const struct ctl_reason_text *hosted_reason(uint32_t reason);
