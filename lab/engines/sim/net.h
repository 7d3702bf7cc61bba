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
 * A net is divided into parts, with an event queue each, which are simulated in turns, by one thread or
 * by several.
 *
 * Channels keep books as switches do (books.h): what was put in was delivered (LEFT), lost (DROPPED)
 * or is under way (HELD).
 *
 * While it runs, a net may note what channels carry, how long their queues are, what holds them up,
 * what switches hold in their buffers and every pause that is told (net_sample), and record the
 * frames of a channel (net_record).
 */
#pragma once

#include "evq.h"
#include "ranks.h"
#include "script.h"
#include "sw.h"

struct net;

struct net_account {
    uint64_t delivered; /* frames */
    uint64_t events, looks; /* that parts have, and that the simulator takes itself */
    uint64_t early; /* frames that came to another part sooner than can be: a defect */
};

/* Why a channel loses what is in it; reports have the names. */
enum net_lost { NET_LINK_CUT, NET_HOST_HALTED, NET_WAYS_TO_LOSE };

struct net_channel_report {
    uint64_t packets, bytes, lost;
    uint64_t max_queue_bytes; /* of data, at the port that sends into it; 0 for a host's */
};

struct net_sample { /* all but the queue: since the simulation began */
    ns_t at;
    uint32_t channel;
    uint32_t queue_bytes;
    uint64_t bytes;     /* carried */
    ns_t paused;        /* how long its sender's data stood still, by class, added up */
    uint64_t marked;    /* packets, by the switch as it sent them into it */
    uint64_t dropped;   /* packets, by the switch that sends into it, whatever their way */
};

/* What a class holds of a switch's buffer. */
struct net_stock {
    ns_t at;
    uint32_t node;
    uint32_t priority;
    uint32_t port;     /* of the fullest queue: where it came in, or leaves if it may be lost */
    uint32_t pool;     /* bytes: of the shared pool, all classes together */
    uint32_t used;     /* of the class, headroom left out */
    uint32_t most;     /* in its fullest queue: what its threshold is for */
    uint32_t headroom; /* of the class */
};

/* Something about a pause; so many are noted, the first. */
#define NET_MAX_PAUSES 20000u
enum net_pause_kind { NET_XON, NET_XOFF, NET_STUCK };
struct net_pause {
    ns_t at;
    uint32_t channel;        /* that the frame came by; NET_STUCK: before which a queue was let go */
    uint16_t priority, kind; /* the frame has come; NET_STUCK: when somebody looked */
};

/* Of the program's reasons for drops the one that is none: a part of a collective was added up. */
#define IN_SUM 32u

/* Where the fabric program keeps what is noted of switches; its queues are [port * 8 + priority]. */
struct net_watch {
    uint32_t pause_total; /* register, by queue: what was granted, the future of a pause included */
    uint32_t marked;      /* counter, by port */
    uint32_t dropped;     /* counter, by reason */
    uint32_t classes;     /* bit p: priority p can be paused */
    uint32_t lossless;    /* bit p: its threshold is that of the queue by which packets came */
    uint32_t storms;      /* counter, by queue; this and what follows NET_NOWHERE if it has none */
    uint32_t in_used, in_headroom, out_used; /* registers, by queue: buffer.p4 */
    uint32_t pool_used, headroom_used;       /* registers of one cell */
};
#define NET_NOWHERE UINT32_MAX

/* Simulated in so many parts, a turn of each after the other: what it works with is then in the cache.
 * So many threads share in them while turns are worth it: have so many events, and others are given
 * processors; worth 0: always. What happens depends neither on parts, who is in which, nor on threads.
 * A part by itself will do for any net; several want that every cable has a delay. NULL when memory is
 * out. */
struct net *net_new(uint64_t seed, uint32_t parts, uint32_t threads, uint64_t worth);
void net_free(struct net *net);     /* the hosts' plans too; switches are the caller's */

/* Nodes are numbered from 0 in the order they are added; -1 when memory is out. */
int64_t net_add_switch(struct net *net, struct sw *sw);
int64_t net_add_host(struct net *net);

/* Have a part simulate a node, before there are channels at it; they all begin in part 0. */
void net_place(struct net *net, uint32_t node, uint32_t part);

/* Once all channels are there, share in it with other ranks, which have built the same: rank r
 * simulates the parts from bounds[r] to bounds[r + 1]. All call the same from now on. What is asked of
 * a node is known to its rank, of a channel what went in to its sender's and what came out to its
 * receiver's; the time, what is open, whether anything failed or is left, samples and stocks to all.
 * False when memory is out. */
bool net_join(struct net *net, struct ranks *ranks, const uint32_t *bounds);

/* After something was done from outside: have all ranks know what it led to, as net_run does before
 * anything else. */
void net_settle(struct net *net);

/* Whether memory was out for what ranks send to each other: then nothing is as it should be. */
bool net_has_starved(struct net *net);

/* Note of how many events each turn has in each part, as long as there is room: for who models how
 * turns could be shared. One thread alone notes. */
struct net_share {
    uint64_t turn;
    uint32_t part, events;
};
void net_note_shares(struct net *net, struct net_share *shares, uint64_t room);
uint64_t net_noted_shares(const struct net *net);

/* Lines of a host's plan (traffic/core/script.h); NULL, or what is wrong with the one behind those
 * that were `taken`. */
const char *net_host_lines(struct net *net, uint32_t node, const char *lines, uint32_t *taken);

/* A channel from a node's port to another's. `rate` and `overhead` matter for hosts; a switch
 * knows its ports' links itself, the delay included. Returns its number, or -1. */
int64_t net_add_channel(struct net *net, uint32_t from, uint32_t from_port, uint32_t to,
                        uint32_t to_port, bps_t rate, uint32_t overhead, ns_t delay);

/* Let a host's end of the link at a port try again what it lost (switch/rt/llr.h), before it starts;
 * the host has its plan. False when memory is out. */
bool net_set_replay(struct net *net, uint32_t node, uint32_t port, const struct llr_config *config);
/* Let a cable spoil what comes to a host whose link tries again, with a chance in 2^32. */
void net_spoil(struct net *net, uint32_t node, uint32_t port, uint32_t corrupt);
/* What the link counted: LLR_COUNTS values, and then what it put into the cable beyond its adapter's frames,
 * and took out of it that did not reach the adapter: packets and bytes each. */
void net_host_link(const struct net *net, uint32_t node, uint32_t port, uint64_t *values);

/* Cut a channel, with what is under way in it, or mend it; the ports at its ends notice. */
void net_set_up(struct net *net, uint32_t channel, bool is_up);

/* Let a host stand still, deaf and mute, or go on. */
void net_set_halted(struct net *net, uint32_t node, bool is_halted);

/* Tell a host's adapter which ways of a queue pair not to use: see ep_deny. */
bool net_deny(struct net *net, uint32_t node, uint32_t queue_pair, const uint64_t *denied);
/* Tell it of keys: see script_key. */
bool net_tell(struct net *net, uint32_t node, const char *line);

/* Let the link that a host's channel leads into have another rate, from the next frame on. */
void net_set_rate(struct net *net, uint32_t channel, bps_t rate);

/* Record what a channel delivers into a capture file: false, and errno tells, if it cannot be
 * written. Frames are as long as they are stored; their true length is beside. */
bool net_record(struct net *net, uint32_t channel, const char *path);

/* Note every channel that is in use, at intervals; those grow so that there are never more than
 * `most` notes. All switches run a program that has what is watched. Interval 0: note nothing, but
 * know where to look. */
void net_sample(struct net *net, const struct net_watch *watch, ns_t interval, uint32_t most);
const struct net_sample *net_samples(const struct net *net, uint64_t *count);
/* What was noted of buffers at these moments, or some of them; and of pauses, the first of them. */
const struct net_stock *net_stocks(const struct net *net, uint64_t *count);
const struct net_pause *net_pauses(const struct net *net, uint64_t *count);

/* When the next event is, looks that the simulator itself takes included; NS_NEVER: never. */
ns_t net_next(const struct net *net);

/* Every channel as it is now, in their order: as many as there are. Nothing is changed by it. */
void net_look(const struct net *net, struct net_sample *notes);

/* How things are now. Of drops only those are seen that net_sample's switches count. */
struct net_snapshot {
    uint64_t into_hosts; /* bytes, since the simulation began */
    uint64_t queue_bytes; /* the longest queue */
    uint32_t channel;     /* that it waits for */
    uint32_t paused;      /* switches' ports of which a class stands still */
    uint64_t dropped, marked;
};
void net_snapshot(const struct net *net, struct net_snapshot *snapshot);

/* What waits in queues, by where it leaves and where it came in; what is under way in channels, by class,
 * since 0; and what stands still, if it is empty too where that is a host's. */
struct net_wait {
    ns_t until;       /* its queue is paused until then, or, at NS_NEVER, waits for credits; 0: neither */
    ns_t since;       /* when the first of them came into it; or when it began to wait for credits */
    uint64_t bytes;
    uint32_t channel; /* that they wait for */
    uint32_t came;    /* the port that they came by; NET_NOWHERE: made here, or a host's own */
    uint32_t packets;
    uint32_t priority;
};
/* Up to `room` of them; returns how many there are. */
uint32_t net_waits(const struct net *net, struct net_wait *waits, uint32_t room);

/* Let the hosts begin. */
void net_start(struct net *net);

/* After its memory was brought here from another process: whoever worked for it there is not here. */
void net_arrived(struct net *net);

/* Run until a time, a number of events or somewhat more, the end of all transfers, or until nothing can
 * happen any more. Returns the time. Once all transfers have ended it goes on for a turn's length, beyond
 * that time too, and notes no more: less than the shortest delay. */
ns_t net_run(struct net *net, ns_t until, uint64_t most_events);

/* Whether a queue pair has failed since this was last asked: net_run returns soon after, so that who
 * asks sees why. */
bool net_has_failed(struct net *net);

/* When the last transfer ended; while some are open, the time. */
ns_t net_ended(const struct net *net);

/* To wait longer is in vain, if the net is quiet: the time is when something last happened. */
ns_t net_give_up(struct net *net);

/* Write down how everything is, but for what hosts have still to do: how many cells that takes, and if
 * `values` is given also these. 0 while anything is under way. See likeness.h. */
uint64_t net_liken(const struct net *net, const uint8_t *tallies, bool lots, uint64_t *values,
                   uint8_t *kinds);

/* Whether three such states, one `period` after the other, are alike, so that what follows the last is
 * what followed those before: how many cells are, from the first on; all, if they are. */
uint64_t net_alike(const uint64_t *first, const uint64_t *second, const uint64_t *third,
                   const uint8_t *kinds, uint64_t count, ns_t period);

/* Let events of one instant go from now on in the order that they would have so much later. */
void net_pretend(struct net *net, ns_t later);

/* After something was done to a switch from outside: let it act on it. */
void net_wake(struct net *net, uint32_t node);

uint64_t net_open_transfers(const struct net *net);
bool net_is_quiet(const struct net *net); /* nothing will ever happen again */
void net_account(const struct net *net, struct net_account *account);
/* A channel's books: the lines that are not zero, up to `room`; returns how many there are. */
uint32_t net_books(const struct net *net, uint32_t channel, struct book_line *lines, uint32_t room);
void net_channel_report(const struct net *net, uint32_t channel, struct net_channel_report *report);
/* A host's report as text (traffic/core/script.h), to a file that is open for writing. */
bool net_host_report(struct net *net, uint32_t node, int file);
/* By transfer: when it was posted, into starts, if the host sends it; when it was delivered, into
 * ends, if the host receives it; both if it computes. Others, and what never happened, are left
 * alone. */
void net_host_times(struct net *net, uint32_t node, int64_t *starts, int64_t *ends, uint64_t count);
/* What was noted of a host's ways: see ep_way_notes. */
const struct ep_way_note *net_way_notes(const struct net *net, uint32_t node, uint32_t *count);

/* A host's counters, in the order of net_counter_name; the last 8 are the time each priority was
 * paused. Returns how many there are; at most `room` are written. */
uint32_t net_host_counters(struct net *net, uint32_t node, uint64_t *values, uint32_t room);
/* What of that went through one of its ports: packets and bytes sent, packets and bytes received,
 * and for how long each priority was paused. */
void net_host_port(struct net *net, uint32_t node, uint8_t port, uint64_t *values);
const char *net_counter_name(uint32_t number); /* NULL beyond the last */
