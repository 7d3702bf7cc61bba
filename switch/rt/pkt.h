/* A packet: what the switch knows about it, its parsed headers, its bytes; one block of memory.
 *
 *   struct pkt | phv (the program's struct) | headroom | the frame as received
 *
 * or, while it waits in a long queue (waiting.h), less of it.
 *
 * Parsing copies header fields into the phv and leaves the frame as it is, so a clone or a
 * resubmission finds the original bytes. `data` and `len` are the part no header covers; deparsing
 * writes the headers in front of it, into parsed bytes and headroom.
 *
 * Blocks come from a pool (blocks.h), little larger than they have to be: a queue is as large as what
 * is in it. A pool belongs to one thread; whoever holds a packet owns it.
 */
#pragma once

#include "blocks.h"
#include "invariant.h"

enum pkt_type { /* standard_metadata.instance_type, as BMv2 numbers them */
    PKT_NORMAL = 0,
    PKT_INGRESS_CLONE = 1,
    PKT_EGRESS_CLONE = 2,
    PKT_COALESCED = 3,
    PKT_RECIRCULATED = 4,
    PKT_REPLICA = 5,
    PKT_RESUBMITTED = 6,
    PKT_TIMER = 7, /* ours: made by the switch itself, because a timer rang (timer.c) */
};

#define PKT_CLONE_REQUESTED 0x80000000u /* in clone_session: session 0 is a session too */
#define PKT_WHOLE UINT32_MAX            /* in truncate_len: do not */

struct pkt {
    struct pkt *next; /* in a queue or the pool */
    uint8_t *data;    /* bytes that no header covers */
    uint32_t len;
    uint32_t frame_len;

    uint32_t absent; /* from here on all is zero in a new packet; bytes at the frame's end that only
                        count: a simulator's payload */
    uint32_t ingress_len; /* what counters and meters count */
    uint32_t length;      /* BMv2's running packet length: follows setValid and setInvalid */
    uint32_t truncate_len;
    uint16_t ingress_port;
    uint16_t egress_port;
    uint8_t type;
    uint8_t priority; /* its queue */
    uint8_t class;    /* pool class */
    uint8_t book;     /* what it came as: books.h */
    bool is_packed;
    bool has_rid;
    uint16_t rid;
    uint32_t queued_len; /* what the queue counted for it */
    uint32_t enq_depth;
    ns_t ingress_ns;
    ns_t enq_ns;

    /* What is packed goes up to here. */
    _Alignas(16) uint8_t *frame; /* the frame as received */
    /* What a lookup made ahead found: by which key, which entry, in which table (number + 1). */
    uint32_t hint_entry, hint_table;
    uint64_t hint_key;
    uint32_t parser_error;
    bool checksum_error; /* found by the program's verification */
    bool exited;         /* the program said exit */
    uint32_t link_number; /* that its link gave it (llr.h) */

    /* What the program asked for; zero is nothing. */
    uint32_t egress_spec;
    uint32_t mcast_group;
    uint32_t clone_session;
    uint32_t clone_list;
    uint32_t resubmit_list;
    uint32_t recirculate_list;
    uint32_t digest_list;

    _Alignas(16) uint8_t phv[];
};

#define PKT_STEP_BITS 8 /* of 256 bytes */
#define PKT_PACKED_USUAL 320u /* bytes of one that is packed (waiting.h) */

struct pkt_pool {
    struct blocks blocks, packed;
};

static inline void pkt_pool_init(struct pkt_pool *pool)
{
    blocks_init(&pool->blocks, PKT_STEP_BITS);
    blocks_init(&pool->packed, BLOCKS_LINE_BITS);
}

/* Every packet must be back. */
static inline void pkt_pool_free(struct pkt_pool *pool)
{
    blocks_free(&pool->blocks);
    blocks_free(&pool->packed);
}

/* `len` bytes are free at frame, with `headroom` before them; fields beyond the first few are zero.
 * NULL when memory is out or the frame is too large. */
static inline struct pkt *pkt_alloc(struct pkt_pool *pool, uint32_t phv_size, uint32_t headroom,
                                    uint32_t len)
{
    uint8_t class;
    struct pkt *p =
        blocks_take(&pool->blocks, sizeof(struct pkt) + phv_size + headroom + len, &class);
    if (SW_UNLIKELY(!p))
        return NULL;
    const size_t set_by_hand = offsetof(struct pkt, absent);
    sw_wipe((uint8_t *)p + set_by_hand, sizeof *p - set_by_hand);
    p->class = class;
    p->frame = p->data = p->phv + phv_size + headroom;
    p->frame_len = p->len = len;
    p->truncate_len = PKT_WHOLE;
    return p;
}

static inline void pkt_release(struct pkt_pool *pool, struct pkt *p)
{
    blocks_give(p->is_packed ? &pool->packed : &pool->blocks, p, p->class);
}

/* Soon it is looked at: what waited for long is in no cache. */
static inline void pkt_fetch(const struct pkt *p)
{
    lines_fetch(p, PKT_PACKED_USUAL);
}

/* Cut a deparsed packet to what the program allows. */
static inline void pkt_truncate(struct pkt *p)
{
    if (SW_LIKELY(p->truncate_len == PKT_WHOLE))
        return;
    if (p->len >= p->truncate_len) {
        p->len = p->truncate_len;
        p->absent = 0;
    } else if (p->absent > p->truncate_len - p->len) {
        p->absent = p->truncate_len - p->len;
    }
}
