/* What hops write into packets, as INT-MD has it, and answers bring back to senders. */
#pragma once

#include "../units.h"

enum {
    INT_HOPS = 8,  /* as many as are looked at */
    INT_PATHS = 4, /* ways of a flow that are remembered at once */
};

/* An INT-MD stack as it lies in a packet: its instruction bitmap, words a hop, and hops. */
struct int_stack {
    const uint8_t *words;
    uint32_t hops, hop_words;
    uint16_t instructions, own_instructions; /* INT-MD's, and our domain's, whose words follow */
    uint16_t path;                           /* the sum of the numbers of the links it took */
};

/* What a hop says of its egress: INT_UNTOLD if it was not asked, or could not tell. */
#define INT_UNTOLD UINT32_MAX
struct int_hop {
    uint32_t queue; /* bytes, the packet itself included */
    uint32_t mbps;  /* the link's rate */
    uint32_t left;  /* when the packet left, in ns, and */
    uint32_t sent;  /* the bytes that had before: both modulo 2^32 */
};

struct int_hop int_read_hop(const struct int_stack *stack, uint32_t number);

/* What a flow's answers told last of the hops of its ways. A way has one place, by its number: of two
 * that share a place the one that was heard of later is known. */
struct int_memory {
    struct int_path {
        bool known;
        uint16_t path;
        uint32_t hops;
        ns_t heard;
        struct int_hop hop[INT_HOPS];
    } paths[INT_PATHS];
};

/* What a hop's link did between two packets of a flow. */
struct int_change {
    double rate;              /* of the link, bytes a ns */
    double queue, queue_then; /* behind the later packet, and behind the one before it */
    double sent, passed;      /* bytes, and ns; none passed if the hop tells no times */
};

/* What a stack tells since the last one of its way was heard: of so many hops. None if there was none,
 * or so long before that a time or a count may have come round. */
uint32_t int_since(struct int_memory *memory, const struct int_stack *stack, bps_t line, bytes_t packet,
                   ns_t now, struct int_change changes[INT_HOPS]);
