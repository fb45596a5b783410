/* rng.c - see rng.h. */
#include "common/rng.h"

#include <math.h>

#include "common/status.h"

enum { PHILOX_ROUNDS = 10, FEISTEL_ROUNDS = 6 };

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u; /* SplitMix64's finaliser */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

coh_rng_key coh_rng_key_of(uint64_t seed, uint32_t stream)
{
    const uint64_t mixed = mix(mix(seed) ^ stream);
    return (coh_rng_key){ { (uint32_t)mixed, (uint32_t)(mixed >> 32) } };
}

void coh_rng_words(coh_rng_key key, uint32_t epoch, uint64_t sample,
                   uint32_t index, uint32_t out[4])
{
    uint32_t c[4] = { index, (uint32_t)sample, (uint32_t)(sample >> 32),
                      epoch };
    uint32_t k0 = key.word[0], k1 = key.word[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)0xd2511f53u * c[0];
        const uint64_t p1 = (uint64_t)0xcd9e8d57u * c[2];
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    for (int i = 0; i < 4; i++)
        out[i] = c[i];
}

void coh_rng_normals(coh_rng_key key, uint32_t epoch, uint64_t sample,
                     uint32_t index, float out[4])
{
    const double two_pi = 6.283185307179586;
    uint32_t word[4];

    coh_rng_words(key, epoch, sample, index, word);
    for (int i = 0; i < 4; i += 2) {
        const double u = (word[i] + 1.0) / 4294967296.0; /* in (0, 1] */
        const double angle = two_pi * (word[i + 1] / 4294967296.0);
        const double radius = sqrt(-2.0 * log(u));
        out[i] = (float)(radius * cos(angle));
        out[i + 1] = (float)(radius * sin(angle));
    }
}

/* One pass of the network: a bijection of [0, 2^(2 half)). */
static uint64_t feistel(coh_rng_key key, uint32_t epoch, int half, uint64_t x)
{
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    uint64_t left = x >> half, right = x & mask;

    for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
        uint32_t word[4];
        coh_rng_words(key, epoch, right, round, word);
        const uint64_t f = ((uint64_t)word[1] << 32 | word[0]) & mask;
        const uint64_t next = left ^ f;
        left = right;
        right = next;
    }
    return left << half | right;
}

int64_t coh_rng_permute(uint64_t seed, uint32_t epoch, int64_t count,
                        int64_t position)
{
    COH_ASSERT(position >= 0 && position < count);
    const coh_rng_key key = coh_rng_key_of(seed, COH_RNG_SHUFFLE);
    int half = 1;
    while (((uint64_t)1 << (2 * half)) < (uint64_t)count)
        half++;

    uint64_t x = (uint64_t)position;
    do {
        x = feistel(key, epoch, half, x);
    } while (x >= (uint64_t)count);
    return (int64_t)x;
}
