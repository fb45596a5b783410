/* float_bits.h - float32 values as their bits. */
#ifndef COH_COMMON_FLOAT_BITS_H
#define COH_COMMON_FLOAT_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* All but the sign; the least that is infinite; where the exponent begins, and
 * what is added to it. */
#define COH_MAGNITUDE 0x7fffffffu
#define COH_INFINITE 0x7f800000u
enum { COH_EXPONENT = 23, COH_BIAS = 127 };

static inline uint32_t coh_bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float coh_float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a or b. Not a branch: the compiler would not make vectors of one that has
 * additions on one side. */
static inline uint32_t coh_choose(bool is_a, uint32_t a, uint32_t b)
{
    const uint32_t mask = -(uint32_t)is_a;

    return (a & mask) | (b & ~mask);
}

#endif
