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
#pragma once

#include "units.h"

struct rx_buffer_config {
    bps_t rate;           /* at which frames are taken; 0: at once, and there is no buffer */
    uint32_t room;        /* bytes of the wire that the buffer holds */
    uint32_t xoff, xon;   /* pause above the one, go on at the other or below */
};

/* NULL, or what is wrong with it, in words. */
const char *rx_buffer_problem(const struct rx_buffer_config *config);

struct rx_buffer {
    struct rx_buffer_config config;
    uint8_t *ring;
    size_t size, head, tail, end; /* where to take, where to put, and where it wraps */
    uint32_t held;                /* bytes of the wire */
    ps_t taken_at;                /* when the last frame will have been taken */
    bool full_enough;             /* the sender is to pause */
};

bool rx_buffer_init(struct rx_buffer *rx_buffer, const struct rx_buffer_config *config); /* false: no memory */
void rx_buffer_free(struct rx_buffer *rx_buffer);

/* A frame has come, of a class that is paused or of one that may be lost. False if there is no room
 * for it. */
bool rx_buffer_put(struct rx_buffer *rx_buffer, const uint8_t *frame, uint32_t stored, uint32_t wire,
                bool may_be_lost, ns_t now);
/* The frame that has been taken by now, which leaves the buffer; NULL if there is none. It stays
 * where it is until the next call. */
const uint8_t *rx_buffer_take(struct rx_buffer *rx_buffer, ns_t now, uint32_t *stored, uint32_t *wire);
/* When the next one will have been taken; NS_NEVER if the buffer is empty. */
ns_t rx_buffer_due(const struct rx_buffer *rx_buffer);
