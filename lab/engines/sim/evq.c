#include "evq.h"

#include <stdlib.h>

#define ARITY 4
#define FIRST_ROOM 1024
#define SEQUENCE_BITS 40
#define TIE_BITS 16

static bool before(const struct evq_key *a, const struct evq_key *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

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
        if (child >= queue->used)
            break;
        uint32_t end = child + ARITY < queue->used ? child + ARITY : queue->used;
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

/* splitmix64: a step and a scramble, enough for tie-breaks. */
static uint64_t draw(struct evq *queue)
{
    uint64_t z = queue->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

bool evq_init(struct evq *queue, uint64_t seed)
{
    *queue = (struct evq){.random = seed, .room = FIRST_ROOM};
    queue->heap = malloc(FIRST_ROOM * sizeof *queue->heap);
    return queue->heap != NULL;
}

void evq_free(struct evq *queue)
{
    free(queue->heap);
    queue->heap = NULL;
}

bool evq_schedule(struct evq *queue, struct evq_event *event, ns_t time, uint8_t priority)
{
    if (time < queue->now)
        return false;
    if (!event->slot && !queue->is_vacant && queue->used == queue->room) {
        uint32_t room = queue->room * 2;
        struct evq_key *heap = realloc(queue->heap, room * sizeof *heap);
        if (!heap)
            return false;
        queue->heap = heap;
        queue->room = room;
    }
    uint64_t tie = priority == EVQ_OBSERVER ? 0 : draw(queue) & ((1u << TIE_BITS) - 1);
    uint64_t order = (uint64_t)priority << (TIE_BITS + SEQUENCE_BITS) | tie << SEQUENCE_BITS |
                     (queue->sequence++ & ((1ull << SEQUENCE_BITS) - 1));
    struct evq_key key = {.time = time, .order = order, .event = event};
    if (event->slot) {
        settle(queue, event->slot - 1, key);
    } else if (queue->is_vacant) {
        queue->is_vacant = false;
        sift_down(queue, 0, key);
    } else {
        sift_up(queue, queue->used++, key);
    }
    return true;
}

void evq_cancel(struct evq *queue, struct evq_event *event)
{
    if (!event->slot)
        return;
    uint32_t place = event->slot - 1;
    event->slot = 0;
    struct evq_key last = queue->heap[--queue->used];
    if (last.event != event)
        settle(queue, place, last);
}

ns_t evq_next(const struct evq *queue)
{
    if (!queue->is_vacant)
        return queue->used ? queue->heap[0].time : EVQ_NEVER;
    ns_t next = EVQ_NEVER;
    for (uint32_t child = 1; child <= ARITY && child < queue->used; child++)
        if (queue->heap[child].time < next)
            next = queue->heap[child].time;
    return next;
}

/* The first place was not taken by an event that the last one scheduled. */
static void fill_vacancy(struct evq *queue)
{
    queue->is_vacant = false;
    struct evq_key last = queue->heap[--queue->used];
    if (queue->used)
        sift_down(queue, 0, last);
}

uint64_t evq_run(struct evq *queue, ns_t until, uint64_t most)
{
    uint64_t count = 0;
    queue->stop = false;
    while (queue->used && count < most && !queue->stop) { /* nothing is vacant here */
        struct evq_key first = queue->heap[0];
        if (first.time > until)
            break;
        first.event->slot = 0;
        queue->is_vacant = true;
        queue->heap[0].order = 0; /* whatever is scheduled for now: not before this place */
        queue->now = first.time;
        first.event->happen(first.event, first.time);
        if (queue->is_vacant)
            fill_vacancy(queue);
        count++;
    }
    if (count < most && !queue->stop && until != EVQ_NEVER && until > queue->now)
        queue->now = until;
    queue->happened += count;
    return count;
}
