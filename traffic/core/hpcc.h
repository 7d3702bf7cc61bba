/* Congestion control from in-band telemetry, after HPCC: the window that fills the busiest link
 * of the path to `eta` of its rate, and no more.
 *
 * Every hop wrote its egress queue's occupancy, its link's utilisation and its link's rate into the
 * packet; the receiver echoes them in its acknowledgements. With T the base round-trip time, a link
 * counts as u = queue / (rate x T) + utilisation; U follows the largest u, smoothed over T. (What a
 * hop tells of its queue includes the packet that it tells it to, which is no backlog and is taken
 * off: left in, it keeps a link with a short round trip some per cent below eta.) Once a round trip
 * (when an ACK passes what was sent at the last such moment) a reference window is set to
 * W / (U / eta) + W_ai; ACKs between move the window about that reference, so that no round
 * trip's congestion is counted twice. The rate is W / T; W is bytes, and where it is less than a
 * packet it is the rate alone that limits a queue pair.
 *
 * Where HPCC reads a byte count and a time stamp per hop and divides, this reads the utilisation
 * that INT-MD defines, so a sender remembers only the last queue per hop.
 */
#ifndef EP_HPCC_H
#define EP_HPCC_H

#include "units.h"

enum { HPCC_HOPS = 8 };

struct hpcc_profile {
    ns_t base_rtt;
    double eta;
    uint32_t max_stage;
    bytes_t additive;
    uint32_t utilisation_full; /* what INT says of a link that is busy all the time */
};

struct hpcc {
    double window, reference, u;
    bps_t line;
    uint64_t update_after; /* the sequence number that ends this round trip */
    ns_t last_ack;
    uint32_t stage;
    uint32_t queue[HPCC_HOPS];
};

/* An INT-MD stack as it lies in a packet: its instruction bitmap, words a hop, and hops. */
struct int_stack {
    const uint8_t *words;
    uint32_t hops, hop_words;
    uint16_t instructions, own_instructions; /* INT-MD's, and our domain's, whose words follow */
};

void hpcc_init(struct hpcc *cc, const struct hpcc_profile *profile, bps_t line);

/* An ACK for everything before `acked` brought `stack`; `next` is the next number to be sent, and
 * a packet is at most `packet` bytes long. */
void hpcc_ack(struct hpcc *cc, const struct hpcc_profile *profile, const struct int_stack *stack,
              bytes_t packet, uint64_t acked, uint64_t next, ns_t now);

bps_t hpcc_rate(const struct hpcc *cc, const struct hpcc_profile *profile);

#endif
