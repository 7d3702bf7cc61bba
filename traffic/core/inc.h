/* Collectives in the network, at a host: its part of what switches add up (p4src/inc.p4 is theirs).
 *
 *   0      1       2     4       8       10       12         13         16
 *   | kind | flags | job | chunk | owner | member | exponent | reserved | 256 numbers, or none |
 *
 * A job is a group of hosts whose collectives go up one tree of switches. Its data is cut into chunks,
 * numbered from 1 on over all of its collectives. A host sends its part of chunk c when it has the
 * result of c - slots; parts and results are never acknowledged: a part is sent again when its
 * result is due for long, and whoever has the result then gives it. While none comes at all, only one is
 * sent at a time, twice as long after the last each time: somebody else is slow, or something is broken.
 *
 * A switch that knows nothing of the job sends a part where its IP header says: back to the host. Then,
 * or when nothing has come for too long, the host gives up the tree for good. It sends its parts to the
 * job's first member, which adds up what all send, as ATP's parameter server does (Lao et al., NSDI 2021),
 * and asks who has sent it none, whether that one thinks the tree broken or is through already; asked,
 * one gives up the tree as well, and gives its part once more.
 *
 * What the numbers are follows from where they stand, so that every one of a result is checked
 * (inc_numbers.h). Sums of floats need an exponent that all agree on, for which a collective has more
 * chunks: as many as slots, or as it has with data if these are fewer, go ahead without data. The part
 * of each chunk tells the exponent of the chunk that many later, and its result the largest of them.
 *
 * Not done here: hosts with several ports use the first.
 */
#pragma once

#include "units.h"
#include "wire.h"

struct ep;
struct inc_job;

enum {
    INC_PORT = 0xC105,
    INC_HEADER = 16,
    INC_LANES = 256,
    INC_VECTOR = 4 * INC_LANES,
    INC_HEADERS_MAX = WIRE_ETHERNET + WIRE_IPV6 + WIRE_UDP,
    INC_SLOTS_MAX = 1024,
    INC_EVERYBODY = 0xFFFF, /* owners of a result */
    INC_NOBODY = 0xFFFE,
    INC_MEMBERS_MAX = 0xFFF0,
};

enum inc_kind {
    INC_PART = 0x11, /* for switches, */
    INC_RESULT = 0x12,
    INC_HELP = 0x13, /* and between hosts: a part for the first member, */
    INC_ASK = 0x14,  /* which asks for one, */
    INC_GIVEN = 0x15 /* and gives the result */
};

enum inc_op { INC_ALL_REDUCE, INC_REDUCE_SCATTER, INC_ALL_GATHER, INC_BROADCAST, INC_BARRIER };

struct inc_job_config {
    uint16_t number, member, members;
    uint8_t priority;
    bool floats;    /* are added up, and not integers */
    uint32_t slots; /* a power of two */
    ns_t rto;       /* how long a result may be due at first, */
    uint32_t tries; /* and how often in a row nothing at all comes before it is given up */
    uint8_t headers[INC_HEADERS_MAX]; /* Ethernet to UDP, from the host to itself */
    uint32_t header_bytes;
};

/* How frames reach a member of a job directly: of the first all others are told, it of all. */
struct inc_peer_config {
    uint16_t job, member;
    uint8_t headers[INC_HEADERS_MAX];
    uint32_t header_bytes;
};

/* One collective; the first group is the caller's, who leaves the rest alone. */
struct inc_message {
    uint32_t id, size; /* bytes as nccl-tests counts them: the larger of a host's input and output */
    struct inc_job *job;
    struct inc_message *next;
    uint32_t first;   /* its first chunk */
    uint32_t sent;    /* chunks that went, */
    uint32_t missing; /* and whose result is not here */
    uint16_t root;    /* of a broadcast */
    bool done;
    uint8_t op;
};

/* How many chunks with data it has, the same at all members. */
uint32_t inc_chunks(enum inc_op op, uint32_t size, uint32_t members);

/* NULL and `*problem` in words if it cannot be. The endpoint's. */
struct inc_job *ep_add_job(struct ep *ep, const struct inc_job_config *config, const char **problem);
/* NULL, or what is wrong. */
const char *ep_add_peer(struct ep *ep, const struct inc_peer_config *config);
struct inc_job *ep_find_job(const struct ep *ep, uint32_t number);
void inc_post(struct ep *ep, struct inc_message *message, ns_t now);

/* For the rest of the endpoint. */
void inc_free(struct ep *ep);
bool inc_is(const struct ep *ep, const uint8_t *frame, uint32_t stored);
void inc_take(struct ep *ep, const uint8_t *frame, uint32_t stored, ns_t now);

/* What the scheduler asks of an endpoint that has jobs. */
struct inc_ops {
    void (*time_out)(struct ep *ep, ns_t now);
    bool (*can_send)(struct ep *ep, ns_t now);
    bool (*send)(struct ep *ep, ns_t now); /* false: the host took nothing */
    ns_t (*due)(const struct ep *ep, ns_t now);
};
