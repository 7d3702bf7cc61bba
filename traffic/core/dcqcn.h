/* DCQCN at the sender: what a queue pair's rate does when congestion notifications come and go.
 *
 * A cut takes alpha/2 off the rate, and what it was may become the target. From then on, on every
 * tick of the increase timer and on every `byte_counter` bytes sent, the rate climbs: for
 * `fast_rounds` events halfway to the target each, then the target itself rises, by `additive`, and
 * once both counters are past the fast rounds by `hyper`. Alpha estimates congestion: it moves by
 * the share g towards 1 when CNPs come, towards 0 when none do.
 *
 * When a CNP takes effect is where the algorithm's two forms differ:
 *
 *   at once    as the paper has it: a CNP cuts, if `cut_interval` has passed since the last cut, and
 *              raises alpha; every alpha interval without one lets alpha decay.
 *   periodic   as adapters and the simulators made after them do: a CNP is noted. From the first on
 *              one clock moves alpha every alpha interval, another cuts every cut interval, each by
 *              whether a CNP came since its last tick. At one instant alpha moves first, then the
 *              rate climbs, then it is cut.
 *
 * `clamp_target` lets every cut make the present rate the target. Without it only the first cut
 * after a climb does, so that several in a row are taken back at once when congestion ends.
 *
 * No timer runs. The state is brought up to date when it is looked at, event by event, so that it
 * is exactly what timers would have made of it and a thousand idle queue pairs cost nothing.
 */
#ifndef EP_DCQCN_H
#define EP_DCQCN_H

#include "units.h"

enum dcqcn_reaction { DCQCN_AT_ONCE, DCQCN_PERIODIC };

struct dcqcn_profile {
    enum dcqcn_reaction reaction;
    bool clamp_target;
    uint32_t fast_rounds;
    ns_t cnp_interval; /* at the receiver: at most one CNP a queue pair in this long */
    ns_t alpha_interval;
    ns_t cut_interval;
    ns_t increase_interval;
    bytes_t byte_counter; /* 0: time alone makes the rate climb */
    double g, first_alpha;
    bps_t additive, hyper, minimum;
};

struct dcqcn {
    double alpha;
    bps_t current, target, line;
    ns_t cut_at, alpha_at, increase_at; /* when each clock last ticked, or was set back */
    bytes_t sent;                       /* since the last event of the byte counter */
    uint16_t time_stage, byte_stage;
    bool active; /* a CNP has come; until then the rate is the line's */
    bool noted_by_alpha, noted_by_cut; /* periodic: a CNP came since the last tick */
};

/* Fill in a profile by name ("paper", "mlx5", "hpcc-ns3", "conweave") for a link of `line`. False
 * for an unknown name. */
bool dcqcn_profile_named(struct dcqcn_profile *profile, const char *name, bps_t line);

/* NULL, or what is wrong with it, in words. */
const char *dcqcn_problem(const struct dcqcn_profile *profile);

void dcqcn_init(struct dcqcn *cc, bps_t line);

/* A CNP arrived. */
void dcqcn_cnp(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now);

/* `bytes` leave at `now`; returns the rate they leave at. */
bps_t dcqcn_sent(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now, bytes_t bytes);

/* Everything that timers would have done until `now`. */
void dcqcn_advance(struct dcqcn *cc, const struct dcqcn_profile *profile, ns_t now);

#endif
