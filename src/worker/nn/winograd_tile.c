/* winograd_tile.c - tiles of a side of winograd.h to matrices, and back. */
#include "worker/nn/winograd_parts.h"

#if defined(__x86_64__)

#include "worker/nn/winograd_points.h"

/* Where a tile lies, for one block of channels of one phase. */
typedef struct place {
    int64_t y, x;    /* of its first value; may lie outside */
    int64_t channel; /* first of the block */
    float *plane;    /* [H][W][16] */
} place;

static place place_of(const coh_side *side, const coh_tiles *tiles,
                      int64_t column, int64_t tile)
{
    const int64_t in_image = tiles->count[0] * tiles->count[1];
    const int64_t row = tile % in_image / tiles->count[1];
    const int64_t phase = column / side->blocks, block = column % side->blocks;
    const int64_t half = side->phases > 1 ? side->step : 1;

    return (place){
        .y = (row * tiles->pitch + side->from[0]) * side->step + phase / half,
        .x = (tile % tiles->count[1] * tiles->pitch + side->from[1]) *
                 side->step +
             phase % half,
        .channel = block * LANES,
        .plane = side->data + (tile / in_image * side->blocks + block) *
                                  side->size[0] * side->size[1] * LANES,
    };
}

/* Are all `count` x `count` values of the tile there? */
static bool is_inside(const coh_side *side, const place *at, int64_t count)
{
    const int64_t reach = (count - 1) * side->step;

    return at->y >= 0 && at->x >= 0 && at->y + reach < side->size[0] &&
           at->x + reach < side->size[1];
}

/* The values of a tile at an edge, [count][count][16], 0 outside. */
AVX512 static void copy_edge(const coh_side *side, const place *at, int count,
                             float *to)
{
    for (int i = 0; i < count * count; i++) {
        const int64_t y = at->y + i / count * side->step;
        const int64_t x = at->x + i % count * side->step;
        const bool is_there =
            y >= 0 && x >= 0 && y < side->size[0] && x < side->size[1];
        _mm512_store_ps(
            to + (int64_t)i * LANES,
            is_there
                ? _mm512_loadu_ps(at->plane + (y * side->size[1] + x) * LANES)
                : _mm512_setzero_ps());
    }
}

/* Tiles of `n` x `n` values, or of all 8 x 8. */
INLINE void take(coh_transform kind, int n, const coh_side *side,
                 const coh_tiles *tiles, int64_t tile, int64_t count,
                 int64_t first, int64_t end, coh_matrices *out)
{
    const int seen = kind == COH_TRANSFORM_SEEN ? COH_POINTS : n;
    const int64_t step = coh_matrices_step(out);
    _Alignas(64) float edge[COH_SQUARE * LANES];

    for (int64_t i = first; i < end; i++) {
        const int64_t column = i / count, t = i % count;
        const place at = place_of(side, tiles, column, tile + t);
        const bool inside = is_inside(side, &at, seen);
        const float *in = edge;
        if (inside)
            in = at.plane + (at.y * side->size[1] + at.x) * LANES;
        else
            copy_edge(side, &at, seen, edge);
        coh_transform_square(
            kind, n, in, LANES * (inside ? side->step * side->size[1] : seen),
            LANES * (inside ? side->step : 1),
            out->data + (column * out->rows + t) * LANES, step);
    }
}

AVX512 void coh_winograd_take(const coh_side *side, const coh_tiles *tiles,
                              int64_t tile, int64_t count, int64_t first,
                              int64_t end, coh_matrices *out)
{
    take(COH_TRANSFORM_SEEN, COH_POINTS, side, tiles, tile, count, first, end,
         out);
}

AVX512 void coh_winograd_spread(const coh_side *side, const coh_tiles *tiles,
                                int64_t tile, int64_t count, int64_t first,
                                int64_t end, coh_matrices *out)
{
    switch (tiles->pitch) {
#define CASE(n)                                                             \
    case n:                                                                 \
        take(COH_TRANSFORM_VALUES, n, side, tiles, tile, count, first, end, \
             out);                                                          \
        break;
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
#undef CASE
    default:
        COH_ASSERT(false);
    }
}

INLINE __m512 finish(__m512 sum, __m512 bias, __m512 slope)
{
    sum = _mm512_add_ps(sum, bias);
    const __mmask16 low =
        _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_mul_ps(sum, low, sum, slope);
}

INLINE void give(int n, const coh_side *side, const coh_tiles *tiles,
                 int64_t tile, int64_t count, int64_t first, int64_t end,
                 const coh_matrices *from, coh_winograd_end after)
{
    const int64_t step = coh_matrices_step(from);
    const __m512 slope = _mm512_set1_ps(after.slope);
    _Alignas(64) float made[COH_SQUARE * LANES];

    for (int64_t i = first; i < end; i++) {
        const int64_t column = i / count, t = i % count;
        const place at = place_of(side, tiles, column, tile + t);
        const __m512 bias = after.bias != NULL
                                ? _mm512_loadu_ps(after.bias + at.channel)
                                : _mm512_setzero_ps();
        coh_transform_square(COH_TRANSFORM_SUMS, n,
                             from->data + (column * from->rows + t) * LANES,
                             COH_POINTS * step, step, made, LANES);
        for (int k = 0; k < n * n; k++) {
            const int64_t y = at.y + k / n * side->step;
            const int64_t x = at.x + k % n * side->step;
            if (y < side->size[0] && x < side->size[1])
                _mm512_store_ps(
                    at.plane + (y * side->size[1] + x) * LANES,
                    finish(_mm512_load_ps(made + k * LANES), bias, slope));
        }
    }
}

AVX512 void coh_winograd_give(const coh_side *side, const coh_tiles *tiles,
                              int64_t tile, int64_t count, int64_t first,
                              int64_t end, const coh_matrices *from,
                              coh_winograd_end after)
{
    switch (tiles->pitch) {
#define CASE(n)                                                     \
    case n:                                                         \
        give(n, side, tiles, tile, count, first, end, from, after); \
        break;
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
#undef CASE
    default:
        COH_ASSERT(false);
    }
}

#endif
