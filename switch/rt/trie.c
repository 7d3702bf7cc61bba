/* Changing the trie.
 *
 * A node is changed by spelling it out as 64 slots, changing those, and packing it again; runs of
 * children and leaves move to a run of the new length. `starts` has a bit for slot 0 if that is a
 * leaf, and for each leaf slot that differs from the leaf before it, inner slots in between
 * notwithstanding: a leaf run goes on behind an inner slot.
 */
#include "trie.h"

#include <stdlib.h>

#include "huge_array.h"

#define SLOTS 64
#define FREE_END UINT32_MAX

struct spelled {
    uint64_t inner;
    struct trie_node child[SLOTS];
    uint32_t leaf[SLOTS];
};

/* Items of a pool's array are linked through their first four bytes while free. */
static uint32_t pool_take(struct trie_pool *pool, void **items, size_t size, unsigned run)
{
    uint32_t at = pool->free[run];
    if (at != FREE_END) {
        memcpy(&pool->free[run], (char *)*items + at * size, sizeof at);
        return at;
    }
    if (pool->used + run > pool->room) {
        uint32_t room = pool->room ? pool->room * 2 : 16;
        while (room < pool->used + run)
            room *= 2;
        void *grown = huge_array_grow(*items, pool->used * size, room * size);
        if (!grown)
            return FREE_END;
        *items = grown;
        pool->room = room;
    }
    at = pool->used;
    pool->used += run;
    return at;
}

static void pool_give(struct trie_pool *pool, void *items, size_t size, unsigned run, uint32_t at)
{
    if (!run)
        return;
    memcpy((char *)items + at * size, &pool->free[run], sizeof at);
    pool->free[run] = at;
}

static void pool_init(struct trie_pool *pool)
{
    pool->used = pool->room = 0;
    for (unsigned i = 0; i < SW_COUNT(pool->free); i++)
        pool->free[i] = FREE_END;
}

static unsigned bits(uint64_t word) { return (unsigned)__builtin_popcountll(word); }

static void spell(const struct trie *trie, const struct trie_node *node, struct spelled *out)
{
    const uint32_t *leaves = bits(node->starts) <= TRIE_INLINE ? node->leaf
                                                               : trie->leaves + node->leaf[0];
    uint32_t child = node->children, n = 0;
    out->inner = node->inner;
    for (unsigned i = 0; i < SLOTS; i++) {
        uint64_t bit = (uint64_t)1 << i;
        if (node->starts & bit)
            n++;
        if (node->inner & bit)
            out->child[i] = trie->nodes[child++];
        else
            out->leaf[i] = leaves[n - 1];
    }
}

/* A node's leaves may be inside it. */
static void give_leaves(struct trie *trie, const struct trie_node *node)
{
    unsigned n = bits(node->starts);
    if (n > TRIE_INLINE)
        pool_give(&trie->pools->leaves, trie->leaves, sizeof *trie->leaves, n, node->leaf[0]);
}

/* Pack slots into a node; its own runs are given back. False, nothing changed, if memory is out. */
static bool pack(struct trie *trie, const struct spelled *in, uint32_t at)
{
    struct trie_node node = {.inner = in->inner};
    uint32_t leaves[SLOTS], n_leaves = 0, n_children = bits(in->inner);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (in->inner >> i & 1)
            continue;
        if (!n_leaves || leaves[n_leaves - 1] != in->leaf[i]) {
            leaves[n_leaves++] = in->leaf[i];
            node.starts |= (uint64_t)1 << i;
        }
    }
    if (n_children) {
        node.children = pool_take(&trie->pools->nodes, (void **)&trie->nodes, sizeof node, n_children);
        if (node.children == FREE_END)
            return false;
    }
    if (n_leaves > TRIE_INLINE) {
        uint32_t run =
            pool_take(&trie->pools->leaves, (void **)&trie->leaves, sizeof *leaves, n_leaves);
        if (run == FREE_END) {
            pool_give(&trie->pools->nodes, trie->nodes, sizeof node, n_children, node.children);
            return false;
        }
        node.leaf[0] = run;
        memcpy(trie->leaves + run, leaves, n_leaves * sizeof *leaves);
    } else {
        memcpy(node.leaf, leaves, n_leaves * sizeof *leaves);
    }
    struct trie_node *old = trie->nodes + at;
    pool_give(&trie->pools->nodes, trie->nodes, sizeof node, bits(old->inner), old->children);
    give_leaves(trie, old);
    for (unsigned i = 0, child = node.children; i < SLOTS; i++)
        if (in->inner >> i & 1)
            trie->nodes[child++] = in->child[i];
    *old = node;
    return true;
}

static uint32_t child_at(const struct trie *trie, uint32_t at, unsigned slot)
{
    const struct trie_node *node = trie->nodes + at;
    return node->children + bits(node->inner & (((uint64_t)1 << slot) - 1));
}

bool trie_init(struct trie *trie)
{
    memset(trie, 0, sizeof *trie);
    trie->pools = malloc(sizeof *trie->pools);
    if (!trie->pools)
        return false;
    pool_init(&trie->pools->nodes);
    pool_init(&trie->pools->leaves);
    uint32_t root = pool_take(&trie->pools->nodes, (void **)&trie->nodes, sizeof *trie->nodes, 1);
    if (root == FREE_END)
        return false;
    trie->nodes[root] = (struct trie_node){.starts = 1, .leaf = {TRIE_NONE}};
    return true;
}

void trie_free(struct trie *trie)
{
    free(trie->nodes);
    free(trie->leaves);
    free(trie->pools);
    memset(trie, 0, sizeof *trie);
}

struct change { /* what is being done to the slots under a prefix */
    struct trie *trie;
    trie_length length_of; /* set when inserting */
    void *table;
    unsigned length;
    uint32_t entry, heir;
};

/* Does the leaf of a covered slot give way, and to what? */
static bool gives_way(const struct change *c, uint32_t leaf)
{
    if (c->length_of)
        return c->length_of(c->table, leaf) < (int)c->length;
    return leaf == c->entry;
}

/* Change the slots first to last of the node at `at`, and all below them. */
static bool cover(const struct change *c, uint32_t at, unsigned first, unsigned last)
{
    struct trie *trie = c->trie;
    bool ok = true, changed = false;
    for (unsigned i = first; i <= last; i++)
        if (trie->nodes[at].inner >> i & 1)
            ok &= cover(c, child_at(trie, at, i), 0, SLOTS - 1);
    struct spelled slots;
    spell(trie, trie->nodes + at, &slots);
    for (unsigned i = first; i <= last; i++)
        if (!(slots.inner >> i & 1) && gives_way(c, slots.leaf[i])) {
            slots.leaf[i] = c->length_of ? c->entry : c->heir;
            changed = true;
        }
    return (!changed || pack(trie, &slots, at)) && ok;
}

/* Turn the leaf in a slot into a node whose slots all lead to that leaf. */
static bool split(struct trie *trie, uint32_t at, unsigned slot)
{
    struct spelled slots;
    spell(trie, trie->nodes + at, &slots);
    slots.inner |= (uint64_t)1 << slot;
    slots.child[slot] = (struct trie_node){.starts = 1, .leaf = {slots.leaf[slot]}};
    return pack(trie, &slots, at);
}

/* Turn a child that says one thing only back into a leaf. Out of memory, it stays: harmless. */
static void merge(struct trie *trie, uint32_t at, unsigned slot)
{
    struct trie_node child = trie->nodes[child_at(trie, at, slot)];
    if (child.inner || child.starts != 1)
        return;
    struct spelled slots;
    spell(trie, trie->nodes + at, &slots);
    slots.inner &= ~((uint64_t)1 << slot);
    slots.leaf[slot] = child.leaf[0];
    pack(trie, &slots, at);
}

static bool change(const struct change *c, uint32_t at, uint64_t key, unsigned depth)
{
    unsigned slot = trie_slot(key, depth);
    if (c->length <= depth + TRIE_STRIDE) {
        unsigned spare = depth + TRIE_STRIDE - c->length;
        slot = slot >> spare << spare;
        return cover(c, at, slot, slot + (1u << spare) - 1);
    }
    struct trie *trie = c->trie;
    if (!(trie->nodes[at].inner >> slot & 1)) {
        if (!c->length_of || !split(trie, at, slot))
            return false;
    }
    bool ok = change(c, child_at(trie, at, slot), key, depth + TRIE_STRIDE);
    if (!c->length_of)
        merge(trie, at, slot);
    return ok;
}

/* Where the ways part: at the first node that does not lead to one other alone. */
static void find_first(struct trie *trie)
{
    const struct trie_node *node = trie->nodes;
    trie->common = trie->first = trie->depth = 0;
    for (; bits(node->inner) == 1; node = trie->nodes + node->children) {
        uint64_t slot = (unsigned)__builtin_ctzll(node->inner);
        trie->common |= slot << (64 - TRIE_STRIDE - trie->depth);
        trie->first = node->children;
        trie->depth += TRIE_STRIDE;
    }
}

bool trie_insert(struct trie *trie, uint64_t key, unsigned length, uint32_t entry,
                 trie_length length_of, void *table)
{
    struct change c = {trie, length_of, table, length, entry, TRIE_NONE};
    bool ok = change(&c, 0, key, 0);
    find_first(trie);
    return ok;
}

void trie_remove(struct trie *trie, uint64_t key, unsigned length, uint32_t entry, uint32_t heir)
{
    struct change c = {trie, NULL, NULL, length, entry, heir};
    change(&c, 0, key, 0);
    find_first(trie);
}

void trie_warm(const struct trie *trie, const uint64_t *keys, unsigned n, uint32_t *entries)
{
    const struct trie_node *at[TRIE_TOGETHER];
    const uint32_t *leaf[TRIE_TOGETHER];
    uint32_t active = n < TRIE_TOGETHER ? (1u << n) - 1 : UINT32_MAX;
    for (unsigned i = 0; i < n; i++)
        at[i] = trie->nodes;
    for (unsigned depth = 0; active; depth += TRIE_STRIDE)
        for (uint32_t left = active; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            const struct trie_node *node = at[i];
            uint64_t bit = (uint64_t)1 << trie_slot(keys[i], depth);
            if (node->inner & bit) {
                at[i] = trie->nodes + node->children + bits(node->inner & (bit - 1));
                __builtin_prefetch(at[i]);
                continue;
            }
            unsigned place = bits(node->starts & (bit | (bit - 1))) - 1;
            bool is_inside = bits(node->starts) <= TRIE_INLINE;
            leaf[i] = is_inside ? &node->leaf[place] : &trie->leaves[node->leaf[0] + place];
            __builtin_prefetch(leaf[i]);
            active &= ~(1u << i);
        }
    for (unsigned i = 0; i < n; i++)
        entries[i] = *leaf[i];
}
