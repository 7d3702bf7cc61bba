/* A fabric under a virtual clock: switches and hosts joined by channels.
 *
 *     host ──channel──► switch ──channel──► switch ──channel──► host
 *
 * The switches are those of switch/rt with their compiled P4, the hosts those of traffic/core; both
 * are passive, and this is who hands them frames and the time. A link is two channels. A channel
 * holds the frames under way in order and has one event, the arrival of the first; a node has one
 * event, the time at which it asked to be woken. So the event queue stays as small as the fabric,
 * however many packets are in it.
 *
 * Every frame that was sent is under way, was delivered, or was lost on purpose: net_account.
 */
#ifndef NET_H
#define NET_H

#include "evq.h"
#include "script.h"
#include "sw.h"

struct net;

struct net_account {
    uint64_t sent, delivered, lost, under_way;
    uint64_t events;
};

struct net_channel_report {
    uint64_t packets, bytes, lost;
};

struct net *net_new(uint64_t seed); /* NULL when memory is out */
void net_free(struct net *net);     /* the hosts' plans too; switches are the caller's */

/* Nodes are numbered from 0 in the order they are added; -1 when memory is out. */
int64_t net_add_switch(struct net *net, struct sw *sw);
int64_t net_add_host(struct net *net);

/* One line of a host's plan (traffic/core/script.h); NULL, or what is wrong with it. */
const char *net_host_line(struct net *net, uint32_t node, const char *line);

/* A channel from a node's port to another's. `rate` and `overhead` matter for hosts; a switch
 * knows its ports' links itself, the delay included. Returns its number, or -1. */
int64_t net_add_channel(struct net *net, uint32_t from, uint32_t from_port, uint32_t to,
                        uint32_t to_port, bps_t rate, uint32_t overhead, ns_t delay);

/* Lose this share of what a channel carries, in 2^-32. */
void net_set_loss(struct net *net, uint32_t channel, uint32_t share);

/* Let the hosts begin. */
void net_start(struct net *net);

/* Run until a time, a number of events, or the end of all transfers. Returns the time. */
ns_t net_run(struct net *net, ns_t until, uint64_t most_events);

/* After something was done to a switch from outside: let it act on it. */
void net_wake(struct net *net, uint32_t node);

uint64_t net_open_transfers(const struct net *net);
void net_account(const struct net *net, struct net_account *account);
void net_channel_report(const struct net *net, uint32_t channel, struct net_channel_report *report);
/* A host's report as text (traffic/core/script.h), to a file that is open for writing. */
bool net_host_report(struct net *net, uint32_t node, int file);

#endif
