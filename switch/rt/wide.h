/* Numbers of more than 128 bits: two's complement, WIDE_WORDS words, lowest first.
 *
 * The program defines WIDE_WORDS, large enough for its widest field and the bits its arithmetic
 * adds. Nothing here is quick; fields this wide are rare, and mostly moved about.
 */
#pragma once

#include "base.h"

#define WIDE_BITS (WIDE_WORDS * 64u)

typedef struct {
    uint64_t word[WIDE_WORDS];
} wide_t;

static inline wide_t wide_fill(uint64_t low, uint64_t next, uint64_t rest)
{
    wide_t x;
    x.word[0] = low;
    x.word[1] = next;
    for (unsigned i = 2; i < WIDE_WORDS; i++)
        x.word[i] = rest;
    return x;
}

static inline wide_t wide_from_u64(uint64_t a) { return wide_fill(a, 0, 0); }
static inline wide_t wide_from_u128(u128 a)
{
    return wide_fill((uint64_t)a, (uint64_t)(a >> 64), 0);
}
static inline wide_t wide_from_s64(int64_t a)
{
    uint64_t sign = a < 0 ? UINT64_MAX : 0;
    return wide_fill((uint64_t)a, sign, sign);
}
static inline wide_t wide_from_s128(s128 a)
{
    return wide_fill((uint64_t)a, (uint64_t)((u128)a >> 64), a < 0 ? UINT64_MAX : 0);
}
static inline wide_t wide_from_words(const uint64_t *words, unsigned n, bool negative)
{
    wide_t x;
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        x.word[i] = i < n ? words[i] : negative ? UINT64_MAX : 0;
    return x;
}

static inline uint64_t wide_low64(wide_t a) { return a.word[0]; }
static inline u128 wide_low128(wide_t a) { return (u128)a.word[1] << 64 | a.word[0]; }
static inline bool wide_negative(wide_t a) { return a.word[WIDE_WORDS - 1] >> 63; }

#define WIDE_BITWISE(name, op)                                                                     \
    static inline wide_t wide_##name(wide_t a, wide_t b)                                           \
    {                                                                                              \
        for (unsigned i = 0; i < WIDE_WORDS; i++)                                                  \
            a.word[i] = a.word[i] op b.word[i];                                                    \
        return a;                                                                                  \
    }
WIDE_BITWISE(and, &)
WIDE_BITWISE(or, |)
WIDE_BITWISE(xor, ^)
#undef WIDE_BITWISE

static inline wide_t wide_not(wide_t a)
{
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        a.word[i] = ~a.word[i];
    return a;
}

static inline wide_t wide_add(wide_t a, wide_t b)
{
    u128 carry = 0;
    for (unsigned i = 0; i < WIDE_WORDS; i++) {
        carry += (u128)a.word[i] + b.word[i];
        a.word[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return a;
}

static inline wide_t wide_sub(wide_t a, wide_t b)
{
    return wide_add(wide_add(a, wide_not(b)), wide_from_u64(1));
}

static inline wide_t wide_mul(wide_t a, wide_t b)
{
    wide_t x = wide_from_u64(0);
    for (unsigned i = 0; i < WIDE_WORDS; i++) {
        u128 carry = 0;
        for (unsigned k = 0; i + k < WIDE_WORDS; k++) {
            carry += (u128)a.word[i] * b.word[k] + x.word[i + k];
            x.word[i + k] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    return x;
}

static inline wide_t wide_shl(wide_t a, uint64_t n)
{
    wide_t x = wide_from_u64(0);
    for (uint64_t i = n / 64; n < WIDE_BITS && i < WIDE_WORDS; i++) {
        x.word[i] = a.word[i - n / 64] << n % 64;
        if (n % 64 && i > n / 64)
            x.word[i] |= a.word[i - n / 64 - 1] >> (64 - n % 64);
    }
    return x;
}

static inline wide_t wide_shr(wide_t a, uint64_t n)
{
    uint64_t sign = wide_negative(a) ? UINT64_MAX : 0;
    wide_t x = wide_fill(sign, sign, sign);
    for (uint64_t i = 0; n < WIDE_BITS && i + n / 64 < WIDE_WORDS; i++) {
        uint64_t above = i + n / 64 + 1 < WIDE_WORDS ? a.word[i + n / 64 + 1] : sign;
        x.word[i] = a.word[i + n / 64] >> n % 64;
        if (n % 64)
            x.word[i] |= above << (64 - n % 64);
    }
    return x;
}

/* Less than, equal to or greater than zero, as a is to b. */
static inline int wide_compare(wide_t a, wide_t b)
{
    if (wide_negative(a) != wide_negative(b))
        return wide_negative(a) ? -1 : 1;
    for (unsigned i = WIDE_WORDS; i-- > 0;)
        if (a.word[i] != b.word[i])
            return a.word[i] < b.word[i] ? -1 : 1;
    return 0;
}

static inline wide_t wide_clamp(wide_t x, wide_t low, wide_t high)
{
    return wide_compare(x, low) < 0 ? low : wide_compare(x, high) > 0 ? high : x;
}

static inline uint64_t wide_count(wide_t n, uint64_t most)
{
    return wide_compare(n, wide_from_u64(most)) < 0 ? n.word[0] : most;
}

static inline wide_t wide_trunc(wide_t a, unsigned bits)
{
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        if (bits <= i * 64)
            a.word[i] = 0;
        else if (bits < (i + 1) * 64)
            a.word[i] &= ((uint64_t)1 << bits % 64) - 1;
    return a;
}

static inline wide_t wide_sext(wide_t a, unsigned bits)
{
    return wide_shr(wide_shl(a, WIDE_BITS - bits), WIDE_BITS - bits);
}

/* Long division of magnitudes; the sign follows C, and a division by zero gives zero. */
static inline wide_t wide_divide(wide_t a, wide_t b, wide_t *rest)
{
    wide_t zero = wide_from_u64(0), quotient = zero, remainder = zero;
    bool minus_a = wide_negative(a), minus_b = wide_negative(b);
    a = minus_a ? wide_sub(zero, a) : a;
    b = minus_b ? wide_sub(zero, b) : b;
    for (unsigned bit = WIDE_BITS; wide_compare(b, zero) && bit-- > 0;) {
        remainder = wide_shl(remainder, 1);
        remainder.word[0] |= a.word[bit / 64] >> bit % 64 & 1;
        if (wide_compare(remainder, b) >= 0) {
            remainder = wide_sub(remainder, b);
            quotient.word[bit / 64] |= (uint64_t)1 << bit % 64;
        }
    }
    *rest = minus_a ? wide_sub(zero, remainder) : remainder;
    return minus_a != minus_b ? wide_sub(zero, quotient) : quotient;
}
static inline wide_t wide_div(wide_t a, wide_t b)
{
    wide_t rest;
    return wide_divide(a, b, &rest);
}
static inline wide_t wide_mod(wide_t a, wide_t b)
{
    wide_t rest;
    wide_divide(a, b, &rest);
    return rest;
}

static inline wide_t wide_load(const uint8_t *p, size_t at, unsigned bits)
{
    wide_t x = wide_from_u64(0);
    for (unsigned done = 0; done < bits; done += 64) {
        unsigned take = bits - done < 64 ? bits - done : 64;
        x.word[done / 64] = sw_get_bits(p, at + bits - done - take, take);
    }
    return x;
}
