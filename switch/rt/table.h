/* Match-action tables: entries, and the four ways to find one.
 *
 * Entries of a table lie in one array with a fixed stride. An entry holds what a packet needs, in
 * this order (the table's description says where, 0 meaning that it has none):
 *
 *   action, position | key words | order | counter | last hit | meter | action parameters
 *
 * What only the control plane needs (mask, time-out, ...) lies in a second array. A key is packed
 * into 64-bit words, so comparing and hashing never see fields.
 *
 *   exact     one hash index over the key words; for packets an array with a place for every
 *             key, as far as the highest, where the key has no more than SW_DIRECT_BITS
 *   lpm       a trie (trie.h) where the key is one field of up to 64 bits; otherwise as ternary,
 *             with the prefix length as priority
 *   ternary   tuple-space search: one hash index per distinct mask, tuples sorted by the best
 *             entry they hold, so that a search stops once nothing better can follow. Where there
 *             are nearly as many masks as entries, a plain scan of a sorted array is faster, and
 *             is used for up to SCAN_MAX entries.
 *   range     as ternary, range fields masked out, and compared once the rest matches
 *
 * `order` makes priorities comparable at one stroke: larger is better, and of two entries with the
 * same priority the one inserted first wins.
 */
#pragma once

#include "index.h"
#include "prog.h"
#include "trie.h"

#define SW_DIRECT_BITS 16    /* SMALL_KEY_BITS in layout.py */
#define SW_GROUP 0x80000000u /* in an indirect entry's action: a group's position, not a member's */

struct sw_entry {
    uint32_t action; /* the program's number; in an indirect table a position in the profile */
    uint32_t position;
    uint64_t key[];
};

struct sw_entry_info { /* what the control plane needs besides */
    ns_t idle_timeout;
    int32_t priority;
    uint32_t prefix; /* lpm: length */
    struct sw_tuple *tuple; /* ternary */
    uint32_t next;   /* ternary: next in the chain; free: next free */
    bool is_used, is_const, told_idle;
};

struct sw_tuple {
    uint64_t *mask; /* key_words */
    uint64_t best;  /* no entry's order is larger */
    uint32_t count;
    struct sw_index index; /* masked key to the head of a chain, best first */
};

#define SCAN_MAX 2048
#define RENUMBER_AFTER 65536 /* insertions, and eight more for each entry: so it costs next to nothing */

struct sw_table {
    /* A lookup needs one cache line of this, or two. */
    _Alignas(64) uint8_t *entries;
    struct sw_entry *fallback; /* the default entry; its action may be SW_NO_ACTION */
    uint32_t *direct;          /* exact, small keys: by key the position plus one; 0: none */
    uint32_t n_direct, used;
    struct sw_index index;     /* exact: by key; lpm: by key and length, for the control plane */
    struct trie trie;          /* lpm */
    uint64_t *scan;            /* ternary: (order, position, mask, key) per entry, best first */
    uint64_t *highs;           /* range: the high ends, key_words per entry */
    bool use_scan, use_trie;

    const struct sw_table_desc *desc;
    struct sw_entry_info *info;
    struct sw_tuple **tuples;  /* ternary: best first */
    uint64_t *range_masks;     /* range: ones where a range field is, else NULL; key_words */
    uint32_t n_tuples, room_tuples, room_scan;
    uint32_t room, free;
    uint32_t sequence; /* of insertions */
    uint32_t n_timeouts; /* entries with an idle time */
};

static inline struct sw_entry *table_entry(const struct sw_table *t, uint32_t position, uint32_t stride)
{
    return (struct sw_entry *)(t->entries + (size_t)position * stride);
}

static inline bool key_equal(const uint64_t *a, const uint64_t *b, unsigned words)
{
    uint64_t differs = 0;
    for (unsigned i = 0; i < words; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

/* The lookups. `words` and `stride` are constants in generated code and shape the code around
 * them. Each returns an entry, or NULL for a miss. */

SW_INLINE struct sw_entry *table_find_exact(const struct sw_table *t, const uint64_t *key,
                                             unsigned words, uint32_t stride)
{
    if (SW_UNLIKELY(!t->index.slots))
        return NULL;
    uint64_t hash = sw_mix(key, words), slot;
    for (uint32_t i = index_home(&t->index, hash); (slot = t->index.slots[i]) != 0;
         i = (i + 1) & t->index.mask)
        if (index_maybe(slot, hash)) {
            struct sw_entry *e = table_entry(t, index_position(slot), stride);
            if (SW_LIKELY(key_equal(e->key, key, words)))
                return e;
        }
    return NULL;
}

/* The same where the whole key has no more than SW_DIRECT_BITS. */
SW_INLINE struct sw_entry *table_find_direct(const struct sw_table *t, uint64_t key,
                                             uint32_t stride)
{
    uint32_t found = SW_LIKELY(key < t->n_direct) ? t->direct[key] : 0;
    return found ? table_entry(t, found - 1, stride) : NULL;
}

/* `key` is left-aligned in its word; `number` is the table's. The packet may know the answer. */
static inline struct sw_entry *table_find_lpm(const struct sw_table *t, const struct pkt *p,
                                              uint32_t number, uint64_t key, uint32_t stride)
{
    bool is_known = p->hint_table == number + 1 && p->hint_key == key;
    uint32_t position = is_known ? p->hint_entry : trie_find(&t->trie, key);
    return position == TRIE_NONE ? NULL : table_entry(t, position, stride);
}

/* Bring what `n` keys (one behind the other) will find into the cache; n is at most SW_GATHER.
 * Packets are told what a trie answers, as walking it twice would cost more than is won. */
void table_warm_exact(const struct sw_table *t, const uint64_t *keys, unsigned words, unsigned n);
void table_warm_lpm(const struct sw_table *t, const uint64_t *keys, struct pkt *const *packets,
                    unsigned n, uint32_t number);

struct sw_entry *table_find_tuple(const struct sw_table *t, const uint64_t *key);

static inline struct sw_entry *table_find_ternary(const struct sw_table *t, const uint64_t *key,
                                                  unsigned words, uint32_t stride)
{
    if (!t->used)
        return NULL;
    if (!t->use_scan || t->highs)
        return table_find_tuple(t, key);
    const uint64_t *row = t->scan;
    for (uint32_t i = 0; i < t->used; i++, row += 2 + 2 * words) {
        uint64_t differs = 0;
        for (unsigned w = 0; w < words; w++)
            differs |= (key[w] & row[2 + w]) ^ row[2 + words + w];
        if (!differs)
            return table_entry(t, (uint32_t)row[1], stride);
    }
    return NULL;
}

/* The control plane's side; errors are of ctl.h. */

bool table_init(struct sw_table *t, const struct sw_table_desc *desc);
void table_free(struct sw_table *t);

struct sw_match_spec { /* what an entry matches, packed by the caller */
    const uint64_t *key;
    const uint64_t *mask; /* ternary: the mask; range fields: the high end; unused for exact */
    uint32_t prefix;      /* lpm in a table of its kind: the length */
    int32_t priority;
};

#define TABLE_NONE UINT32_MAX
#define TABLE_KEY_WORDS_MAX 64 /* 4,096 bits: wider keys are refused with the program */

/* The entry with exactly this match part, or TABLE_NONE. */
uint32_t table_find(const struct sw_table *t, const struct sw_match_spec *spec);
/* A new entry, its data zero and matching nothing before the caller is done: the caller is the
 * data plane's own thread. TABLE_NONE when memory is out. */
uint32_t table_insert(struct sw_table *t, const struct sw_match_spec *spec, ns_t now);
void table_remove(struct sw_table *t, uint32_t position);
/* Which insertion of its table an entry was, where that decides between equal priorities. */
uint32_t table_sequence(const struct sw_table *t, uint32_t position);

/* Number entries anew, in the same order, once many have come and gone: 2^32 insertions later the
 * newest would come first. Not while sequence numbers are kept elsewhere. */
void table_renumber(struct sw_table *t);

static inline struct sw_entry *table_at(const struct sw_table *t, uint32_t position)
{
    return table_entry(t, position, t->desc->stride);
}

static inline void *entry_at(const struct sw_entry *e, uint32_t offset)
{
    return (uint8_t *)(uintptr_t)e + offset;
}
