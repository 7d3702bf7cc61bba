/* The bytes of a message, computed rather than kept: both ends know them, so every one is checked.
 *
 * Word k of message m is a mix of m and k, so a byte that lands in the wrong message or at the
 * wrong place shows. Offsets are multiples of eight, as path MTUs are.
 */
#pragma once

#include "units.h"

static inline uint64_t pattern_word(uint32_t message, uint64_t index)
{
    uint64_t x = (index + 1) * 0x9E3779B97F4A7C15u ^ (uint64_t)message * 0xD6E8FEB86659FD93u;
    return x ^ x >> 29;
}

static inline void pattern_fill(uint8_t *p, uint32_t message, uint64_t offset, size_t n)
{
    uint64_t index = offset / 8, word;
    for (; n >= 8; p += 8, n -= 8) {
        word = pattern_word(message, index++);
        memcpy(p, &word, 8);
    }
    word = pattern_word(message, index);
    memcpy(p, &word, n);
}

static inline bool pattern_matches(const uint8_t *p, uint32_t message, uint64_t offset, size_t n)
{
    uint64_t index = offset / 8, wrong = 0, word, got = 0;
    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&got, p, 8);
        wrong |= got ^ pattern_word(message, index++);
    }
    got = word = 0;
    uint64_t last = pattern_word(message, index);
    memcpy(&got, p, n);
    memcpy(&word, &last, n);
    return !(wrong | (got ^ word));
}
