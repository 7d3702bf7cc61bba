/* What is known of each way of a connection, as MRC keeps it (OCP MRC 1.0): entropy values with a state.
 *
 *   good         in turn with the others
 *   skip         passed over once: a packet came back marked, or was cut
 *   assumed bad  not used: a packet was lost. Probes are sent that way instead, and so many in a row
 *                have to be answered before it is used again
 *   denied       not used, nor asked about: a controller wants it free. Good again when it says so
 *
 *             marked, cut            lost
 *      skip ◄──────────── good ──────────────► assumed bad
 *        └──── next turn ──►▲                       │ enough probes answered
 *                           └───────────────────────┘
 *
 * How many is ours: MRC says that a probe's answer brings a way back. A cable that loses a fifth of
 * what it carries would be back after a round trip or two, and lose again. So the first relapse takes
 * one answer, and each that follows within a while twice as many as the one before. Probes that are
 * not answered are sent ever more seldom. When no way is good any more, all are taken in turn: it is
 * better to try than to stand still.
 */
#pragma once

#include "units.h"

enum way_state { WAY_GOOD, WAY_SKIP, WAY_BAD, WAY_DENIED };

struct way {
    ns_t probe_at;     /* bad: when it is asked for again */
    ns_t back_at;      /* when it became good again the last time */
    uint8_t state;
    uint8_t relapses;  /* of late */
    uint8_t wanted;    /* probes still to be answered in a row */
    uint8_t in_vain;   /* probes in a row that were not */
    bool is_asked;     /* one is on its way */
};

struct health {
    struct way *ways; /* the owner's */
    uint16_t count, good; /* good, or to be skipped */
    uint16_t denied;
    uint16_t skipped;     /* turns passed over since somebody looked */
    ns_t probe_at;    /* no probe is due before; NS_NEVER */
};

#define HEALTH_NO_WAY UINT16_MAX

void health_init(struct health *health, struct way *ways, uint16_t count);

/* Whether a way may be used now that its turn has come. */
bool health_takes(struct health *health, uint16_t way);

void health_skip(struct health *health, uint16_t way);
void health_lost(struct health *health, uint16_t way, ns_t round_trip, ns_t now);
/* A probe's answer came back that way. */
void health_answered(struct health *health, uint16_t way, bool marked, ns_t now);

void health_deny(struct health *health, uint16_t way, bool is_denied);

/* Whether a way is denied; whether all are. */
bool health_denies(const struct health *health, uint16_t way);
static inline bool health_denies_all(const struct health *health)
{
    return health->count && health->denied == health->count;
}

/* The way whose probe is due, or HEALTH_NO_WAY: it counts as asked. */
uint16_t health_probe(struct health *health, ns_t round_trip, ns_t now);
