/* winograd_taps.c - weights to matrices of winograd.h, and their gradient from
 * them. */
#include "worker/nn/winograd_parts.h"

#if defined(__x86_64__)

#include "worker/nn/winograd_points.h"

enum { TAPS_MOST = 5 };

/* The filters of 16 channels and one other: a lane each. */
typedef struct filters {
    int64_t first; /* in the weights, of lane 0 */
    __m512i lanes; /* from it, in floats */
    int64_t phase[2];
} filters;

AVX512 static filters filters_of(const coh_taps *self, int64_t rows,
                                 int64_t item)
{
    const coh_winograd *shape = self->shape;
    const int64_t fine_step = shape->kernel[0] * shape->kernel[1];
    const int64_t coarse_step = shape->fine_channels * fine_step;
    const int64_t column = item / rows * LANES, row = item % rows;
    const int64_t phased = self->is_turned ? column : row;
    const int64_t phase = phased / shape->fine_channels;
    const int64_t fine = phased % shape->fine_channels;
    const int64_t coarse = self->is_turned ? row : column;
    const int step = (int)(self->is_turned ? fine_step : coarse_step);
    const __m512i count =
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);

    return (filters){
        .first = coarse * coarse_step + fine * fine_step,
        .lanes = _mm512_mullo_epi32(count, _mm512_set1_epi32(step)),
        .phase = { phase / shape->stride, phase % shape->stride },
    };
}

/* Where tap (y, x) of a phase is in the kernel; -1 if it has none. */
static int64_t tap_at(const coh_taps *self, const filters *it, int y, int x)
{
    const coh_winograd *shape = self->shape;
    const int tap[2] = { self->is_turned ? shape->taps - 1 - y : y,
                         self->is_turned ? shape->taps - 1 - x : x };
    int64_t at[2];

    for (int d = 0; d < 2; d++) {
        at[d] = shape->stride * (shape->first[d] + tap[d]) + it->phase[d] +
                shape->before[d];
        if (at[d] < 0 || at[d] >= shape->kernel[d])
            return -1;
    }
    return at[0] * shape->kernel[1] + at[1];
}

INLINE void take_filters(int n, const coh_taps *self, const filters *it,
                         const float *weights, float *to, int64_t step)
{
    _Alignas(64) float taps[TAPS_MOST * TAPS_MOST * LANES];
    _Alignas(64) float made[COH_SQUARE * LANES];

    for (int k = 0; k < n * n; k++) {
        const int64_t at = tap_at(self, it, k / n, k % n);
        _mm512_store_ps(taps + k * LANES,
                        at < 0 ? _mm512_setzero_ps()
                               : _mm512_i32gather_ps(
                                     it->lanes, weights + it->first + at, 4));
    }
    coh_transform_square(COH_TRANSFORM_VALUES, n, taps, n * LANES, LANES, made,
                         LANES);
    for (int p = 0; p < COH_SQUARE; p++)
        _mm512_stream_ps(
            to + p * step,
            coh_times(coh_factors[p / COH_POINTS] * coh_factors[p % COH_POINTS],
                      _mm512_load_ps(made + p * LANES)));
}

AVX512 void coh_winograd_take_weights(const coh_taps *taps,
                                      const float *weights, int64_t first,
                                      int64_t end, coh_matrices *out)
{
    const int64_t step = coh_matrices_step(out);

    for (int64_t i = first; i < end; i++) {
        const filters it = filters_of(taps, out->rows, i);
        float *to = out->data + i * LANES;
        switch (taps->shape->taps) {
#define CASE(n)                                        \
    case n:                                            \
        take_filters(n, taps, &it, weights, to, step); \
        break;
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
#undef CASE
        default:
            COH_ASSERT(false);
        }
    }
    _mm_sfence();
}

/* Of point p, summed, with its factor. */
INLINE __m512 gather_sums(const coh_matrices *from, int nsums, int64_t item,
                          int p)
{
    const int64_t next = coh_matrices_count(from->rows, from->columns);
    const float *at = from->data + item * LANES + p * coh_matrices_step(from);
    __m512 sum = _mm512_load_ps(at);

    for (int i = 1; i < nsums; i++)
        sum = _mm512_add_ps(sum, _mm512_load_ps(at + i * next));
    return coh_times(coh_factors[p / COH_POINTS] * coh_factors[p % COH_POINTS],
                     sum);
}

INLINE void give_filters(int n, const coh_taps *self, const filters *it,
                         const float *sums, float *diff)
{
    _Alignas(64) float made[TAPS_MOST * TAPS_MOST * LANES];

    coh_transform_square(COH_TRANSFORM_SUMS, n, sums, COH_POINTS * LANES, LANES,
                         made, LANES);
    for (int k = 0; k < n * n; k++) {
        const int64_t at = tap_at(self, it, k / n, k % n);
        if (at >= 0)
            _mm512_i32scatter_ps(diff + it->first + at, it->lanes,
                                 _mm512_load_ps(made + k * LANES), 4);
    }
}

AVX512 void coh_winograd_give_weights(const coh_taps *taps,
                                      const coh_matrices *from, int nsums,
                                      int64_t first, int64_t end, float *diff)
{
    _Alignas(64) float sums[COH_SQUARE * LANES];

    for (int64_t i = first; i < end; i++) {
        const filters it = filters_of(taps, from->rows, i);
        for (int p = 0; p < COH_SQUARE; p++)
            _mm512_store_ps(sums + p * LANES, gather_sums(from, nsums, i, p));
        switch (taps->shape->taps) {
#define CASE(n)                                 \
    case n:                                     \
        give_filters(n, taps, &it, sums, diff); \
        break;
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
#undef CASE
        default:
            COH_ASSERT(false);
        }
    }
}

#endif
