/* DCQCN at the sender: what a queue pair's rate does when congestion notifications come and go.
 *
 * After a CNP the rate is cut by alpha/2 and remembered as the target. From then on, on every tick
 * of the increase timer and on every `byte_counter` bytes sent, it climbs: for `fast_rounds` events
 * halfway to the target each, then the target itself rises, by `additive`, and once both counters
 * are past the fast rounds by `hyper`. Alpha estimates congestion: g is added on a CNP, and it
 * decays by 1-g for every alpha interval without.
 *
 * No timer runs. The state is brought up to date when it is looked at, event by event, so that it
 * is exactly what timers would have made of it and a thousand idle queue pairs cost nothing.
 */
#ifndef EP_DCQCN_H
#define EP_DCQCN_H

#include "units.h"

struct dcqcn_profile {
    ns_t alpha_interval;
    ns_t cut_interval; /* at most one cut in this long */
    ns_t increase_interval;
    bytes_t byte_counter; /* 0: time alone makes the rate climb */
    double g;
    bps_t additive, hyper, minimum;
    uint32_t fast_rounds;
};

struct dcqcn {
    double alpha;
    bps_t current, target, line;
    ns_t cut_at, alpha_at, increase_at; /* when each last happened */
    bytes_t sent;                       /* since the last event of the byte counter */
    uint16_t time_stage, byte_stage;
    bool active; /* a CNP has come; until then the rate is the line's */
};

/* Fill in a profile by name ("paper", "hpcc-paper", "conweave") for a link of `line`: the
 * increments and the least rate are given for 100 Gb/s and scale. False for an unknown name. */
bool dcqcn_profile_named(struct dcqcn_profile *profile, const char *name, bps_t line);

void dcqcn_init(struct dcqcn *cc, bps_t line);

/* A CNP arrived. */
void dcqcn_cnp(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now);

/* `bytes` leave at `now`; returns the rate they leave at. */
bps_t dcqcn_sent(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now, bytes_t bytes);

/* Everything that timers would have done until `now`. */
void dcqcn_advance(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now);

#endif
