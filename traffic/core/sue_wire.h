/* Scale-up Ethernet as bytes (docs/scale-up.md has the texts). Nothing here has state.
 *
 *   0         14     22   30                                       PDU bytes further on
 *   | Ethernet | SUNH | RH | PDU: commands, then what they store ... | R-CRC |
 *
 *   SUNH     traffic class (8), next header (8); hop limit (4), flow label (12); source (16),
 *            destination (16): the lower halves of IPv4 addresses
 *   RH       version (2), op (2), reserved (2), XPU (10); NPSN (16); virtual channel (2), reserved (4),
 *            partition (10); APSN (16)
 *   PDU      commands (8), reserved (8), bytes behind this word (16)
 *   command  op (8), flags (8), bytes (16); key (32); offset (32)
 *
 * SUNH's fields are the draft's, and RH's places and widths are public. Ours are what no public text
 * has: the next header's number, the values of the op, that XPU is who sent it, what a command looks
 * like (XPUs' own affair, the text says), and the R-CRC's polynomial, which is Ethernet's.
 */
#pragma once

#include "wire.h"

enum {
    ETHERTYPE_SUNH = 0x885B,
    WIRE_SUNH = 8,
    SUE_RH = 8,
    SUE_PDU = 4,
    SUE_COMMAND = 12,
    SUE_HEADERS = WIRE_ETHERNET + WIRE_SUNH + SUE_RH + SUE_PDU,
    SUE_RCRC = 4,
    SUE_MIN = 60, /* a frame without its FCS */
    SUE_NEXT_HEADER = 253, /* for experiments (RFC 3692) */
    SUE_HOPS = 15,
    SUE_STORE_MAX = 256, /* what a command stores at most */
    SUE_COMMANDS_MAX = 255,
    SUE_CHANNELS = 4,
    SUE_WINDOW_MAX = 1 << 15,
};

enum sue_op { SUE_ACK, SUE_NACK };
enum { SUE_STORE = 1, SUE_LAST = 1 }; /* a command's op; its flags: the last of its message */

/* The number nearest to `near` whose low 16 bits are `psn`. */
static inline uint64_t sue_unwrap(uint64_t near, uint32_t psn)
{
    uint32_t ahead = (psn - (uint32_t)near) & 0xFFFF;
    return ahead < 0x8000 ? near + ahead : near + ahead - 0x10000;
}
