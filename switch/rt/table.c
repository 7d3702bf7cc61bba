/* Tables: inserting, removing, and the searches too long to inline. */
#include "table.h"

#include <stdlib.h>

#include "huge_array.h"


static void set_ones(uint64_t *words, unsigned shift, unsigned width)
{
    for (unsigned bit = shift; bit < shift + width; bit++)
        words[bit / 64] |= (uint64_t)1 << bit % 64;
}

bool table_init(struct sw_table *t, const struct sw_table_desc *desc)
{
    memset(t, 0, sizeof *t);
    t->desc = desc;
    t->free = TABLE_NONE;
    t->use_trie = desc->match == SW_LPM && desc->n_keys == 1 && desc->keys[0].width <= 64;
    t->fallback = calloc(1, desc->stride);
    if (!t->fallback || (t->use_trie && !trie_init(&t->trie)))
        return false;
    if (desc->match == SW_RANGE) {
        t->range_masks = calloc(desc->key_words ? desc->key_words : 1, sizeof *t->range_masks);
        if (!t->range_masks)
            return false;
        for (uint32_t i = 0; i < desc->n_keys; i++)
            if (desc->keys[i].match == SW_RANGE)
                set_ones(t->range_masks, desc->keys[i].shift, desc->keys[i].width);
    }
    return true;
}

static void tuple_free(struct sw_tuple *tuple)
{
    index_free(&tuple->index);
    free(tuple->mask);
    free(tuple);
}

void table_free(struct sw_table *t)
{
    for (uint32_t i = 0; i < t->n_tuples; i++)
        tuple_free(t->tuples[i]);
    index_free(&t->index);
    trie_free(&t->trie);
    free(t->tuples);
    free(t->direct);
    free(t->scan);
    free(t->range_masks);
    free(t->highs);
    free(t->entries);
    free(t->info);
    free(t->fallback);
    memset(t, 0, sizeof *t);
}

/* Positions */

static bool grow(struct sw_table *t)
{
    const struct sw_table_desc *desc = t->desc;
    uint32_t room = t->room ? t->room * 2 : 8;
    uint8_t *entries = huge_array_grow(t->entries, (size_t)t->room * desc->stride,
                                (size_t)room * desc->stride);
    if (!entries)
        return false;
    t->entries = entries;
    struct sw_entry_info *info = realloc(t->info, room * sizeof *info);
    if (!info)
        return false;
    t->info = info;
    if (t->range_masks) {
        uint64_t *highs = realloc(t->highs, (size_t)room * desc->key_words * sizeof *highs);
        if (!highs)
            return false;
        t->highs = highs;
    }
    for (uint32_t i = room; i-- > t->room;) {
        t->info[i] = (struct sw_entry_info){.next = t->free};
        t->free = i;
    }
    t->room = room;
    return true;
}

static uint32_t take(struct sw_table *t)
{
    if (t->free == TABLE_NONE && !grow(t))
        return TABLE_NONE;
    uint32_t position = t->free;
    t->free = t->info[position].next;
    t->info[position] = (struct sw_entry_info){.is_used = true, .next = TABLE_NONE};
    struct sw_entry *e = table_at(t, position);
    memset(e, 0, t->desc->stride);
    e->position = position;
    t->used++;
    return position;
}

static void give(struct sw_table *t, uint32_t position)
{
    t->info[position] = (struct sw_entry_info){.next = t->free};
    t->free = position;
    t->used--;
}

/* Longest prefix match with a trie; an index by (key, length) finds entries for their owner. */

static uint64_t prefix_mask(unsigned width, unsigned length)
{
    return length ? ~(uint64_t)0 >> (64 - length) << (width - length) : 0;
}

static uint64_t prefix_hash(uint64_t key, uint32_t length)
{
    uint64_t both[2] = {key, length};
    return sw_mix(both, 2);
}

static uint32_t prefix_find(const struct sw_table *t, uint64_t key, uint32_t length)
{
    if (!t->index.slots)
        return TABLE_NONE;
    uint64_t hash = prefix_hash(key, length), slot;
    for (uint32_t i = index_home(&t->index, hash); (slot = t->index.slots[i]) != 0;
         i = (i + 1) & t->index.mask) {
        uint32_t position = index_position(slot);
        if (index_maybe(slot, hash) && table_at(t, position)->key[0] == key &&
            t->info[position].prefix == length)
            return position;
    }
    return TABLE_NONE;
}

static int prefix_length(void *table, uint32_t position)
{
    const struct sw_table *t = table;
    return position == TRIE_NONE ? -1 : (int)t->info[position].prefix;
}

static uint64_t left_aligned(const struct sw_table *t, uint64_t key)
{
    return key << (64 - t->desc->keys[0].width);
}

/* The entry that rules where this one does not: the longest prefix shorter than it. */
static uint32_t covering_prefix(const struct sw_table *t, uint64_t key, uint32_t length)
{
    unsigned width = t->desc->keys[0].width;
    while (length-- > 0) {
        uint32_t position = prefix_find(t, key & prefix_mask(width, length), length);
        if (position != TABLE_NONE)
            return position;
    }
    return TRIE_NONE;
}

static uint32_t insert_prefix(struct sw_table *t, const struct sw_match_spec *spec)
{
    uint64_t key = spec->key[0] & prefix_mask(t->desc->keys[0].width, spec->prefix);
    uint32_t position;
    if (!index_reserve(&t->index) || (position = take(t)) == TABLE_NONE)
        return TABLE_NONE;
    table_at(t, position)->key[0] = key;
    t->info[position].prefix = spec->prefix;
    uint64_t aligned = left_aligned(t, key);
    if (!trie_insert(&t->trie, aligned, spec->prefix, position, prefix_length, t)) {
        uint32_t heir = covering_prefix(t, key, spec->prefix);
        trie_remove(&t->trie, aligned, spec->prefix, position, heir);
        give(t, position);
        return TABLE_NONE;
    }
    index_put(&t->index, prefix_hash(key, spec->prefix), position);
    return position;
}

static void remove_prefix(struct sw_table *t, uint32_t position)
{
    uint64_t key = table_at(t, position)->key[0];
    uint32_t length = t->info[position].prefix;
    index_remove(&t->index, prefix_hash(key, length), position);
    trie_remove(&t->trie, left_aligned(t, key), length, position, covering_prefix(t, key, length));
}

/* Tuple-space search */

static uint64_t *entry_order(const struct sw_table *t, uint32_t position)
{
    return entry_at(table_at(t, position), t->desc->order_at);
}

static bool in_range(const struct sw_table *t, uint32_t position, const uint64_t *key)
{
    const struct sw_table_desc *desc = t->desc;
    const uint64_t *low = table_at(t, position)->key;
    const uint64_t *high = t->highs + (size_t)position * desc->key_words;
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct sw_key_desc *field = &desc->keys[i];
        if (field->match != SW_RANGE)
            continue;
        /* From the highest word down; a field of more than 64 bits starts at a word's edge. */
        unsigned first = field->shift / 64, last = (field->shift + field->width - 1u) / 64;
        bool above = false, below = false;
        for (unsigned w = last + 1; w-- > first && !(above && below);) {
            uint64_t mask = t->range_masks[w];
            if (first == last)
                mask = (field->width < 64 ? ((uint64_t)1 << field->width) - 1 : ~(uint64_t)0)
                       << field->shift % 64;
            uint64_t k = key[w] & mask, l = low[w] & mask, h = high[w] & mask;
            if ((!above && k < l) || (!below && k > h))
                return false;
            above |= k > l;
            below |= k < h;
        }
    }
    return true;
}

/* The head of the chain of entries with this masked key. */
static uint32_t tuple_chain(const struct sw_table *t, const struct sw_tuple *tuple,
                            const uint64_t *masked, uint64_t hash)
{
    uint64_t slot;
    if (!tuple->index.slots)
        return TABLE_NONE;
    for (uint32_t i = index_home(&tuple->index, hash); (slot = tuple->index.slots[i]) != 0;
         i = (i + 1) & tuple->index.mask) {
        if (!index_maybe(slot, hash))
            continue;
        const struct sw_entry *e = table_at(t, index_position(slot));
        uint64_t differs = 0;
        for (unsigned w = 0; w < t->desc->key_words; w++)
            differs |= (e->key[w] & tuple->mask[w]) ^ masked[w];
        if (!differs)
            return index_position(slot);
    }
    return TABLE_NONE;
}

static uint64_t mask_key(const struct sw_table *t, const struct sw_tuple *tuple,
                         const uint64_t *key, uint64_t *masked)
{
    for (unsigned w = 0; w < t->desc->key_words; w++)
        masked[w] = key[w] & tuple->mask[w];
    return sw_mix(masked, t->desc->key_words);
}

struct sw_entry *table_find_tuple(const struct sw_table *t, const uint64_t *key)
{
    uint64_t masked[TABLE_KEY_WORDS_MAX], best = 0;
    struct sw_entry *found = NULL;
    for (uint32_t i = 0; i < t->n_tuples && t->tuples[i]->best > best; i++) {
        const struct sw_tuple *tuple = t->tuples[i];
        uint64_t hash = mask_key(t, tuple, key, masked);
        uint32_t position = tuple_chain(t, tuple, masked, hash);
        if (t->highs)
            while (position != TABLE_NONE && !in_range(t, position, key))
                position = t->info[position].next;
        if (position == TABLE_NONE)
            continue;
        uint64_t order = *entry_order(t, position);
        if (order > best) {
            best = order;
            found = table_at(t, position);
        }
    }
    return found;
}

/* The mask an entry's key is hashed under: range fields do not take part. */
static void spec_mask(const struct sw_table *t, const struct sw_match_spec *spec, uint64_t *mask)
{
    const struct sw_table_desc *desc = t->desc;
    memset(mask, 0, desc->key_words * sizeof *mask);
    for (uint32_t i = 0; i < desc->n_keys; i++) {
        const struct sw_key_desc *field = &desc->keys[i];
        if (field->match == SW_EXACT)
            set_ones(mask, field->shift, field->width);
        else if (field->match == SW_LPM && desc->match == SW_LPM)
            set_ones(mask, field->shift + field->width - spec->prefix, spec->prefix);
        else if (field->match != SW_RANGE)
            for (unsigned bit = field->shift; bit < field->shift + field->width; bit++)
                mask[bit / 64] |= spec->mask[bit / 64] & (uint64_t)1 << bit % 64;
    }
}

static struct sw_tuple *tuple_with(const struct sw_table *t, const uint64_t *mask)
{
    for (uint32_t i = 0; i < t->n_tuples; i++)
        if (key_equal(t->tuples[i]->mask, mask, t->desc->key_words))
            return t->tuples[i];
    return NULL;
}

static int32_t spec_priority(const struct sw_table *t, const struct sw_match_spec *spec)
{
    return t->desc->match == SW_LPM ? (int32_t)spec->prefix : spec->priority;
}

/* Larger is better; an earlier sequence number is better. No two entries have the same, for the
 * numbers begin anew (`table_renumber`) long before they run out. */
static uint64_t order_of(int32_t priority, uint32_t sequence)
{
    return (uint64_t)((uint32_t)priority ^ 0x80000000u) << 32 | (uint32_t)~sequence;
}

/* Keep tuples sorted by their best entry, after one of them changed. */
static void sort_tuple(struct sw_table *t, struct sw_tuple *tuple)
{
    uint32_t i = 0;
    while (t->tuples[i] != tuple)
        i++;
    for (; i > 0 && t->tuples[i - 1]->best < tuple->best; i--)
        t->tuples[i] = t->tuples[i - 1];
    for (; i + 1 < t->n_tuples && t->tuples[i + 1]->best > tuple->best; i++)
        t->tuples[i] = t->tuples[i + 1];
    t->tuples[i] = tuple;
}

static struct sw_tuple *tuple_new(struct sw_table *t, const uint64_t *mask)
{
    if (t->n_tuples == t->room_tuples) {
        uint32_t room = t->room_tuples ? t->room_tuples * 2 : 8;
        struct sw_tuple **tuples = realloc(t->tuples, room * sizeof *tuples);
        if (!tuples)
            return NULL;
        t->tuples = tuples;
        t->room_tuples = room;
    }
    struct sw_tuple *tuple = calloc(1, sizeof *tuple);
    size_t size = t->desc->key_words * sizeof *mask;
    if (!tuple || !(tuple->mask = malloc(size ? size : 1))) {
        free(tuple);
        return NULL;
    }
    memcpy(tuple->mask, mask, size);
    t->tuples[t->n_tuples++] = tuple;
    return tuple;
}

static void tuple_drop(struct sw_table *t, struct sw_tuple *tuple)
{
    uint32_t i = 0;
    while (t->tuples[i] != tuple)
        i++;
    memmove(t->tuples + i, t->tuples + i + 1, (--t->n_tuples - i) * sizeof *t->tuples);
    tuple_free(tuple);
}

/* The sorted array that small tables of many masks are scanned by. */

static size_t row_words(const struct sw_table *t) { return 2 + 2 * (size_t)t->desc->key_words; }

static uint32_t scan_place(const struct sw_table *t, uint64_t order, uint32_t rows)
{
    uint32_t low = 0, high = rows;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (t->scan[middle * row_words(t)] > order)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* `rows` are there already. */
static void scan_add(struct sw_table *t, uint32_t position, const uint64_t *mask, uint32_t rows)
{
    size_t words = row_words(t), key_words = t->desc->key_words;
    uint64_t order = *entry_order(t, position);
    uint32_t at = scan_place(t, order, rows);
    uint64_t *row = t->scan + at * words;
    memmove(row + words, row, (rows - at) * words * sizeof *row);
    row[0] = order;
    row[1] = position;
    memcpy(row + 2, mask, key_words * sizeof *row);
    for (size_t w = 0; w < key_words; w++)
        row[2 + key_words + w] = table_at(t, position)->key[w] & mask[w];
}

/* Decide how to search, and have the array ready where it is a scan. */
static void scan_choose(struct sw_table *t)
{
    bool want = !t->range_masks && t->used && t->used <= SCAN_MAX && t->n_tuples > 4 &&
                t->n_tuples * 8 > t->used;
    if (want == t->use_scan)
        return;
    t->use_scan = false;
    if (!want)
        return;
    if (!t->scan) {
        t->scan = malloc((SCAN_MAX + 1) * row_words(t) * sizeof *t->scan);
        if (!t->scan)
            return; /* the tuples still answer */
    }
    uint32_t rows = 0;
    for (uint32_t i = 0; i < t->room; i++)
        if (t->info[i].is_used)
            scan_add(t, i, t->info[i].tuple->mask, rows++);
    t->use_scan = true;
}

static void scan_remove(struct sw_table *t, uint64_t order)
{
    size_t words = row_words(t);
    uint32_t at = scan_place(t, order, t->used);
    uint64_t *row = t->scan + at * words;
    memmove(row, row + words, (t->used - at - 1) * words * sizeof *row);
}

uint32_t table_sequence(const struct sw_table *t, uint32_t position)
{
    return t->desc->order_at ? ~(uint32_t)*entry_order(t, position) : t->sequence;
}

static uint32_t insert_tuple(struct sw_table *t, const struct sw_match_spec *spec)
{
    const struct sw_table_desc *desc = t->desc;
    uint64_t mask[TABLE_KEY_WORDS_MAX], masked[TABLE_KEY_WORDS_MAX];
    spec_mask(t, spec, mask);
    struct sw_tuple *tuple = tuple_with(t, mask);
    if (!tuple && !(tuple = tuple_new(t, mask)))
        return TABLE_NONE;
    uint32_t position;
    if (!index_reserve(&tuple->index) || (position = take(t)) == TABLE_NONE) {
        if (!tuple->count)
            tuple_drop(t, tuple);
        return TABLE_NONE;
    }
    struct sw_entry *e = table_at(t, position);
    uint64_t hash = mask_key(t, tuple, spec->key, masked);
    for (uint32_t w = 0; w < desc->key_words; w++)
        e->key[w] = masked[w] | (t->range_masks ? spec->key[w] & t->range_masks[w] : 0);
    if (t->highs)
        memcpy(t->highs + (size_t)position * desc->key_words, spec->mask,
               desc->key_words * sizeof *t->highs);
    struct sw_entry_info *info = &t->info[position];
    info->priority = spec_priority(t, spec);
    info->prefix = spec->prefix;
    info->tuple = tuple;
    uint64_t order = *entry_order(t, position) = order_of(info->priority, t->sequence++);

    uint32_t head = tuple_chain(t, tuple, masked, hash);
    if (head == TABLE_NONE) {
        index_put(&tuple->index, hash, position);
    } else if (*entry_order(t, head) < order) {
        info->next = head;
        index_replace(&tuple->index, hash, head, position);
    } else {
        uint32_t before = head;
        while (t->info[before].next != TABLE_NONE &&
               *entry_order(t, t->info[before].next) > order)
            before = t->info[before].next;
        info->next = t->info[before].next;
        t->info[before].next = position;
    }
    tuple->count++;
    if (order > tuple->best) {
        tuple->best = order;
        sort_tuple(t, tuple);
    }
    if (t->use_scan && t->used <= SCAN_MAX)
        scan_add(t, position, mask, t->used - 1);
    scan_choose(t);
    return position;
}

/* Looking through a large tuple on each removal would make emptying a table quadratic. `best` may
 * be more than the best there is: the search then looks here without need, and no more. */
#define BEST_LOOK 256

static uint64_t best_of(const struct sw_table *t, const struct sw_tuple *tuple)
{
    uint64_t best = 0;
    if (tuple->index.mask >= BEST_LOOK)
        return tuple->best;
    for (uint32_t i = 0; i <= tuple->index.mask; i++)
        if (tuple->index.slots[i]) {
            uint64_t order = *entry_order(t, index_position(tuple->index.slots[i]));
            best = order > best ? order : best;
        }
    return best;
}

static void remove_tuple(struct sw_table *t, uint32_t position)
{
    struct sw_entry_info *info = &t->info[position];
    struct sw_tuple *tuple = info->tuple;
    uint64_t masked[TABLE_KEY_WORDS_MAX], order = *entry_order(t, position);
    uint64_t hash = mask_key(t, tuple, table_at(t, position)->key, masked);
    uint32_t head = tuple_chain(t, tuple, masked, hash);
    if (t->use_scan)
        scan_remove(t, order);
    if (head != position) {
        while (t->info[head].next != position)
            head = t->info[head].next;
        t->info[head].next = info->next;
    } else if (info->next != TABLE_NONE) {
        index_replace(&tuple->index, hash, position, info->next);
    } else {
        index_remove(&tuple->index, hash, position);
    }
    if (--tuple->count == 0) {
        tuple_drop(t, tuple);
    } else if (order >= tuple->best) {
        tuple->best = best_of(t, tuple);
        sort_tuple(t, tuple);
    }
}

static int compare_sequences(const void *a, const void *b)
{
    uint32_t left = ~(uint32_t)**(uint64_t *const *)a, right = ~(uint32_t)**(uint64_t *const *)b;
    return left < right ? -1 : left > right;
}

/* Every tuple's best as it is, and the best tuple first. */
static void recompute_best(struct sw_table *t)
{
    for (uint32_t i = 0; i < t->n_tuples; i++)
        t->tuples[i]->best = 0;
    for (uint32_t i = 0; i < t->room; i++) {
        struct sw_tuple *tuple = t->info[i].is_used ? t->info[i].tuple : NULL;
        if (tuple && tuple->best < *entry_order(t, i))
            tuple->best = *entry_order(t, i);
    }
    for (uint32_t i = 1; i < t->n_tuples; i++)
        sort_tuple(t, t->tuples[i]);
}

void table_renumber(struct sw_table *t)
{
    if (!t->desc->order_at || t->sequence < RENUMBER_AFTER + 8 * (uint64_t)t->used)
        return;
    uint64_t **orders = malloc((t->used ? t->used : 1) * sizeof *orders);
    if (!orders)
        return; /* another time */
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->room; i++)
        if (t->info[i].is_used)
            orders[n++] = entry_order(t, i);
    qsort(orders, n, sizeof *orders, compare_sequences);
    for (uint32_t i = 0; i < n; i++)
        *orders[i] = (*orders[i] & ~(uint64_t)UINT32_MAX) | (uint32_t)~i;
    free(orders);
    t->sequence = n;
    for (uint32_t i = 0; t->use_scan && i < t->used; i++) {
        uint64_t *row = t->scan + i * row_words(t);
        row[0] = *entry_order(t, (uint32_t)row[1]);
    }
    recompute_best(t);
}

static uint32_t find_tuple_entry(const struct sw_table *t, const struct sw_match_spec *spec)
{
    uint64_t mask[TABLE_KEY_WORDS_MAX], masked[TABLE_KEY_WORDS_MAX];
    spec_mask(t, spec, mask);
    const struct sw_tuple *tuple = tuple_with(t, mask);
    if (!tuple)
        return TABLE_NONE;
    uint64_t hash = mask_key(t, tuple, spec->key, masked);
    uint32_t position = tuple_chain(t, tuple, masked, hash);
    unsigned words = t->desc->key_words;
    for (; position != TABLE_NONE; position = t->info[position].next) {
        if (t->info[position].priority != spec_priority(t, spec))
            continue;
        uint64_t differs = 0;
        for (unsigned w = 0; t->highs && w < words; w++) {
            differs |= (table_at(t, position)->key[w] ^ spec->key[w]) & t->range_masks[w];
            differs |= t->highs[(size_t)position * words + w] ^ spec->mask[w];
        }
        if (!differs)
            return position;
    }
    return TABLE_NONE;
}

/* Large tables: many lookups at once, a step of all before the next step of any */

void table_warm_exact(const struct sw_table *t, const uint64_t *keys, unsigned words, unsigned n)
{
    uint64_t hashes[SW_GATHER];
    for (unsigned i = 0; i < n; i++) {
        hashes[i] = sw_mix(keys + (size_t)i * words, words);
        __builtin_prefetch(&t->index.slots[index_home(&t->index, hashes[i])]);
    }
    for (unsigned i = 0; i < n; i++) {
        uint32_t at = index_home(&t->index, hashes[i]);
        uint64_t slot = t->index.slots[at];
        if (slot && !index_maybe(slot, hashes[i]))
            slot = t->index.slots[(at + 1) & t->index.mask];
        if (slot)
            __builtin_prefetch(table_at(t, index_position(slot)));
    }
}

void table_warm_lpm(const struct sw_table *t, const uint64_t *keys, struct pkt *const *packets,
                    unsigned n, uint32_t number)
{
    uint32_t entries[SW_GATHER];
    _Static_assert(SW_GATHER <= TRIE_TOGETHER, "the trie takes fewer keys");
    trie_warm(&t->trie, keys, n, entries);
    for (unsigned i = 0; i < n; i++) {
        packets[i]->hint_key = keys[i];
        packets[i]->hint_table = number + 1;
        packets[i]->hint_entry = entries[i];
        if (entries[i] != TRIE_NONE)
            __builtin_prefetch(table_at(t, entries[i]));
    }
}

/* What the control plane calls, whatever the kind */

uint32_t table_find(const struct sw_table *t, const struct sw_match_spec *spec)
{
    if (t->desc->match == SW_EXACT) {
        unsigned words = t->desc->key_words;
        struct sw_entry *e = table_find_exact(t, spec->key, words, t->desc->stride);
        return e ? e->position : TABLE_NONE;
    }
    if (t->use_trie) {
        uint64_t mask = prefix_mask(t->desc->keys[0].width, spec->prefix);
        return prefix_find(t, spec->key[0] & mask, spec->prefix);
    }
    return find_tuple_entry(t, spec);
}

/* Whether there is a place for every key; a table without keys is asked for none. */
static bool is_small(const struct sw_table_desc *desc)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < desc->n_keys; i++)
        bits += desc->keys[i].width;
    return desc->n_keys && bits <= SW_DIRECT_BITS;
}

/* Have a place for a key, and for as many again, so that growing stays rare. */
static bool reserve_direct(struct sw_table *t, uint64_t key)
{
    if (key < t->n_direct)
        return true;
    uint32_t room = t->n_direct ? t->n_direct : 16;
    while (room <= key)
        room *= 2;
    uint32_t *direct = realloc(t->direct, room * sizeof *direct);
    if (!direct)
        return false;
    memset(direct + t->n_direct, 0, (room - t->n_direct) * sizeof *direct);
    t->direct = direct;
    t->n_direct = room;
    return true;
}

static uint32_t insert_exact(struct sw_table *t, const struct sw_match_spec *spec)
{
    uint32_t position;
    bool small = is_small(t->desc);
    if (!index_reserve(&t->index) || (small && !reserve_direct(t, spec->key[0])) ||
        (position = take(t)) == TABLE_NONE)
        return TABLE_NONE;
    unsigned words = t->desc->key_words;
    memcpy(table_at(t, position)->key, spec->key, words * sizeof *spec->key);
    if (small)
        t->direct[spec->key[0]] = position + 1;
    index_put(&t->index, sw_mix(spec->key, words), position);
    return position;
}

uint32_t table_insert(struct sw_table *t, const struct sw_match_spec *spec, ns_t now)
{
    uint32_t position = t->desc->match == SW_EXACT ? insert_exact(t, spec)
                        : t->use_trie              ? insert_prefix(t, spec)
                                                   : insert_tuple(t, spec);
    if (position != TABLE_NONE && t->desc->hit_at)
        *(ns_t *)entry_at(table_at(t, position), t->desc->hit_at) = now;
    return position;
}

void table_remove(struct sw_table *t, uint32_t position)
{
    if (t->desc->match == SW_EXACT) {
        const struct sw_entry *e = table_at(t, position);
        if (is_small(t->desc))
            t->direct[e->key[0]] = 0;
        index_remove(&t->index, sw_mix(e->key, t->desc->key_words), position);
    } else if (t->use_trie) {
        remove_prefix(t, position);
    } else {
        remove_tuple(t, position);
    }
    if (t->info[position].idle_timeout)
        t->n_timeouts--;
    give(t, position);
    if (t->desc->match != SW_EXACT && !t->use_trie)
        scan_choose(t);
}
