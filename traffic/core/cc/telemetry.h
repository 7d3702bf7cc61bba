/* What hops write into packets, as INT-MD has it, and answers bring back to senders. */
#ifndef EP_TELEMETRY_H
#define EP_TELEMETRY_H

#include "../units.h"

enum { INT_HOPS = 8 }; /* as many as are looked at */

/* An INT-MD stack as it lies in a packet: its instruction bitmap, words a hop, and hops. */
struct int_stack {
    const uint8_t *words;
    uint32_t hops, hop_words;
    uint16_t instructions, own_instructions; /* INT-MD's, and our domain's, whose words follow */
};

/* What a hop says of its egress: INT_UNTOLD if it was not asked, or could not tell. */
#define INT_UNTOLD UINT32_MAX
struct int_hop {
    uint32_t queue;       /* bytes, the packet itself included */
    uint32_t utilisation; /* of the link, in 1/65536 (p4src/load.p4) */
    uint32_t mbps;        /* the link's rate */
};

struct int_hop int_read_hop(const struct int_stack *stack, uint32_t number);

/* Its queue behind a packet of such a size, its use and its rate, that of `line` if it did not tell. */
static inline uint32_t int_backlog(const struct int_hop *hop, bytes_t packet)
{
    return hop->queue > packet ? hop->queue - (uint32_t)packet : 0;
}

static inline double int_use(const struct int_hop *hop)
{
    return hop->utilisation == INT_UNTOLD ? 0 : (double)hop->utilisation / 65536;
}

static inline double int_bps(const struct int_hop *hop, bps_t line)
{
    return hop->mbps && hop->mbps != INT_UNTOLD ? (double)hop->mbps * 1e6 : (double)line;
}

#endif
