/* Types and small tools that every part of the run-time uses.
 *
 * Units live in type names. Time is whatever the caller's clock counts, one tick a nanosecond: a
 * wall clock, a slowed one, or a simulator's. Nothing in here reads a clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "arena.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the run-time keeps keys and action data in little-endian words; port be_load and be_store first"
#endif

typedef uint64_t ns_t;    /* a time or a duration */
typedef uint64_t bytes_t; /* a size */
typedef uint64_t bps_t;   /* bits a second */
typedef unsigned __int128 u128;
typedef __int128 s128;

#define SW_NEVER ((ns_t)-1)
#define SW_PORTS 512 /* port numbers are 9 bits in v1model */
#define SW_QUEUES 8  /* priorities a port */

#define SW_LIKELY(x) __builtin_expect(!!(x), 1)
#define SW_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For what shrinks to an instruction or two once its arguments are constants. */
#define SW_INLINE static inline __attribute__((always_inline))
#define SW_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Big-endian loads and stores of 1 to 8 bytes; `n` is a constant wherever speed matters. */
SW_INLINE uint64_t be_load(const uint8_t *p, unsigned n)
{
    uint64_t value = 0;
    if (n == 8) {
        memcpy(&value, p, 8);
        return __builtin_bswap64(value);
    }
    if (n == 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        return __builtin_bswap32(word);
    }
    if (n == 2) {
        uint16_t half;
        memcpy(&half, p, 2);
        return __builtin_bswap16(half);
    }
    if (n == 6)
        return be_load(p, 4) << 16 | be_load(p + 4, 2);
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | p[i];
    return value;
}

SW_INLINE void be_store(uint8_t *p, unsigned n, uint64_t value)
{
    if (n == 8) {
        value = __builtin_bswap64(value);
        memcpy(p, &value, 8);
    } else if (n == 4) {
        uint32_t word = __builtin_bswap32((uint32_t)value);
        memcpy(p, &word, 4);
    } else if (n == 2) {
        uint16_t half = __builtin_bswap16((uint16_t)value);
        memcpy(p, &half, 2);
    } else if (n == 6) {
        be_store(p, 4, value >> 16);
        be_store(p + 4, 2, value);
    } else {
        for (unsigned i = 0; i < n; i++)
            p[i] = (uint8_t)(value >> (8 * (n - 1 - i)));
    }
}

/* Zero memory, of a size that is a constant: by plain stores. Left alone gcc writes word by word (rep
 * stos), which takes the processor longer to begin with than this takes altogether; so it is not to
 * know how much it is where it is more. */
SW_INLINE void sw_wipe(void *p, size_t n)
{
    uint8_t *at = p;
    size_t pieces = n > 512 ? 0 : n / 64;
#pragma GCC unroll 8
    for (size_t i = 0; i < pieces; i++, at += 64)
        memset(at, 0, 64);
    n -= pieces * 64;
    if (n > 64)
        __asm__("" : "+r"(n));
    memset(at, 0, n);
}

/* Bits at any offset, most significant first; `bits` is at most 64. */
static inline uint64_t sw_get_bits(const uint8_t *p, size_t at, unsigned bits)
{
    uint64_t value = 0;
    while (bits) {
        unsigned left = 8 - at % 8;
        unsigned take = bits < left ? bits : left;
        unsigned piece = p[at / 8] >> (left - take) & ((1u << take) - 1);
        value = value << take | piece;
        at += take;
        bits -= take;
    }
    return value;
}

static inline void sw_put_bits(uint8_t *p, size_t at, unsigned bits, uint64_t value)
{
    while (bits) {
        unsigned left = 8 - at % 8;
        unsigned take = bits < left ? bits : left;
        unsigned mask = ((1u << take) - 1) << (left - take);
        unsigned piece = (unsigned)(value >> (bits - take)) << (left - take) & mask;
        p[at / 8] = (uint8_t)((p[at / 8] & ~mask) | piece);
        at += take;
        bits -= take;
    }
}

/* Soon so many bytes are wanted. */
static inline void lines_fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const uint8_t *)at + i);
}

/* Cells of 1, 2, 4 or 8 bytes at a distance from each other; `at` NULL: none. */
struct sw_cells {
    void *at;
    uint32_t cell_bytes, stride, count;
    uint64_t from; /* of times: when the clock that they are of was 0 */
};

static inline void *sw_cell(const struct sw_cells *cells, uint32_t i)
{
    return (uint8_t *)cells->at + (size_t)i * cells->stride;
}

/* Of 4 or 8 bytes. */
static inline uint64_t sw_cell_read(const struct sw_cells *cells, uint32_t i)
{
    const void *cell = sw_cell(cells, i);
    return cells->cell_bytes == 8 ? *(const uint64_t *)cell : *(const uint32_t *)cell;
}

static inline void sw_cell_write(const struct sw_cells *cells, uint32_t i, uint64_t value)
{
    void *cell = sw_cell(cells, i);
    if (cells->cell_bytes == 8)
        *(uint64_t *)cell = value;
    else
        *(uint32_t *)cell = (uint32_t)value;
}

/* Shifts by any amount: C leaves those by the type's width or more undefined, P4 does not. */
static inline uint64_t sw_shl64(uint64_t a, uint64_t n) { return n < 64 ? a << n : 0; }
static inline uint64_t sw_shr64(uint64_t a, uint64_t n) { return n < 64 ? a >> n : 0; }
static inline int64_t sw_sar64(int64_t a, uint64_t n) { return a >> (n < 64 ? n : 63); }
static inline u128 sw_shl128(u128 a, uint64_t n) { return n < 128 ? a << n : 0; }
static inline u128 sw_shr128(u128 a, uint64_t n) { return n < 128 ? a >> n : 0; }
static inline s128 sw_sar128(s128 a, uint64_t n) { return a >> (n < 128 ? n : 127); }

/* The low `bits` of a word as a two's complement number. */
static inline int64_t sw_sext64(uint64_t a, unsigned bits)
{
    return (int64_t)(a << (64 - bits)) >> (64 - bits);
}
static inline s128 sw_sext128(u128 a, unsigned bits)
{
    return (s128)(a << (128 - bits)) >> (128 - bits);
}

/* Division as P4 programs can rely on it: by zero is zero, not a trap. */
static inline uint64_t sw_div64(uint64_t a, uint64_t b) { return b ? a / b : 0; }
static inline uint64_t sw_mod64(uint64_t a, uint64_t b) { return b ? a % b : 0; }
static inline u128 sw_div128(u128 a, u128 b) { return b ? a / b : 0; }
static inline u128 sw_mod128(u128 a, u128 b) { return b ? a % b : 0; }

/* Mix key words into a hash; good enough for tables whose keys the operator chooses. */
static inline uint64_t sw_mix(const uint64_t *words, unsigned n)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (unsigned i = 0; i < n; i++) {
        u128 product = (u128)(h ^ words[i]) * 0xd6e8feb86659fd93u;
        h = (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    return h;
}
