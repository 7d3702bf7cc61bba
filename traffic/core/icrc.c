/* CRC-32 twice: eight bytes a step by tables, and 64 bytes a step by carry-less multiplication.
 *
 * Tables: tables[t][b] is what byte b does to the sum when t more bytes follow it, so eight bytes
 * are eight look-ups and an exclusive or.
 *
 * Folding: bits that stand d places before others count as themselves times x^d modulo P. Four
 * lanes of 16 bytes are multiplied by x^512 and added to the 64 bytes that follow, again and again;
 * then the four become one by x^128 each, and the last lane and the rest of the bytes go through
 * the tables. A lane is multiplied half by half. In the reflected order of CRC-32 its low half
 * stands further in front, and the product of two reflected numbers comes out 32 places off and
 * one bit down; hence the constants x^(d+32) and x^(d-32) modulo P, reflected, shifted up by one.
 * The tests recompute them.
 */
#include "icrc.h"

#include "wire.h"

#define POLYNOMIAL 0xEDB88320u

static uint32_t tables[8][256]; /* written once, before main */

__attribute__((constructor)) static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? POLYNOMIAL ^ c >> 1 : c >> 1;
        tables[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int t = 1; t < 8; t++)
            tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xFF];
}

/* Here and below `state` is the sum without the inversions at either end. */
static uint32_t by_tables(uint32_t state, const uint8_t *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= state;
        state = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^
                tables[4][low >> 24] ^ tables[3][high & 0xFF] ^ tables[2][high >> 8 & 0xFF] ^
                tables[1][high >> 16 & 0xFF] ^ tables[0][high >> 24];
    }
    for (; n; p++, n--)
        state = tables[0][(state ^ *p) & 0xFF] ^ state >> 8;
    return state;
}

#if defined(__x86_64__)
#include <immintrin.h>

#define FOLD __attribute__((target("pclmul,sse4.1")))

FOLD static inline __m128i fold(__m128i lane, __m128i by, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(lane, by, 0x00);
    __m128i high = _mm_clmulepi64_si128(lane, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

FOLD static uint32_t by_folding(uint32_t state, const uint8_t *p, size_t n)
{
    const __m128i by512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    __m128i lane[4];
    uint8_t last[16];

    for (int i = 0; i < 4; i++)
        lane[i] = _mm_loadu_si128((const __m128i *)(p + 16 * i));
    lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128((int)state));
    for (p += 64, n -= 64; n >= 64; p += 64, n -= 64)
        for (int i = 0; i < 4; i++)
            lane[i] = fold(lane[i], by512, _mm_loadu_si128((const __m128i *)(p + 16 * i)));
    for (int i = 1; i < 4; i++)
        lane[0] = fold(lane[0], by128, lane[i]);
    for (; n >= 16; p += 16, n -= 16)
        lane[0] = fold(lane[0], by128, _mm_loadu_si128((const __m128i *)p));
    _mm_storeu_si128((__m128i *)last, lane[0]);
    return by_tables(by_tables(0, last, sizeof last), p, n);
}

static bool can_fold(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}
#else
static uint32_t by_folding(uint32_t state, const uint8_t *p, size_t n)
{
    return by_tables(state, p, n);
}
static bool can_fold(void) { return false; }
#endif

uint32_t crc32_more_portable(uint32_t crc, const uint8_t *p, size_t n)
{
    return ~by_tables(~crc, p, n);
}

uint32_t crc32_more(uint32_t crc, const uint8_t *p, size_t n)
{
    return n >= 64 && can_fold() ? ~by_folding(~crc, p, n) : crc32_more_portable(crc, p, n);
}

/* What a router may change, taken as ones. */
static void mask_ip(uint8_t *ip, uint32_t length)
{
    if (ip_is_v6(ip)) {
        ip[0] = 0x6F;
        memset(ip + 1, 0xFF, 3);
        be16_store(ip + 4, (uint16_t)(length - WIRE_IPV6));
        ip[7] = 0xFF;
    } else {
        ip[1] = ip[8] = 0xFF;
        memset(ip + 10, 0xFF, 2);
        be16_store(ip + 2, (uint16_t)length);
    }
}

uint32_t icrc_of(const uint8_t *ip, const uint8_t *bth, size_t n, uint32_t length,
                 uint16_t udp_port)
{
    uint8_t head[8 + WIRE_IPV6 + WIRE_UDP + WIRE_BTH];
    uint32_t of_ip = ip_bytes(ip);
    size_t first = n < WIRE_BTH ? n : WIRE_BTH; /* UET has shorter ones */
    uint8_t *masked_ip = head + 8, *udp = masked_ip + of_ip, *masked_bth = udp + WIRE_UDP;

    memset(head, 0xFF, 8);
    memcpy(masked_ip, ip, of_ip + WIRE_UDP);
    memcpy(masked_bth, bth, first);
    mask_ip(masked_ip, length);
    be16_store(udp + 2, udp_port);
    be16_store(udp + 4, (uint16_t)(length - of_ip));
    memset(udp + 6, 0xFF, 2);
    if (udp_port == ROCE_PORT)
        masked_bth[4] = 0xFF;
    uint32_t crc = crc32_more_portable(0, head, (size_t)(masked_bth + first - head));
    return crc32_more(crc, bth + first, n - first);
}
