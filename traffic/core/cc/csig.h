/* CSIG's signals as senders read them: what the worst hop of a packet's way had to say.
 *
 *   compact, 4 bytes   | EtherType (16) | type (3) d (1) signal (5) locator (7) |
 *   wide, 8 bytes      | EtherType (16) | locator (16) | type (4) signal (20) d (1) reserved (7) |
 *
 * Types, units and how values are quantised: p4src/csig.p4 and params/csig.py.
 */
#pragma once

#include "../units.h"

enum { CSIG_COMPACT = 4, CSIG_WIDE = 8 }; /* bytes of a tag; 0: there is none */
enum { ETHERTYPE_CSIG = 0x9900, ETHERTYPE_CSIG_WIDE = 0x9901 };

enum csig_type {
    CSIG_ABW,       /* Mb/s that were free */
    CSIG_ABW_SHARE, /* the same in 1/65536 of the link */
    CSIG_DELAY,     /* ns in the switch */
    CSIG_QUEUE,     /* ns that the queue takes */
    CSIG_TYPES,
};

struct csig {
    uint8_t type;     /* enum csig_type, or one that nobody here knows */
    bool was_cut;     /* hops did not go on with it */
    uint16_t locator; /* where the value is from; 0: no hop had a worse one than the sender's */
    uint32_t value;   /* the least that its bucket or step holds */
};

/* The size of the tag that an EtherType is of; 0 if it is of none. */
uint32_t csig_bytes(uint16_t ether_type);

/* Write a tag of a size that asks for a signal. */
void csig_ask(uint8_t *at, uint32_t bytes, enum csig_type type);

/* Read one. */
struct csig csig_read(const uint8_t *at, uint32_t bytes);
