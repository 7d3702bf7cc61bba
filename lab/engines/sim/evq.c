#include "evq.h"

#include "invariant.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BITS 40
#define TIE_BITS 16

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

/* The matches */

#define NOTHING (~(u128)0)

static u128 key_of(ns_t time, uint64_t order) { return (u128)time << 64 | order; }

/* An event's key is another: it meets who won beside it, at each level. How that ends nobody can
 * foresee, so nothing is to branch. */
static inline void play(struct evq *queue, uint32_t place, u128 key)
{
    u128 *keys = queue->keys;
    uint32_t *winners = queue->winners, winner = place;
    keys[place] = key;
    for (uint32_t at = queue->places + place; at > 1;) {
        uint32_t other = winners[at ^ 1];
        u128 its = keys[other];
        bool loses = __builtin_expect_with_probability(its < key, 1, 0.5);
        winner = loses ? other : winner;
        key = loses ? its : key;
        at /= 2;
        winners[at] = winner;
    }
}

/* All of them. */
static void play_all(struct evq *queue)
{
    uint32_t n = queue->places, *winners = queue->winners;
    for (uint32_t i = 0; i < n; i++)
        winners[n + i] = i;
    for (uint32_t at = n - 1; at; at--) {
        uint32_t one = winners[2 * at], other = winners[2 * at + 1];
        winners[at] = queue->keys[other] < queue->keys[one] ? other : one;
    }
}

/* Room for more events. False, and nothing changed, when memory is out. */
__attribute__((noinline)) static bool grow(struct evq *queue)
{
    uint32_t places = queue->places + 8 + queue->places / 8;
    u128 *keys = malloc(places * sizeof *keys);
    struct evq_event **events = malloc(places * sizeof *events);
    uint32_t *winners = calloc(2 * places, sizeof *winners);
    if (!keys || !events || !winners) {
        free(keys);
        free(events);
        free(winners);
        return false;
    }
    if (queue->used) {
        memcpy(keys, queue->keys, queue->used * sizeof *keys);
        memcpy(events, queue->events, queue->used * sizeof *events);
    }
    for (uint32_t i = queue->used; i < places; i++)
        keys[i] = NOTHING;
    evq_free(queue);
    queue->keys = keys;
    queue->events = events;
    queue->winners = winners;
    queue->places = places;
    play_all(queue);
    return true;
}

bool evq_init(struct evq *queue, uint64_t seed)
{
    *queue = (struct evq){.seed = scrambled(seed + STEP)};
    return grow(queue);
}

void evq_pretend(struct evq *queue, ns_t later) { queue->seed += later * STEP; }

void evq_free(struct evq *queue)
{
    free(queue->keys);
    free(queue->events);
    free(queue->winners);
    queue->keys = NULL;
    queue->events = NULL;
    queue->winners = NULL;
}

/* An event that was never scheduled before. */
__attribute__((noinline)) static bool settle(struct evq *queue, struct evq_event *event)
{
    if (queue->used == queue->places && !grow(queue))
        return false;
    queue->events[queue->used] = event;
    event->place = ++queue->used;
    return true;
}

bool evq_schedule(struct evq *queue, struct evq_event *event, ns_t time, uint8_t priority)
{
    if (time < queue->now)
        return false;
    if (event->time == time && event->order && event->order >> (TIE_BITS + NAME_BITS) == priority)
        return true; /* where it is already */
    if (__builtin_expect(!event->place, 0) && !settle(queue, event))
        return false;
    event->time = time;
    event->order = (uint64_t)priority << (TIE_BITS + NAME_BITS) | lot(queue, event, time);
    play(queue, event->place - 1, key_of(time, event->order));
    return true;
}

void evq_cancel(struct evq *queue, struct evq_event *event)
{
    if (!event->order)
        return;
    event->order = 0;
    play(queue, event->place - 1, NOTHING);
}

ns_t evq_next(const struct evq *queue) { return (ns_t)(queue->keys[queue->winners[1]] >> 64); }

uint64_t evq_run(struct evq *queue, ns_t until)
{
    uint64_t count = 0;
    for (ns_t next; (next = evq_next(queue)) <= until && next != EVQ_NEVER; count++) {
        uint32_t place = queue->winners[1];
        struct evq_event *event = queue->events[place];
        INVARIANT(next >= queue->now);
        queue->now = next;
        event->order = 0;
        event->happen(event, next);
        if (!event->order) /* nor was it scheduled anew: until now it held its place */
            play(queue, place, NOTHING);
    }
    if (until != EVQ_NEVER && until > queue->now)
        queue->now = until;
    queue->happened += count;
    return count;
}
