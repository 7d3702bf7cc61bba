#include "evq.h"

#include "invariant.h"

#include <stdlib.h>
#include <string.h>

#define ARITY 4
#define FIRST_ROOM 1024u
#define NAME_BITS 40
#define TIE_BITS 16

#define BUCKET_BITS 3 /* a bucket is 8 ns */
#define BUCKETS 2048u
#define NONE UINT64_MAX
#define FEW 16u /* events that are put in order one by one */
#define DIGITS 128u
#define STRIDE 3 /* events between two steps towards the one that happens */

struct note { /* an event that waits in a bucket */
    struct evq_key key;
    uint32_t next; /* note's number, plus one */
};

struct evq_wheel {
    uint32_t first[BUCKETS];          /* by the bucket's number: its last note */
    uint64_t filled[BUCKETS / 64];    /* which of them have any */
    struct note *notes;
    uint32_t used, room, free;
    struct evq_key *spare; /* for sorting; as large as `open` */
};

static bool before(const struct evq_key *a, const struct evq_key *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

/* Whether it was neither moved nor cancelled meanwhile. */
static bool is_due(const struct evq_key *key)
{
    return key->event->order == key->order && key->event->time == key->time;
}

/* The heap: in four, for their keys share a cache line or two. */

static void put(struct evq *queue, uint32_t place, struct evq_key key)
{
    queue->heap[place] = key;
    key.event->slot = place + 1;
}

static void sift_up(struct evq *queue, uint32_t place, struct evq_key key)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / ARITY;
        if (!before(&key, &queue->heap[parent]))
            break;
        put(queue, place, queue->heap[parent]);
        place = parent;
    }
    put(queue, place, key);
}

static void sift_down(struct evq *queue, uint32_t place, struct evq_key key)
{
    for (;;) {
        uint32_t child = place * ARITY + 1, least = child;
        if (child >= queue->heap_used)
            break;
        uint32_t end = child + ARITY < queue->heap_used ? child + ARITY : queue->heap_used;
        while (++child < end)
            if (before(&queue->heap[child], &queue->heap[least]))
                least = child;
        if (!before(&queue->heap[least], &key))
            break;
        put(queue, place, queue->heap[least]);
        place = least;
    }
    put(queue, place, key);
}

static void settle(struct evq *queue, uint32_t place, struct evq_key key)
{
    if (place > 0 && before(&key, &queue->heap[(place - 1) / ARITY]))
        sift_up(queue, place, key);
    else
        sift_down(queue, place, key);
}

static void heap_remove(struct evq *queue, struct evq_event *event)
{
    uint32_t place = event->slot - 1;
    event->slot = 0;
    struct evq_key last = queue->heap[--queue->heap_used];
    if (last.event != event)
        settle(queue, place, last);
}

/* Room, before anything is changed */

static bool grow(void *array, uint32_t used, uint32_t *room, size_t size)
{
    uint32_t wanted = *room ? *room : FIRST_ROOM;
    if (used < *room)
        return true;
    while (wanted <= used)
        wanted *= 2;
    void *grown = realloc(*(void **)array, wanted * size);
    if (!grown)
        return false;
    *(void **)array = grown;
    *room = wanted;
    return true;
}

/* Whatever waits in the wheel and the heap may be of one bucket: `open` has room for all of it,
 * which is seen to before either has room for more. */
static bool reserve_open(struct evq *queue, uint32_t used)
{
    uint32_t room = queue->open_room;
    return grow(&queue->wheel->spare, used, &room, sizeof *queue->open) &&
           grow(&queue->open, used, &queue->open_room, sizeof *queue->open);
}

static bool reserve_waiting(struct evq *queue, uint32_t more)
{
    return reserve_open(queue, queue->heap_used + queue->wheel->used + more);
}

/* The open bucket */

static bool insert_open(struct evq *queue, struct evq_key key)
{
    uint32_t low = queue->at, high = queue->end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (before(&queue->open[middle], &key))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == queue->at && low > 0) { /* as most are that are for now: there is a place */
        queue->open[--queue->at] = key;
        return true;
    }
    if (!reserve_open(queue, queue->end + 1))
        return false;
    memmove(queue->open + low + 1, queue->open + low, (queue->end - low) * sizeof key);
    queue->open[low] = key;
    queue->end++;
    return true;
}

static void sort_few(struct evq_key *keys, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        if (before(&keys[i - 1], &keys[i]))
            continue;
        struct evq_key key = keys[i];
        uint32_t place = i;
        do
            keys[place] = keys[place - 1];
        while (--place > 0 && before(&key, &keys[place - 1]));
        keys[place] = key;
    }
}

/* Seven bits in the order of the key: its time, whether it is an arrival, the tie-break's first. */
static unsigned digit(const struct evq_key *key)
{
    unsigned time = key->time & ((1u << BUCKET_BITS) - 1);
    unsigned late = key->order >> (TIE_BITS + NAME_BITS) != 0;
    unsigned tie = key->order >> (TIE_BITS + NAME_BITS - 3) & 7;
    return time << 4 | late << 3 | tie;
}

/* So many that they are first spread by their digits. */
__attribute__((noinline)) static void spread_open(struct evq *queue)
{
    uint32_t n = queue->end, from[DIGITS + 1] = {0};
    struct evq_key *keys = queue->open, *sorted = queue->wheel->spare;
    for (uint32_t i = 0; i < n; i++)
        from[digit(&keys[i]) + 1]++;
    for (unsigned d = 1; d < DIGITS; d++)
        from[d] += from[d - 1];
    for (uint32_t i = 0; i < n; i++)
        sorted[from[digit(&keys[i])]++] = keys[i];
    queue->wheel->spare = keys;
    queue->open = sorted;
}

static void sort_open(struct evq *queue)
{
    if (queue->end > FEW)
        spread_open(queue);
    sort_few(queue->open, queue->end);
}

/* The wheel */

/* Room for a note more. */
__attribute__((noinline)) static bool wheel_grow(struct evq *queue)
{
    struct evq_wheel *wheel = queue->wheel;
    if (!reserve_waiting(queue, 1) ||
        !grow(&wheel->notes, wheel->used, &wheel->room, sizeof *wheel->notes))
        return false;
    wheel->notes[wheel->used].next = 0;
    wheel->free = ++wheel->used;
    return true;
}

/* There is room. */
static inline void wheel_put(struct evq_wheel *wheel, struct evq_key key)
{
    uint32_t number = wheel->free, at = (key.time >> BUCKET_BITS) % BUCKETS;
    struct note *note = &wheel->notes[number - 1];
    wheel->free = note->next;
    *note = (struct note){key, wheel->first[at]};
    wheel->first[at] = number;
    wheel->filled[at / 64] |= (uint64_t)1 << at % 64;
}

/* The first bucket that has notes, from that of a time on; NONE. */
static uint64_t wheel_next(const struct evq_wheel *wheel, ns_t time)
{
    enum { WORDS = BUCKETS / 64 };
    uint64_t from = time >> BUCKET_BITS;
    uint32_t at = from % BUCKETS, word = at / 64;
    uint64_t bits = wheel->filled[word] & ~(uint64_t)0 << at % 64;
    for (uint32_t i = 0; i <= WORDS; i++) {
        if (bits) {
            uint32_t found = word * 64 + (uint32_t)__builtin_ctzll(bits);
            return from + (found - at) % BUCKETS;
        }
        word = (word + 1) % WORDS;
        bits = wheel->filled[word];
    }
    return NONE;
}

/* The next bucket that anything waits for. */
static uint64_t next_bucket(const struct evq *queue)
{
    uint64_t near = wheel_next(queue->wheel, queue->now);
    uint64_t far = queue->heap_used ? queue->heap[0].time >> BUCKET_BITS : NONE;
    return near < far ? near : far;
}

static void open_bucket(struct evq *queue, uint64_t bucket)
{
    struct evq_wheel *wheel = queue->wheel;
    struct evq_key *open = queue->open;
    struct note *note = NULL;
    uint32_t at = bucket % BUCKETS, first = wheel->first[at], end = 0;
    for (uint32_t number = first; number; number = note->next) {
        note = &wheel->notes[number - 1];
        __builtin_prefetch(note->key.event); /* which knows whether it is due, when its turn comes */
        open[end++] = note->key;
    }
    if (note) {
        note->next = wheel->free;
        wheel->free = first;
    }
    queue->at = 0;
    queue->end = end;
    queue->opened = bucket;
    wheel->first[at] = 0;
    wheel->filled[at / 64] &= ~((uint64_t)1 << at % 64);
    while (queue->heap_used && queue->heap[0].time >> BUCKET_BITS == bucket) {
        queue->open[queue->end++] = queue->heap[0];
        heap_remove(queue, queue->heap[0].event);
    }
    if (queue->end > 1)
        sort_open(queue);
}

/* splitmix64's step and scramble, enough for tie-breaks. */
#define STEP 0x9E3779B97F4A7C15u
static uint64_t scrambled(uint64_t z)
{
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* What decides between events of one instant and priority. */
static uint64_t lot(const struct evq *queue, const struct evq_event *event, ns_t time)
{
    uint64_t tie = scrambled(queue->seed + time * STEP + event->name) & ((1u << TIE_BITS) - 1);
    return tie << NAME_BITS | event->name;
}

bool evq_init(struct evq *queue, uint64_t seed)
{
    *queue = (struct evq){.seed = scrambled(seed + STEP), .opened = NONE};
    queue->wheel = calloc(1, sizeof *queue->wheel);
    if (queue->wheel && reserve_waiting(queue, 1))
        return true;
    evq_free(queue);
    return false;
}

void evq_pretend(struct evq *queue, ns_t later) { queue->seed += later * STEP; }

void evq_free(struct evq *queue)
{
    if (queue->wheel) {
        free(queue->wheel->notes);
        free(queue->wheel->spare);
    }
    free(queue->wheel);
    free(queue->open);
    free(queue->heap);
    queue->wheel = NULL;
    queue->open = queue->heap = NULL;
}

/* It has been put where its key says. */
static inline bool settled(struct evq *queue, const struct evq_key *key)
{
    queue->used += !key->event->order;
    key->event->order = key->order;
    key->event->time = key->time;
    return true;
}

/* Where few are: in the open bucket, the heap, or out of the heap. */
static bool place_seldom(struct evq *queue, struct evq_key key)
{
    struct evq_event *event = key.event;
    uint32_t slot = event->slot;
    uint64_t bucket = key.time >> BUCKET_BITS;
    bool is_far = bucket - (queue->now >> BUCKET_BITS) >= BUCKETS;
    if (slot && is_far) {
        settle(queue, slot - 1, key); /* from the heap to the heap: one walk */
        return true;
    }
    if (is_far) {
        if (!reserve_waiting(queue, 1) ||
            !grow(&queue->heap, queue->heap_used, &queue->heap_room, sizeof *queue->heap))
            return false;
        sift_up(queue, queue->heap_used++, key);
        return true;
    }
    if (bucket == queue->opened) {
        if (!insert_open(queue, key))
            return false;
    } else {
        if (!queue->wheel->free && !wheel_grow(queue))
            return false;
        wheel_put(queue->wheel, key);
    }
    if (slot)
        heap_remove(queue, event);
    return true;
}

/* Beside evq_schedule, which calls nothing else and so keeps nothing on the stack. */
__attribute__((noinline)) static bool schedule_seldom(struct evq *queue, struct evq_event *event,
                                                      ns_t time, uint64_t order)
{
    struct evq_key key = {.time = time, .order = order, .event = event};
    return place_seldom(queue, key) && settled(queue, &key);
}

bool evq_schedule(struct evq *queue, struct evq_event *event, ns_t time, uint8_t priority)
{
    if (time < queue->now)
        return false;
    if (event->time == time && event->order && event->order >> (TIE_BITS + NAME_BITS) == priority)
        return true; /* where it is already */
    uint64_t order = (uint64_t)priority << (TIE_BITS + NAME_BITS) | lot(queue, event, time);
    uint64_t bucket = time >> BUCKET_BITS;
    bool is_usual = !event->slot && bucket != queue->opened &&
                    bucket - (queue->now >> BUCKET_BITS) < BUCKETS && queue->wheel->free;
    if (__builtin_expect(!is_usual, 0))
        return schedule_seldom(queue, event, time, order);
    struct evq_key key = {.time = time, .order = order, .event = event};
    wheel_put(queue->wheel, key);
    return settled(queue, &key);
}

void evq_cancel(struct evq *queue, struct evq_event *event)
{
    if (!event->order)
        return;
    if (event->slot)
        heap_remove(queue, event);
    event->order = 0;
    queue->used--;
}

ns_t evq_next(const struct evq *queue)
{
    for (uint32_t i = queue->at; i < queue->end; i++)
        if (is_due(&queue->open[i]))
            return queue->open[i].time;
    ns_t next = queue->heap_used ? queue->heap[0].time : EVQ_NEVER;
    const struct evq_wheel *wheel = queue->wheel;
    uint64_t last = (queue->now >> BUCKET_BITS) + BUCKETS, bucket = queue->now >> BUCKET_BITS;
    bool found = false;
    while (!found && (bucket = wheel_next(wheel, bucket << BUCKET_BITS)) < last) {
        for (uint32_t n = wheel->first[bucket % BUCKETS]; n; n = wheel->notes[n - 1].next) {
            const struct evq_key *key = &wheel->notes[n - 1].key;
            if (!is_due(key))
                continue;
            found = true;
            next = key->time < next ? key->time : next;
        }
        bucket++;
    }
    return next;
}

/* Of the events behind the one that is to happen, some come nearer by a step. */
static void tell_ahead(const struct evq *queue)
{
    uint32_t at = queue->at + STRIDE - 1;
    for (unsigned steps = 1; steps <= EVQ_STEPS && at < queue->end; steps++, at += STRIDE)
        queue->soon(queue->open[at].event, steps);
}

uint64_t evq_run(struct evq *queue, ns_t until)
{
    uint64_t count = 0;
    while (queue->used) {
        if (queue->at == queue->end) {
            uint64_t bucket = next_bucket(queue);
            if (bucket << BUCKET_BITS > until)
                break;
            open_bucket(queue, bucket);
            continue;
        }
        struct evq_key *first = &queue->open[queue->at];
        if (!is_due(first)) {
            queue->at++;
            continue;
        }
        if (first->time > until)
            break;
        struct evq_event *event = first->event;
        INVARIANT(first->time >= queue->now);
        INVARIANT_CHECKED(queue->at + 1 == queue->end || !before(first + 1, first));
        queue->now = first->time;
        queue->at++;
        queue->used--;
        event->order = 0;
        if (queue->soon)
            tell_ahead(queue);
        event->happen(event, queue->now);
        count++;
    }
    if (until != EVQ_NEVER && until > queue->now)
        queue->now = until;
    queue->happened += count;
    return count;
}
