/* The invariant CRC that closes every RoCEv2 packet.
 *
 * It is CRC-32 as zlib computes it, over eight bytes of ones, the IP and UDP headers, the BTH and
 * the rest, with everything a router may change (TOS, TTL, both checksums, the congestion bits; of
 * IPv6 the traffic class, the flow label and the hop limit) taken as ones, as annex A17 has it. UET's packets are closed by the same, but that nothing of theirs changes after UDP.
 * A packet that carries INT is summed as it was before INT touched its lengths and
 * its UDP port, so the caller says what those were.
 */
#pragma once

#include "units.h"

/* CRC-32 of more bytes: start with 0; feed the result back to go on. */
uint32_t crc32_more(uint32_t crc, const uint8_t *p, size_t n);

/* The same by tables alone, whatever the processor offers; for tests and for comparison. */
uint32_t crc32_more_portable(uint32_t crc, const uint8_t *p, size_t n);

/* The ICRC of the packet whose IP header is at `ip` and whose BTH is at `bth`, `n` bytes from the
 * BTH on without the ICRC itself. `length` of the IP packet, header included, and `udp_port`: those of
 * the packet without INT. */
uint32_t icrc_of(const uint8_t *ip, const uint8_t *bth, size_t n, uint32_t length,
                 uint16_t udp_port);
