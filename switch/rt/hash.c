/* CRCs by table, a byte at a time; crc32 by eight bytes at a time, as ECMP and ICRC lean on it.
 *
 * The tables are constants that the loader fills in before anything else runs: spelled out they
 * would be nine pages of numbers that nobody can check by eye.
 */
#include "hash.h"

static uint32_t crc32_table[8][256];
static uint16_t crc16_table[256], ccitt_table[256];
static uint64_t crc64_table[256];
static uint8_t crc8_table[256];

__attribute__((constructor)) static void hash_tables(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint32_t c32 = i, c16 = i;
        uint16_t ccitt = (uint16_t)(i << 8);
        uint8_t c8 = (uint8_t)i;
        uint64_t c64 = i;
        for (unsigned bit = 0; bit < 8; bit++) {
            c32 = c32 >> 1 ^ (c32 & 1 ? 0xedb88320u : 0);
            c16 = c16 >> 1 ^ (c16 & 1 ? 0xa001u : 0);
            ccitt = (uint16_t)(ccitt << 1 ^ (ccitt & 0x8000 ? 0x1021 : 0));
            c8 = (uint8_t)(c8 << 1 ^ (c8 & 0x80 ? 0x07 : 0));
            c64 = c64 >> 1 ^ (c64 & 1 ? 0xd800000000000000u : 0);
        }
        crc32_table[0][i] = c32;
        crc16_table[i] = (uint16_t)c16;
        ccitt_table[i] = ccitt;
        crc8_table[i] = c8;
        crc64_table[i] = c64;
    }
    for (unsigned i = 0; i < 256; i++)
        for (unsigned k = 1; k < 8; k++) {
            uint32_t c = crc32_table[k - 1][i];
            crc32_table[k][i] = c >> 8 ^ crc32_table[0][c & 0xff];
        }
}

uint64_t hash_crc8(const uint8_t *p, size_t n)
{
    uint8_t c = 0;
    while (n--)
        c = crc8_table[c ^ *p++];
    return c;
}

uint64_t hash_crc16(const uint8_t *p, size_t n)
{
    uint32_t c = 0;
    while (n--)
        c = c >> 8 ^ crc16_table[(c ^ *p++) & 0xff];
    return c;
}

uint64_t hash_ccitt(const uint8_t *p, size_t n)
{
    uint16_t c = 0xffff;
    while (n--)
        c = (uint16_t)(c << 8 ^ ccitt_table[c >> 8 ^ *p++]);
    return c;
}

uint64_t hash_crc32(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffff;
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t lo, hi;
        memcpy(&lo, p, 4);
        memcpy(&hi, p + 4, 4);
        lo ^= c;
        c = crc32_table[7][lo & 0xff] ^ crc32_table[6][lo >> 8 & 0xff] ^
            crc32_table[5][lo >> 16 & 0xff] ^ crc32_table[4][lo >> 24] ^
            crc32_table[3][hi & 0xff] ^ crc32_table[2][hi >> 8 & 0xff] ^
            crc32_table[1][hi >> 16 & 0xff] ^ crc32_table[0][hi >> 24];
    }
    if (n >= 4) {
        uint32_t word;
        memcpy(&word, p, 4);
        word ^= c;
        c = crc32_table[3][word & 0xff] ^ crc32_table[2][word >> 8 & 0xff] ^
            crc32_table[1][word >> 16 & 0xff] ^ crc32_table[0][word >> 24];
        p += 4;
        n -= 4;
    }
    while (n--)
        c = c >> 8 ^ crc32_table[0][(c ^ *p++) & 0xff];
    return c ^ 0xffffffff;
}

uint64_t hash_crc64(const uint8_t *p, size_t n)
{
    uint64_t c = 0;
    while (n--)
        c = c >> 8 ^ crc64_table[(c ^ *p++) & 0xff];
    return c;
}

uint64_t hash_identity(const uint8_t *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n && i < 8; i++)
        value = value << 8 | p[i];
    return value;
}

uint64_t hash_xor(const uint8_t *p, size_t n, unsigned bytes)
{
    uint64_t value = 0;
    for (; n >= bytes; p += bytes, n -= bytes)
        value ^= be_load(p, bytes);
    if (n)
        value ^= be_load(p, (unsigned)n) << (8 * (bytes - n));
    return value;
}

/* XXH64 works on four lanes of eight bytes, then folds the lanes and the tail together. */

#define XXH_P1 0x9e3779b185ebca87u
#define XXH_P2 0xc2b2ae3d27d4eb4fu
#define XXH_P3 0x165667b19e3779f9u
#define XXH_P4 0x85ebca77c2b2ae63u
#define XXH_P5 0x27d4eb2f165667c5u

static uint64_t rotl(uint64_t x, unsigned n) { return x << n | x >> (64 - n); }

static uint64_t xxh_round(uint64_t lane, uint64_t word)
{
    return rotl(lane + word * XXH_P2, 31) * XXH_P1;
}

uint64_t hash_xxh64(const uint8_t *p, size_t n)
{
    uint64_t h = XXH_P5, word;
    size_t left = n;
    if (left >= 32) {
        uint64_t lane[4] = {XXH_P1 + XXH_P2, XXH_P2, 0, 0 - XXH_P1};
        for (; left >= 32; left -= 32)
            for (unsigned i = 0; i < 4; i++, p += 8) {
                memcpy(&word, p, 8);
                lane[i] = xxh_round(lane[i], word);
            }
        h = rotl(lane[0], 1) + rotl(lane[1], 7) + rotl(lane[2], 12) + rotl(lane[3], 18);
        for (unsigned i = 0; i < 4; i++)
            h = (h ^ xxh_round(0, lane[i])) * XXH_P1 + XXH_P4;
    }
    h += n;
    for (; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = rotl(h ^ xxh_round(0, word), 27) * XXH_P1 + XXH_P4;
    }
    if (left >= 4) {
        uint32_t half;
        memcpy(&half, p, 4);
        h = rotl(h ^ half * XXH_P1, 23) * XXH_P2 + XXH_P3;
        p += 4;
        left -= 4;
    }
    for (; left; left--)
        h = rotl(h ^ *p++ * XXH_P5, 11) * XXH_P1;
    h = (h ^ h >> 33) * XXH_P2;
    h = (h ^ h >> 29) * XXH_P3;
    return h ^ h >> 32;
}
