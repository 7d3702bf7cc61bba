/* What generated code calls besides tables: primitives too long to spell out each time. */
#pragma once

#include "hash.h"
#include "meter.h"
#include "profile.h"
#include "state.h"
#include "sw.h"

/* An index into a stack of `size`; one out of bounds goes to the spare element behind the last. */
static inline uint64_t sw_index(uint64_t i, uint64_t size) { return i < size ? i : size; }

static inline uint64_t sw_count128(u128 n, uint64_t most)
{
    return n < most ? (uint64_t)n : most;
}

static inline uint64_t sw_modulo(uint64_t a, uint64_t n) { return n ? a % n : 0; }

/* The two halves of a word, added: what it is worth in a one's complement sum. */
static inline uint64_t sw_halves(uint64_t word) { return (word >> 32) + (word & 0xffffffff); }

#define SW_CLAMP(name, type)                                                                       \
    static inline type sw_clamp_##name(type x, type low, type high)                                \
    {                                                                                              \
        return x < low ? low : x > high ? high : x;                                                \
    }
SW_CLAMP(u64, uint64_t)
SW_CLAMP(s64, int64_t)
SW_CLAMP(u128, u128)
SW_CLAMP(s128, s128)
#undef SW_CLAMP

/* push_front and pop_front on `size` elements of `bytes` each. Elements that enter are all zero,
 * hence invalid. */
static inline void sw_push(void *stack, size_t bytes, uint64_t size, uint32_t *next, uint64_t n)
{
    n = n < size ? n : size;
    memmove((uint8_t *)stack + n * bytes, stack, (size - n) * bytes);
    memset(stack, 0, n * bytes);
    *next = (uint32_t)(*next + n < size ? *next + n : size);
}

static inline void sw_pop(void *stack, size_t bytes, uint64_t size, uint32_t *next, uint64_t n)
{
    n = n < size ? n : size;
    memmove(stack, (uint8_t *)stack + n * bytes, (size - n) * bytes);
    memset((uint8_t *)stack + (size - n) * bytes, 0, n * bytes);
    *next = (uint32_t)(*next > n ? *next - n : 0);
}

/* Packets that wait (waiting.h): whether any of these bytes is not zero; take them along, and back. */
SW_INLINE bool sw_holds(const void *part, size_t bytes)
{
    uint64_t word, any = 0;
    size_t at = 0;
    for (; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, (const uint8_t *)part + at, sizeof word);
        any |= word;
    }
    for (; at < bytes; at++)
        any |= ((const uint8_t *)part)[at];
    return any != 0;
}

SW_INLINE uint8_t *sw_pack(uint8_t *to, const void *part, size_t bytes)
{
    memcpy(to, part, bytes);
    return to + bytes;
}

SW_INLINE const uint8_t *sw_unpack(const uint8_t *from, void *part, size_t bytes)
{
    memcpy(part, from, bytes);
    return from + bytes;
}

/* A number from low to high: xorshift64*, seeded per switch, so runs can be repeated. */
static inline uint64_t sw_random(struct sw_state *state, uint64_t low, uint64_t high)
{
    uint64_t x = state->random;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    state->random = x;
    uint64_t drawn = x * 0x2545f4914f6cdd1du, span = high - low + 1;
    return span ? low + (uint64_t)((u128)drawn * span >> 64) : drawn;
}

static inline void sw_count_direct(const struct sw_run *r, struct sw_counter *counter)
{
    counter->packets++;
    counter->bytes += r->pkt->ingress_len;
}

static inline void sw_count(const struct sw_run *r, struct sw_counter *cells, uint64_t size, uint64_t i)
{
    if (i < size)
        sw_count_direct(r, &cells[i]);
}
