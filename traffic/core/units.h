/* Types that carry their units, and big-endian loads and stores.
 *
 * Time is whatever the caller's clock counts, one tick a nanosecond of the fabric. Where a rate
 * makes durations that are no whole nanoseconds (a 4 KB frame at 400 Gb/s lasts 83.7 ns) the core
 * counts picoseconds, so that nothing drifts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t ns_t;    /* a time or a duration */
typedef uint64_t ps_t;    /* the same, in picoseconds */
typedef uint64_t bytes_t; /* a size */
typedef uint64_t bps_t;   /* bits a second */

#define NS_NEVER ((ns_t)-1)
#define PS_NEVER ((ps_t)-1)
#define PS_PER_NS 1000u

static inline ps_t ps_of_ns(ns_t ns) { return ns * PS_PER_NS; }

/* The first whole nanosecond that is not before `ps`. */
static inline ns_t ns_after_ps(ps_t ps)
{
    return ps == PS_NEVER ? NS_NEVER : (ps + PS_PER_NS - 1) / PS_PER_NS;
}

/* How long `bytes` take at `rate`. Whole packets only: 2 MB is the most that does not overflow. */
static inline ps_t ps_for_bytes(bytes_t bytes, bps_t rate)
{
    return bytes * 8 * 1000000000000u / rate;
}

static inline uint16_t be16_load(const uint8_t *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap16(v);
}

static inline uint32_t be32_load(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap32(v);
}

static inline uint64_t be64_load(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

static inline uint32_t be24_load(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | be16_load(p + 1);
}

static inline void be16_store(uint8_t *p, uint16_t v)
{
    v = __builtin_bswap16(v);
    memcpy(p, &v, sizeof v);
}

static inline void be32_store(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, sizeof v);
}

static inline void be64_store(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

static inline void be24_store(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    be16_store(p + 1, (uint16_t)v);
}

static inline ns_t ns_least(ns_t a, ns_t b) { return a < b ? a : b; }
