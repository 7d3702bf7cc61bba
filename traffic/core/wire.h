/* RoCEv2, PFC and INT-MD as bytes: offsets, opcodes, codes. Nothing here has state.
 *
 *   0         14     34    42               54            70
 *   | Ethernet | IPv4 | UDP | BTH            | RETH (ImmDt) | payload, pad | ICRC |
 *   | Ethernet | IPv4 | UDP | shim+MD+stack  | BTH | ...                         with INT on board
 *   | Ethernet | IPv6 ... what follows stands 20 bytes further on
 *   | Ethernet | CSIG | IP ...                                             4 or 8 bytes further on
 *
 * What a selective receiver has beyond a gap stands behind the AETH of its answers, and is not there
 * if that is nothing (behind the CSIG tag that is reflected, if any is): a map, whose bit i is packet `first` + i.
 *
 *   | first PSN (24) | a packet came twice (1) | words (7) | words of 64 bits, the low bit first |
 */
#pragma once

#include "units.h"

enum {
    WIRE_ETHERNET = 14,
    WIRE_IPV4 = 20,
    WIRE_IPV6 = 40,
    WIRE_IPV6_ADDRESS = 16,
    WIRE_UDP = 8,
    WIRE_BTH = 12,
    WIRE_RETH = 16,
    WIRE_AETH = 4,
    WIRE_IMMDT = 4,
    WIRE_SACK = 4,
    WIRE_SACK_WORDS = 16, /* at most: 1024 packets */
    WIRE_SACK_TWICE = 0x80,
    WIRE_CNP_PAD = 16, /* what a switch sends (fast CNP) has there whose queue pair the BTH names */
    WIRE_ICRC = 4,
    WIRE_IP_AT = WIRE_ETHERNET,
    WIRE_TYPE_AT = 12, /* Ethernet's */
    WIRE_HEADERS_MAX = WIRE_ETHERNET + WIRE_IPV6 + WIRE_UDP + WIRE_BTH, /* without INT */
    WIRE_ENDS_MAX = 2 * 6 + 2 * 16, /* MAC and IP addresses of both ends */
    WIRE_INT_SHIM = 4,
    WIRE_INT_MD = 12,
    WIRE_INT_DOMAIN = 0xC105, /* whose domain-specific instructions are ours: p4src/types.p4 */
    WIRE_INT_STACK_MAX = 240, /* bytes of hop metadata that an endpoint looks at */
    WIRE_PFC = 60,
    PFC_QUANTUM_BYTES = 64, /* 512 bit times */
};

enum {
    ETHERTYPE_IPV4 = 0x0800,
    ETHERTYPE_IPV6 = 0x86DD,
    ETHERTYPE_MAC_CONTROL = 0x8808,
    PFC_OPCODE = 0x0101,
};

enum { ROCE_PORT = 4791, IP_UDP = 17, IP_IPV6 = 41, IP_FRAGMENT = 0x3FFF /* more to come, or an offset */ };

enum bth_opcode {
    BTH_WRITE_FIRST = 0x06,
    BTH_WRITE_MIDDLE = 0x07,
    BTH_WRITE_LAST = 0x08,
    BTH_WRITE_LAST_IMM = 0x09,
    BTH_WRITE_ONLY = 0x0A,
    BTH_WRITE_ONLY_IMM = 0x0B,
    BTH_ACK = 0x11,
    BTH_CNP = 0x81,
};

/* AETH syndromes: an ACK with the credit count "unlimited", and the NAK codes. */
enum aeth_syndrome {
    AETH_ACK = 0x1F,
    AETH_NAK_SEQUENCE = 0x60,
    AETH_NAK_INVALID_REQUEST = 0x61,
    AETH_NAK_REMOTE_ACCESS = 0x62,
    AETH_NAK_REMOTE_OPERATION = 0x63,
};

/* Of the BTH's bytes 4 and 8. REFLECTS is one of its reserved bits, and ours: a CSIG tag as it came
 * follows the AETH. */
enum { BTH_BECN = 0x40, BTH_REFLECTS = 0x01, BTH_ACK_REQUEST = 0x80 };

/* Of an IP header of either version: its length on the wire without options or extensions, where its
 * source address stands and how long that is (the destination follows), and what it says. */
static inline bool ip_is_v6(const uint8_t *ip) { return ip[0] >> 4 == 6; }
static inline uint32_t ip_bytes(const uint8_t *ip) { return ip_is_v6(ip) ? WIRE_IPV6 : WIRE_IPV4; }
static inline uint32_t ip_source_at(const uint8_t *ip) { return ip_is_v6(ip) ? 8 : 12; }
static inline uint32_t ip_address_bytes(const uint8_t *ip) { return ip_is_v6(ip) ? 16 : 4; }

static inline uint8_t ip_protocol(const uint8_t *ip) { return ip_is_v6(ip) ? ip[6] : ip[9]; }

static inline uint32_t ip_length(const uint8_t *ip)
{
    return ip_is_v6(ip) ? (uint32_t)be16_load(ip + 4) + WIRE_IPV6 : be16_load(ip + 2);
}

static inline uint8_t ip_tos(const uint8_t *ip)
{
    return ip_is_v6(ip) ? (uint8_t)(ip[0] << 4 | ip[1] >> 4) : ip[1];
}

static inline void ip_set_tos(uint8_t *ip, uint8_t tos)
{
    if (ip_is_v6(ip)) {
        ip[0] = (uint8_t)(0x60 | tos >> 4);
        ip[1] = (uint8_t)(tos << 4 | (ip[1] & 0xF));
    } else {
        ip[1] = tos;
    }
}

#define PSN_MASK 0xFFFFFFu
#define PSN_HALF 0x800000u

/* The sequence number nearest to `near` whose low 24 bits are `psn`. Numbers below zero do not
 * exist; such a PSN comes back as a huge number, which no window holds. */
static inline uint64_t psn_unwrap(uint64_t near, uint32_t psn)
{
    uint32_t ahead = (psn - (uint32_t)near) & PSN_MASK;
    return ahead < PSN_HALF ? near + ahead : near + ahead - (PSN_MASK + 1u);
}

static inline bool opcode_is_write(uint8_t op)
{
    return op >= BTH_WRITE_FIRST && op <= BTH_WRITE_ONLY_IMM;
}
static inline bool opcode_starts(uint8_t op)
{
    return op == BTH_WRITE_FIRST || op == BTH_WRITE_ONLY || op == BTH_WRITE_ONLY_IMM;
}
static inline bool opcode_ends(uint8_t op)
{
    return op >= BTH_WRITE_LAST && op <= BTH_WRITE_ONLY_IMM;
}
static inline bool opcode_has_imm(uint8_t op)
{
    return op == BTH_WRITE_LAST_IMM || op == BTH_WRITE_ONLY_IMM;
}
