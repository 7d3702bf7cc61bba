/* Ultra Ethernet Transport as bytes, over UDP: the headers of packet delivery (PDS) and of an RDMA
 * write (SES). Nothing here has state.
 *
 *   0         14     34    42                  54 or 58         74 to 102
 *   | Ethernet | IPv4 | UDP | PDS request (CC)  | SES            | payload | CRC |
 *   | Ethernet | IPv4 | UDP | PDS ACK_CC, NACK, control or RUDI response | CRC |
 *
 *   prologue   type (5) | next header, or what is controlled (4) | flags (7)
 *   request    prologue, clear PSN offset (16), PSN (32), SPDCID (16), DPDCID (16); with credits
 *              CCC id (8), credit target (24)
 *   ACK_CC     prologue, ACK PSN offset (16), CACK PSN (32), SPDCID, DPDCID; CC type (4), flags (4),
 *              MPR (8), SACK offset (16), SACK bitmap (64, bit i is CACK + offset + i), CC state (64)
 *   NACK       prologue, code (8), vendor (8), NACK PSN (32), SPDCID, DPDCID, highest PSN seen (32);
 *              of what came out of order (ROD) the PSN that is expected; RUDI: packet id, no PDCIDs
 *   RUDI       prologue, reserved (16), packet id (32); request and response
 *   UUD        prologue, reserved (16)
 *   control    prologue, opaque (16; of a probe: its answer has it where ACKs have the PSN offset),
 *              PSN (32), SPDCID, DPDCID, payload (32)
 *   SES        opcode (8), flags (8), message id (16), generation (8), job (24), PID on FEP (16),
 *              resource index (16), buffer offset (64), initiator (32), memory key (64), then header
 *              data (64) in a message's first packet, else payload length (32) and message offset
 *              (32); request length (32)
 *   medium     of a message in one packet, up to the memory key; where the standard form has the
 *              message id stands the request length (14)
 *   small      the same up to the buffer offset, which alone says where the message belongs
 *
 * After UE specification 1.0.1, as Wireshark's packet-uet.c reads it. The entropy is UDP's source
 * port, and an answer has that of the packet it answers. A message's id is its memory key, or, where
 * there is none, its buffer begins at 2^32 times that; both PDCs
 * are known before the first packet, so there is no SYN. Credits and their targets are counted in
 * units of 256 bytes; a grant says how much is granted in all. The last four bytes are a CRC-32 over
 * what an ICRC covers.
 *
 * Who has no PDC is told apart otherwise: a target by the job, which is a connection here, an initiator by
 * the packet id that it chose: its number (16) and the low bits of a count (16).
 */
#pragma once

#include "wire.h"

enum { UET_PORT = 4793 };

enum {
    UET_PDS = 12,
    UET_PDS_CREDIT = 4,
    UET_PDS_RUDI = 8,
    UET_PDS_UUD = 4,
    UET_SES = 44,
    UET_SES_MEDIUM = 32,
    UET_SES_SMALL = 20,
    UET_LENGTH_MASK = 0x3FFF, /* of a request's length in these two */
    UET_ACK_CC = 32,
    UET_NACK = 16,
    UET_CONTROL = 16,
    UET_SACK_BITS = 64,
    UET_CREDIT_UNIT = 256,
    UET_FIRST_PORT = 0xC000, /* entropies are UDP source ports from here on */
};

enum uet_type {
    UET_RUD_REQ = 2,
    UET_ROD_REQ = 3,
    UET_RUDI_REQ = 4,
    UET_RUDI_RESP = 5,
    UET_UUD_REQ = 6,
    UET_ACK_CC_TYPE = 8,
    UET_NACK_TYPE = 10,
    UET_CTRL = 11,
    UET_RUD_CC_REQ = 13,
    UET_ROD_CC_REQ = 14,
};

enum { UET_NEXT_NONE = 0, UET_NEXT_SMALL = 1, UET_NEXT_MEDIUM = 2, UET_NEXT_STD = 3 };
enum { UET_CTRL_PROBE = 6, UET_CTRL_CREDIT = 7, UET_CTRL_CREDIT_REQ = 8 };
enum { UET_MARKED = 0x20, UET_RETX = 0x10, UET_ACK_REQUEST = 0x08, UET_PROBE_ANSWER = 0x08 };
enum { UET_NACK_TRIMMED = 1, UET_NACK_TRIMMED_LAST_HOP = 2, UET_NACK_ROD_OOO = 13 };
enum { UET_NACK_OF_RUDI = 0x08 };
enum { UET_SES_WRITE = 1, UET_SES_SOM = 0x01, UET_SES_EOM = 0x02, UET_SES_HD = 0x04,
       UET_SES_REL = 0x08 };
enum { UET_CC_NSCC = 0, UET_CC_CREDIT = 1 };

static inline void uet_store_prologue(uint8_t *p, unsigned type, unsigned next, unsigned flags)
{
    be16_store(p, (uint16_t)(type << 11 | next << 7 | flags));
}

/* The sequence number nearest to `near` whose low 32 bits are `psn`; a huge one if it would be below
 * zero. */
static inline uint64_t uet_unwrap(uint64_t near, uint32_t psn)
{
    return near + (uint64_t)(int64_t)(int32_t)(psn - (uint32_t)near);
}
