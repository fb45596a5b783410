/* winograd_points.h - the three transforms of winograd.h, of 16 channels at
 * once: for its files only.
 *
 * The points x are 0, 1, -1, 2, -2, 1/2, -1/2 and infinity. Cook and Toom: a
 * filter of r taps and the n = 9 - r sums it makes are polynomials, known by
 * their values there; transposed, that gives the sums of 8 values of input. Each
 * point has a factor, here kept apart (coh_factors): it belongs to the taps.
 */
#ifndef COH_WORKER_NN_WINOGRAD_POINTS_H
#define COH_WORKER_NN_WINOGRAD_POINTS_H

#include "worker/nn/avx512.h"
#include "worker/nn/winograd_parts.h"

typedef enum coh_transform {
    COH_TRANSFORM_SEEN,   /* 8 values of input -> 8 points (B^T) */
    COH_TRANSFORM_VALUES, /* n coefficients -> 8 points (A, and G) */
    COH_TRANSFORM_SUMS    /* 8 points -> n coefficients (A^T, and G^T) */
} coh_transform;

static const float coh_factors[COH_POINTS] = { 1 / 4.0f,   1 / 18.0f,
                                               1 / 18.0f,  1 / 360.0f,
                                               1 / 360.0f, 16 / 45.0f,
                                               16 / 45.0f, 1 / 4.0f };

INLINE __m512 coh_times(float factor, __m512 x)
{
    return _mm512_mul_ps(_mm512_set1_ps(factor), x);
}

/* factor * x + sum */
INLINE __m512 coh_plus(float factor, __m512 x, __m512 sum)
{
    return _mm512_fmadd_ps(_mm512_set1_ps(factor), x, sum);
}

INLINE void coh_pair(__m512 even, __m512 odd, __m512 *out)
{
    out[0] = _mm512_add_ps(even, odd);
    out[1] = _mm512_sub_ps(even, odd);
}

INLINE void coh_seen(const __m512 *d, __m512 *out)
{
    out[0] = coh_plus(21, _mm512_sub_ps(d[4], d[2]),
                      coh_times(4, _mm512_sub_ps(d[0], d[6])));
    coh_pair(coh_plus(17, d[4], coh_times(-4, _mm512_add_ps(d[2], d[6]))),
             coh_plus(17, d[3], coh_times(-4, _mm512_add_ps(d[1], d[5]))),
             out + 1);
    coh_pair(coh_plus(-5, d[4], coh_plus(4, d[6], d[2])),
             coh_plus(-10, d[3], coh_plus(8, d[5], coh_times(2, d[1]))),
             out + 3);
    coh_pair(coh_plus(-10, d[4], coh_plus(2, d[6], coh_times(8, d[2]))),
             coh_plus(-5, d[3], coh_plus(4, d[1], d[5])), out + 5);
    out[7] = coh_plus(21, _mm512_sub_ps(d[3], d[5]),
                      coh_times(4, _mm512_sub_ps(d[7], d[1])));
}

/* Those of even or odd degree of a polynomial at x, x^2 being `square`. */
INLINE __m512 coh_half(int n, const __m512 *c, int odd, float x)
{
    const float square = x * x;
    const int last = (n - 1 - odd) / 2 * 2 + odd;
    __m512 sum = c[last];

    UNROLL for (int i = last - 2; i >= 0; i -= 2) sum =
        coh_plus(square, sum, c[i]);
    return odd && x != 1 ? coh_times(x, sum) : sum;
}

INLINE void coh_values(int n, const __m512 *c, __m512 *out)
{
    static const float at[] = { 1, 2, 0.5f };

    out[0] = c[0];
    UNROLL for (int k = 0; k < 3; k++) coh_pair(
        coh_half(n, c, 0, at[k]), coh_half(n, c, 1, at[k]), out + 1 + 2 * k);
    out[7] = c[n - 1];
}

INLINE void coh_sums(int n, const __m512 *p, __m512 *out)
{
    const __m512 even[3] = { _mm512_add_ps(p[1], p[2]),
                             _mm512_add_ps(p[3], p[4]),
                             _mm512_add_ps(p[5], p[6]) };
    const __m512 odd[3] = { _mm512_sub_ps(p[1], p[2]),
                            _mm512_sub_ps(p[3], p[4]),
                            _mm512_sub_ps(p[5], p[6]) };

    UNROLL for (int i = 0; i < n; i++)
    {
        const __m512 *s = i % 2 == 0 ? even : odd;
        const float power = (float)(1 << i);
        out[i] = coh_plus(1 / power, s[2], coh_plus(power, s[1], s[0]));
    }
    out[0] = _mm512_add_ps(out[0], p[0]);
    out[n - 1] = _mm512_add_ps(out[n - 1], p[7]);
}

INLINE void coh_transform_line(coh_transform kind, int n, const __m512 *in,
                               __m512 *out)
{
    if (kind == COH_TRANSFORM_SEEN)
        coh_seen(in, out);
    else if (kind == COH_TRANSFORM_VALUES)
        coh_values(n, in, out);
    else
        coh_sums(n, in, out);
}

/* Rows and columns of a square: value (y, x) of `in` is at y * row + x * column,
 * and the k-th of `out`, rows first, at k * step. n: coefficients in one
 * direction. */
INLINE void coh_transform_square(coh_transform kind, int n, const float *in,
                                 int64_t row, int64_t column, float *out,
                                 int64_t step)
{
    const int from = kind == COH_TRANSFORM_VALUES ? n : COH_POINTS;
    const int to = kind == COH_TRANSFORM_SUMS ? n : COH_POINTS;
    __m512 half[COH_SQUARE]; /* [to][from] */
    __m512 line[COH_POINTS], made[COH_POINTS];

    for (int x = 0; x < from; x++) {
        UNROLL for (int y = 0; y < from; y++) line[y] =
            _mm512_loadu_ps(in + y * row + x * column);
        coh_transform_line(kind, n, line, made);
        UNROLL for (int y = 0; y < to; y++) half[y * from + x] = made[y];
    }
    for (int y = 0; y < to; y++) {
        coh_transform_line(kind, n, half + y * from, made);
        UNROLL for (int x = 0; x < to; x++)
            _mm512_store_ps(out + (y * to + x) * step, made[x]);
    }
}

#endif
