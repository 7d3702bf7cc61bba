/* Longest prefix match on keys of up to 64 bits: a trie of 64-way nodes that fits in the cache.
 *
 * A node looks at six bits of the key. Bit i of `inner` says that slot i leads to another node;
 * otherwise it ends in a leaf, the position of the best entry for everything below. A node's
 * children lie side by side, as do its leaves, and neighbouring slots with the same leaf share
 * one: bit i of `starts` says that slot i begins a new leaf. So finding a child or a leaf is
 * counting bits, and a node takes 32 bytes, half a cache line, with up to three leaves inside it.
 * (The idea is Poptrie's, by Asai and Ohara, 2015.) A table of 100,000 routes takes a few
 * megabytes; one of ten takes a few hundred bytes.
 *
 * Leaves are pushed down: each slot knows its best entry, so looking up never walks back. To
 * change a prefix is to rewrite the slots it covers; who covered them before is told by
 * `trie_length`, which the table provides.
 *
 * All addresses of a fabric begin alike, so the upper nodes often lead to one other each. Keys that
 * begin as all do that lead anywhere start where the ways part.
 */
#pragma once

#include "base.h"

#define TRIE_STRIDE 6
#define TRIE_INLINE 3
#define TRIE_NONE UINT32_MAX /* no entry */

struct trie_node {
    uint64_t inner;
    uint64_t starts;
    uint32_t children;          /* position of the first in nodes */
    uint32_t leaf[TRIE_INLINE]; /* the leaves; or, if they are more, the first one's position */
};

struct trie_pool { /* runs of equal-sized items, by length of run */
    uint32_t used, room;
    uint32_t free[65];
};

struct trie {
    struct trie_node *nodes; /* nodes[0] is the root */
    uint32_t *leaves;
    uint64_t common;       /* how keys begin that start at `first`, */
    uint32_t first, depth; /* which looks at them from there on */
    struct trie_pools {
        struct trie_pool nodes, leaves;
    } *pools; /* for changes only */
};

bool trie_init(struct trie *trie); /* everything leads to TRIE_NONE */
void trie_free(struct trie *trie);

/* How long the prefix of an entry is; -1 for TRIE_NONE. */
typedef int (*trie_length)(void *table, uint32_t entry);

/* Let `key` (left-aligned) with `length` bits lead to `entry` wherever nothing longer rules.
 * False when memory is out: the trie then answers as before for some of the range, and as asked
 * for the rest; the caller undoes with trie_remove. */
bool trie_insert(struct trie *trie, uint64_t key, unsigned length, uint32_t entry,
                 trie_length length_of, void *table);

/* Where `entry` rules under `key`, let `heir` (the next shorter prefix) rule. */
void trie_remove(struct trie *trie, uint64_t key, unsigned length, uint32_t entry, uint32_t heir);

static inline unsigned trie_slot(uint64_t key, unsigned depth)
{
    /* The last node of a 64-bit key sees four bits of key and two of nothing. */
    return (unsigned)(key << depth >> (64 - TRIE_STRIDE));
}

/* Bring the way to each of `n` keys into the cache, level by level for all of them at once;
 * entries[i] is what trie_find will answer. At most TRIE_TOGETHER keys. */
#define TRIE_TOGETHER 32
void trie_warm(const struct trie *trie, const uint64_t *keys, unsigned n, uint32_t *entries);

static inline uint32_t trie_find(const struct trie *trie, uint64_t key)
{
    bool is_common = (key & ~(UINT64_MAX >> trie->depth)) == trie->common;
    const struct trie_node *node = trie->nodes + (is_common ? trie->first : 0);
    for (unsigned depth = is_common ? trie->depth : 0;; depth += TRIE_STRIDE) {
        uint64_t bit = (uint64_t)1 << trie_slot(key, depth);
        if (!(node->inner & bit)) {
            unsigned leaf = (unsigned)__builtin_popcountll(node->starts & (bit | (bit - 1))) - 1;
            if (__builtin_popcountll(node->starts) <= TRIE_INLINE)
                return node->leaf[leaf];
            return trie->leaves[node->leaf[0] + leaf];
        }
        node = trie->nodes + node->children + __builtin_popcountll(node->inner & (bit - 1));
    }
}
