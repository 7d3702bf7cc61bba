/* MRC as bytes: RoCEv2's headers with opcodes of their own, after OCP MRC 1.0. Nothing here has state.
 *
 *   | Ethernet | IP | UDP 4791 | BTH | METH | RETH | (ImmDt) | payload, pad | ICRC |      a write
 *   | Ethernet | IP | UDP 4791 | BTH | SETH and CC state, NETH or PETH      | ICRC |      what answers, asks
 *
 *   BTH    as RoCEv2's, but for its ninth byte: acknowledge (1), reserved (1), sent again (1), with a
 *          time stamp (1), reserved (4)
 *   METH   requests that take a receive (16), messages (16), both counted by the sender
 *   RETH   in every packet: its own address (64), key (32), length of the message (32)
 *   SETH   type (5) | next header (4) | m (2) | reserved (3) | answers a probe (1) | reserved (1);
 *          PSN it answers less CACK, or the probe's number (16); entropy (32); SPDCID (16), DPDCID (16);
 *          reserved (8), CACK PSN (24)
 *   CC     type (4) | flags (4); MPR (8); offset of the map (16); map (64, bit i is CACK + offset + i);
 *          time stamp (16); packets out of order (16); penalty (8); bytes received (24, of 256)
 *   NETH   prologue as SETH's; reason (8); vendor (8); entropy (32); SPDCID, DPDCID; reserved (8), PSN (24);
 *          CC (8), reserved (8), time stamp (16)
 *   PETH   prologue; reserved (8); vendor (8); probe's number (16); reserved (16); SPDCID, DPDCID; time
 *          stamp (16), kind (16)
 *
 * From the text are opcodes, the order and the places of these fields, their widths, what m says, the
 * queue pair that probes of ways are sent to, and that code points are UET's. Where it is silent this is
 * ours: the types in prologues are UET's; an entropy is UDP's source port and the flow label's low 16
 * bits, and in IPv4, which has no flow label, 0; a RETH's length is the whole message's; both counts of METH are of
 * messages, each of which takes a receive for its immediate; an answer repeats the "sent again" of what it
 * answers. Nothing of ours sends time stamps, endpoint requests (EP_REQ, EP_RSP) or ACKs (AETH).
 */
#ifndef EP_MRC_WIRE_H
#define EP_MRC_WIRE_H

#include "wire.h"

enum mrc_opcode {
    MRC_WRITE_FIRST = 0xC6,
    MRC_WRITE_MIDDLE,
    MRC_WRITE_LAST,
    MRC_WRITE_LAST_IMM,
    MRC_WRITE_ONLY,
    MRC_WRITE_ONLY_IMM,
    MRC_SACK = 0xDC,
    MRC_NACK = 0xDD,
    MRC_PROBE = 0xDE,
};

enum {
    MRC_METH = 4,
    MRC_SETH = 36, /* the CC state included */
    MRC_NETH = 20,
    MRC_PETH = 16,
    MRC_PROBED = 2, /* the queue pair that probes of ways are for */
};

enum { MRC_ACK_REQUEST = 0x80, MRC_RETX = 0x20 };                     /* of a BTH's ninth byte */
enum { MRC_SKIP_ONCE = 1 << 5, MRC_ALWAYS_SKIP = 2 << 5, MRC_M = 3 << 5, MRC_PROBE_ANSWER = 0x02 };

#endif
