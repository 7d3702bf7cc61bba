/* The hash algorithms of v1model, bit for bit as BMv2 computes them over the same bytes. */
#pragma once

#include "base.h"

uint64_t hash_crc8(const uint8_t *p, size_t n);
uint64_t hash_crc16(const uint8_t *p, size_t n);  /* CRC-16/ARC */
uint64_t hash_crc32(const uint8_t *p, size_t n);  /* CRC-32 as in zlib */
uint64_t hash_crc64(const uint8_t *p, size_t n);
uint64_t hash_ccitt(const uint8_t *p, size_t n);  /* CRC-16/CCITT-FALSE */
uint64_t hash_xxh64(const uint8_t *p, size_t n);  /* XXH64, seed 0 */
uint64_t hash_identity(const uint8_t *p, size_t n); /* the first eight bytes */
uint64_t hash_xor(const uint8_t *p, size_t n, unsigned bytes); /* words of 1, 2, 4 or 8 bytes */

/* One's complement sum of big-endian 16-bit words, unfolded, to be added to others like it. */
static inline uint64_t hash_sum16(const uint8_t *p, size_t n)
{
    uint64_t sum = 0;
    for (; n >= 4; p += 4, n -= 4)
        sum += be_load(p, 4);
    if (n >= 2) {
        sum += be_load(p, 2) << 16;
        p += 2;
        n -= 2;
        if (n)
            sum += (uint64_t)p[0] << 8;
    } else if (n) {
        sum += (uint64_t)p[0] << 24;
    }
    return sum;
}

static inline uint64_t hash_fold16(uint64_t sum)
{
    sum += sum << 32 | sum >> 32; /* the upper half is that of both, and what they carry */
    uint32_t half = (uint32_t)(sum >> 32);
    half += half << 16 | half >> 16;
    return (uint16_t)~(half >> 16);
}

static inline uint64_t hash_csum16(const uint8_t *p, size_t n)
{
    return hash_fold16(hash_sum16(p, n));
}
