/* rng.h - random numbers as pure functions, so that no result depends on how
 * many ranks or threads asked, or in which order.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
 * as 1, 2, 3", SC11): a 64-bit key and a 128-bit counter give four 32-bit
 * words. The key is (seed, stream); the counter (epoch, sample, index).
 * Not collective, no state, any thread.
 */
#ifndef COH_COMMON_RNG_H
#define COH_COMMON_RNG_H

#include <stdint.h>

/* What the numbers are for: no two uses share a stream. A layer adds its
 * index to COH_RNG_LAYER. */
typedef enum coh_rng_stream {
    COH_RNG_INIT,      /* initial parameters */
    COH_RNG_SHUFFLE,   /* the permutation of an epoch */
    COH_RNG_SYNTHETIC, /* generated images */
    COH_RNG_LAYER = 1000
} coh_rng_stream;

typedef struct coh_rng_key {
    uint32_t word[2];
} coh_rng_key;

coh_rng_key coh_rng_key_of(uint64_t seed, uint32_t stream);

/* out[4]: block `index` of the sequence that belongs to (epoch, sample). */
void coh_rng_words(coh_rng_key key, uint32_t epoch, uint64_t sample,
                   uint32_t index, uint32_t out[4]);

/* A 32-bit word as a float in [0, 1), by its 24 high bits. */
static inline float coh_rng_uniform(uint32_t word)
{
    return (float)(word >> 8) * (1.0f / 16777216.0f);
}

/* out[4]: standard normal numbers, by Box and Muller. */
void coh_rng_normals(coh_rng_key key, uint32_t epoch, uint64_t sample,
                     uint32_t index, float out[4]);

/* Element `position` of the permutation of [0, count) that (seed, epoch) names.
 * A Feistel network over the next even power of two, walked until it falls
 * inside: constant memory, whatever the size of the data set.
 * 0 <= position < count. */
int64_t coh_rng_permute(uint64_t seed, uint32_t epoch, int64_t count,
                        int64_t position);

#endif
