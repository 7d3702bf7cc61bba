/* MRC as bytes: RoCEv2's headers with opcodes of their own, after OCP MRC 1.0. Nothing here has state.
 *
 *   | Ethernet | IP | UDP 4791 | BTH | METH | (TSETH) | RETH | (ImmDt) | payload, pad | ICRC |   a write
 *   | Ethernet | IP | UDP 4791 | BTH | SETH and CC state, NETH, PETH, ERTH or EETH | ICRC |   the others
 *
 *   BTH    as RoCEv2's, but for its ninth byte: acknowledge (1), reserved (1), sent again (1), with a
 *          time stamp (1), reserved (4)
 *   METH   requests that take a receive (16), messages (16), both counted by the sender
 *   TSETH  if the BTH says so: time stamp (16), its unit (1: of a microsecond, not 128 ns), reserved (11),
 *          kind (4): 1, a time stamp
 *   RETH   in every packet: its own address (64), key (32), length of the message (32)
 *   SETH   reserved (9) | m (2) | reserved (3) | answers a probe (1) | reserved (1);
 *          PSN it answers less CACK, or the probe's number (16); entropy (32); SPDCID (16), DPDCID (16);
 *          reserved (8), CACK PSN (24)
 *   CC     type (4) | flags (4); MPR (8); offset of the map (16); map (64, bit i is CACK + offset + i);
 *          time stamp of what it answers (16); packets out of order (16); penalty (8); bytes received (24, of 256)
 *   NETH   two bytes as SETH's; reason (8); vendor (8); entropy (32); SPDCID, DPDCID; reserved (8), PSN (24);
 *          CC type (4): 2, flags (4), reserved (8), time stamp of what was refused (16)
 *   PETH   reserved (24); vendor (8); probe's number (16); reserved (16); SPDCID, DPDCID; as TSETH (32)
 *   ERTH   reserved (14), operation (2), reserved (8), vendor (8); ports that have a link (32, bit i is port
 *          i, counted from 1); reserved (32); as TSETH (32)
 *   EETH   reserved (12), operation (2), reserved (2 and 208); time stamp of the request (16), reserved (48)
 *
 * Endpoint requests and responses (EP_REQ, EP_RSP) are of adapters, not of queue pairs: they are sent to
 * number 2, and a BTH's PSN is the request's number (16), which the response repeats.
 *
 * From the text are opcodes, the order and the places of these fields, their widths, what m says, number
 * 2, and that code points are UET's. Where it is silent this is ours: m in a NETH, which has only reserved bits
 * there; an entropy is UDP's source port and the flow label's low 16
 * bits, and in IPv4, which has no flow label, 0; a RETH's length is the whole message's; both counts of METH are of
 * messages, each of which takes a receive for its immediate; an answer repeats the "sent again" of what it
 * answers; which value of a unit's bit means which; that requests of one adapter are numbered in their order.
 * Nothing of ours sends ACKs (AETH).
 */
#pragma once

#include "units.h"
#include "wire.h"

enum mrc_opcode {
    MRC_WRITE_FIRST = 0xC6,
    MRC_WRITE_MIDDLE,
    MRC_WRITE_LAST,
    MRC_WRITE_LAST_IMM,
    MRC_WRITE_ONLY,
    MRC_WRITE_ONLY_IMM,
    MRC_EP_REQ = 0xD8,
    MRC_EP_RSP = 0xD9,
    MRC_SACK = 0xDC,
    MRC_NACK = 0xDD,
    MRC_PROBE_REQ = 0xDE,
};

enum mrc_operation { MRC_PORT_STATUS, MRC_EV_PROBE };

enum {
    MRC_METH = 4,
    MRC_TSETH = 4,
    MRC_SETH = 36, /* the CC state included */
    MRC_NETH = 20,
    MRC_PETH = 16,
    MRC_ERTH = 16,
    MRC_EETH = 36,
    MRC_NODE = 2, /* in place of a queue pair's number: the adapter itself */
    MRC_STAMP_NS = 128,
    MRC_STAMP_KIND = 1,
    MRC_CC_NACK = 2,
};

/* A time as frames have it. */
static inline uint16_t mrc_stamp(ns_t now) { return (uint16_t)(now / MRC_STAMP_NS); }

enum { MRC_ACK_REQUEST = 0x80, MRC_RETX = 0x20, MRC_STAMPED = 0x10 }; /* of a BTH's ninth byte */
enum { MRC_SKIP_ONCE = 1 << 5, MRC_ALWAYS_SKIP = 2 << 5, MRC_M = 3 << 5, MRC_PROBE_ANSWER = 0x02 };
