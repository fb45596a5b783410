/* half.c - see half.h. */
#include "common/half.h"

#include "common/float_bits.h"
#include "common/simd.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define F16C __attribute__((target("avx2,f16c")))
#include <immintrin.h>
#endif

/* As bits of a float32: how much less the exponent of a half is biased, and the
 * least normal one, 2^-14. */
static const uint32_t rebias = (COH_BIAS - 15) << COH_EXPONENT;
static const uint32_t least = (COH_BIAS - 14) << COH_EXPONENT;

/* --- without F16C -------------------------------------------------------- */

/* A subnormal half is a multiple of 2^-24, as is a float32 between 1/2 and 1:
 * adding 1/2 rounds to one. */
COH_SIMD static int64_t pack(float factor, const float *restrict x, int n,
                             uint16_t *restrict out)
{
    uint32_t zeroed = 0;

    for (int i = 0; i < n; i++) {
        const uint32_t u = coh_bits_of(x[i] * factor), size = u & COH_MAGNITUDE;
        const uint32_t normal =
            (size - rebias + 0xfff + (size >> 13 & 1)) >> 13;
        const uint32_t small =
            coh_bits_of(coh_float_of(size) + 0.5f) - coh_bits_of(0.5f);
        const uint32_t payload =
            coh_choose(size > COH_INFINITE, 0x200 | (size >> 13 & 0x3ff), 0);
        const uint32_t half =
            coh_choose(size >= COH_INFINITE, 0x7c00 | payload,
                       coh_choose(size < least, small, normal));
        out[i] = (uint16_t)((u >> 16 & 0x8000) | half);
        zeroed += (coh_bits_of(x[i]) & COH_MAGNITUDE) > 0 && half == 0;
    }
    return zeroed;
}

COH_SIMD static void unpack(float factor, const uint16_t *restrict in, int n,
                            float *restrict x)
{
    for (int i = 0; i < n; i++) {
        const uint32_t half = in[i], size = (half & 0x7fff) << 13;
        const uint32_t exponent = half & 0x7c00;
        const uint32_t small =
            coh_bits_of(coh_float_of(size + least) - coh_float_of(least));
        const uint32_t finite = coh_choose(exponent == 0, small, size + rebias);
        const uint32_t u =
            coh_choose(exponent == 0x7c00, size | COH_INFINITE, finite);
        x[i] = coh_float_of(u | (half & 0x8000) << 16) * factor;
    }
}

/* --- with it: eight at a time; how many are done ------------------------- */

#ifdef F16C

static bool has_f16c(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
}

F16C static int pack_eights(float factor, const float *x, int n, uint16_t *out,
                            int64_t *zeroed)
{
    const __m256 times = _mm256_set1_ps(factor);
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    const __m256i none = _mm256_setzero_si256();
    __m256i lost = none; /* minus how many, of each lane */
    int lanes[8], i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_loadu_ps(x + i);
        const __m128i half =
            _mm256_cvtps_ph(_mm256_mul_ps(v, times), _MM_FROUND_TO_NEAREST_INT);
        const __m256i before =
            _mm256_and_si256(_mm256_castps_si256(v), magnitude);
        const __m256i after =
            _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 17);
        _mm_storeu_si128((__m128i *)(void *)(out + i), half);
        lost = _mm256_add_epi32(
            lost, _mm256_andnot_si256(_mm256_cmpeq_epi32(before, none),
                                      _mm256_cmpeq_epi32(after, none)));
    }
    _mm256_storeu_si256((__m256i *)(void *)lanes, lost);
    for (int lane = 0; lane < 8; lane++)
        *zeroed -= lanes[lane];
    return i;
}

F16C static int unpack_eights(float factor, const uint16_t *in, int n, float *x)
{
    const __m256 times = _mm256_set1_ps(factor);
    int i = 0;

    for (; i + 8 <= n; i += 8) {
        const __m128i half =
            _mm_loadu_si128((const __m128i *)(const void *)(in + i));
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_cvtph_ps(half), times));
    }
    return i;
}

#endif

/* --- either -------------------------------------------------------------- */

int64_t coh_half_pack(float factor, const float *restrict x, int n,
                      uint16_t *restrict out)
{
    int64_t zeroed = 0;
    int done = 0;

#ifdef F16C
    if (has_f16c())
        done = pack_eights(factor, x, n, out, &zeroed);
#endif
    return zeroed + pack(factor, x + done, n - done, out + done);
}

void coh_half_unpack(float factor, const uint16_t *restrict in, int n,
                     float *restrict x)
{
    int done = 0;

#ifdef F16C
    if (has_f16c())
        done = unpack_eights(factor, in, n, x);
#endif
    unpack(factor, in + done, n - done, x + done);
}
