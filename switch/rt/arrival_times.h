/* When the frames of a cable are due, told beside the cable.
 *
 * Whoever sends hands a frame over as soon as it leaves, and notes here when its last bit arrives at the
 * other end; whoever receives lets it wait until then. So neither has to be on time for the other to
 * know what the time was: it is enough that a frame is there before it is due, and a cable is long.
 *
 * There is one of these for each direction, one after the other in a file that the processes at both ends
 * map whole: how large pages are does not matter then. A frame is
 * known by its first bytes and its length. Frames that the kernel sends by the same interface are not
 * noted, and come when they come. One writes, one reads, who says how many frames it has room for: a long
 * cable may hold more. Those beyond that, or all where nobody reads, whoever sends keeps until they are due.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ARRIVAL_NOTED 1020 /* so that all is four pages */
#define ARRIVAL_KNOWN_BY 128u /* bytes of a frame: its headers */
#define ARRIVAL_SLACK 4u /* a turn may be late by one such part of a cable's delay */
#define ARRIVAL_SLACK_LEAST 50000u /* ns of the real clock, below which a turn more is as good as a sleep */

struct arrival_times {
    uint32_t room; /* atomic: frames under way that whoever reads has room for; 0: nobody reads */
    uint32_t unused;
    uint64_t count; /* atomic; noted so far */
    uint64_t found; /* atomic; of these, up to the last that came */
    uint64_t known; /* of these, as far as whoever writes has looked */
    uint64_t unused_too[4];
    struct {
        uint64_t frame, at; /* at: CLOCK_MONOTONIC */
    } noted[ARRIVAL_NOTED];
};
_Static_assert(sizeof(struct arrival_times) == 16384, "switch/layout.py says so");

/* The one at a place of the file; NULL if there is none there. */
static inline struct arrival_times *arrival_at(uint8_t *file, uint64_t bytes, uint64_t place)
{
    if (place % sizeof(uint64_t) || bytes < sizeof(struct arrival_times) || place > bytes - sizeof(struct arrival_times))
        return NULL;
    return (struct arrival_times *)(void *)(file + place);
}

/* How late a turn may be, by the fabric's clock, where whoever is at the other end waits for frames until they
 * are due: in time is what is handed over before that, a cable later than it left. What one turn does
 * for several frames costs less than several turns. */
static inline uint64_t arrival_slack(uint64_t delay, double dilation)
{
    uint64_t slack = delay / ARRIVAL_SLACK;
    return (double)slack * dilation < ARRIVAL_SLACK_LEAST ? 0 : slack;
}

static inline uint64_t arrival_frame(const uint8_t *frame, uint32_t len)
{
    uint64_t sum = len;
    for (uint32_t i = 0, most = len < ARRIVAL_KNOWN_BY ? len : ARRIVAL_KNOWN_BY; i < most; i += 8) {
        uint64_t part = 0;
        memcpy(&part, frame + i, most - i < 8 ? most - i : 8);
        sum = (sum ^ part) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    return sum;
}

static inline bool arrival_times_are_read(const struct arrival_times *arrival_times)
{
    return arrival_times && __atomic_load_n(&arrival_times->room, __ATOMIC_ACQUIRE);
}

/* Whether whoever reads has room for one more: whoever writes asks. */
static inline bool arrival_has_room(struct arrival_times *arrival_times)
{
    uint32_t room = arrival_times ? __atomic_load_n(&arrival_times->room, __ATOMIC_ACQUIRE) : 0;
    if (!room || arrival_times->count - arrival_times->known < room)
        return room != 0;
    arrival_times->known = __atomic_load_n(&arrival_times->found, __ATOMIC_ACQUIRE);
    return arrival_times->count - arrival_times->known < room;
}

/* To be called before the frame is handed over. */
static inline void arrival_note(struct arrival_times *arrival_times, const uint8_t *frame, uint32_t len, uint64_t at)
{
    uint64_t place = arrival_times->count % ARRIVAL_NOTED;
    arrival_times->noted[place].frame = arrival_frame(frame, len);
    arrival_times->noted[place].at = at;
    __atomic_store_n(&arrival_times->count, arrival_times->count + 1, __ATOMIC_RELEASE);
}

/* When a frame that came is due, or 0; `seen` is how many were noted up to the last that was found. */
static inline uint64_t arrival_find(struct arrival_times *arrival_times, uint64_t *seen, const uint8_t *frame,
                                    uint32_t len)
{
    uint64_t known = arrival_frame(frame, len), count = __atomic_load_n(&arrival_times->count, __ATOMIC_ACQUIRE);
    if (count - *seen > ARRIVAL_NOTED)
        *seen = count - ARRIVAL_NOTED;
    for (uint64_t i = *seen; i < count; i++)
        if (arrival_times->noted[i % ARRIVAL_NOTED].frame == known) {
            *seen = i + 1;
            __atomic_store_n(&arrival_times->found, *seen, __ATOMIC_RELEASE);
            return arrival_times->noted[i % ARRIVAL_NOTED].at;
        }
    return 0;
}

/* From now on, with room for so many frames, but for more than can be told; with 0 no more. */
static inline void arrival_read(struct arrival_times *arrival_times, uint64_t *seen, uint32_t room)
{
    *seen = __atomic_load_n(&arrival_times->count, __ATOMIC_ACQUIRE);
    __atomic_store_n(&arrival_times->found, *seen, __ATOMIC_RELEASE);
    __atomic_store_n(&arrival_times->room, room < ARRIVAL_NOTED ? room : ARRIVAL_NOTED, __ATOMIC_RELEASE);
}
