/* What an adapter has received and not yet taken: a host slower than its link.
 *
 *     the wire ──► [ frames, in order ] ──► the endpoint, at the host's rate
 *                    │ more than xoff held: pause the sender
 *                    └ no more than xon: let it go on
 *
 * Every frame but pause frames waits its turn. A full buffer loses what comes, and counts it; one
 * that begins to pause in time never is. The pause frames themselves are the scheduler's doing. What
 * is above xoff is for those who are paused: whom no pause stops finds no room there.
 *
 * Memory: one ring of bytes, made at once; a frame in it is never torn.
 */
#ifndef EP_INTAKE_H
#define EP_INTAKE_H

#include "units.h"

struct intake_config {
    bps_t rate;           /* at which frames are taken; 0: at once, and there is no buffer */
    uint32_t room;        /* bytes of the wire that the buffer holds */
    uint32_t xoff, xon;   /* pause above the one, go on at the other or below */
};

/* NULL, or what is wrong with it, in words. */
const char *intake_problem(const struct intake_config *config);

struct intake {
    struct intake_config config;
    uint8_t *ring;
    size_t size, head, tail, end; /* where to take, where to put, and where it wraps */
    uint32_t held;                /* bytes of the wire */
    ps_t taken_at;                /* when the last frame will have been taken */
    bool full_enough;             /* the sender is to pause */
};

bool intake_init(struct intake *intake, const struct intake_config *config); /* false: no memory */
void intake_free(struct intake *intake);

/* A frame has come, of a class that is paused or of one that may be lost. False if there is no room
 * for it. */
bool intake_put(struct intake *intake, const uint8_t *frame, uint32_t stored, uint32_t wire,
                bool may_be_lost, ns_t now);
/* The frame that has been taken by now, which leaves the buffer; NULL if there is none. It stays
 * where it is until the next call. */
const uint8_t *intake_take(struct intake *intake, ns_t now, uint32_t *stored, uint32_t *wire);
/* When the next one will have been taken; NS_NEVER if the buffer is empty. */
ns_t intake_due(const struct intake *intake);

#endif
