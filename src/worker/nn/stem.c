/* stem.c - see stem.h. */
#include "worker/nn/stem.h"

#include <omp.h>
#include <string.h>

#include "worker/nn/avx512.h"
#include "worker/nn/layer_ops.h"

enum {
    TAPS = 9,        /* of one channel */
    CHANNELS = 3,    /* at most: CHANNELS x TAPS sums stay in registers */
    COLUMNS = 6,     /* of the convolution in one tile: 3 of the pool */
    PAIR = 2 * LANES /* filters of one tile */
};

/* A place: where in its 4x4 patch a pooled value's window begins, 0, 1, 4 or
 * 5, and whether the value is 0 or less. */
enum { PLACE = 7, IS_LOW = 8 };

bool coh_stem_fits(const coh_layer *layer, int *pool)
{
    const coh_layer_spec *spec = &layer->spec;
    const coh_layer *last = layer + 1;

    if (spec->kind != COH_LAYER_CONV2D || spec->groups != 1 ||
        layer->in.c > CHANNELS || spec->filters % PAIR != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        if (spec->kernel[i] != 3 || spec->stride[i] != 1 ||
            spec->dilation[i] != 1)
            return false;
    }
    if (coh_layer_is_relu(last))
        last++;
    *pool = (int)(last - layer);
    if (last->spec.kind != COH_LAYER_MAXPOOL || last->out.w < COLUMNS / 2)
        return false;
    for (int i = 0; i < 2; i++) {
        if (last->spec.kernel[i] != 2 || last->spec.stride[i] != 2 ||
            last->pad_before[i] != 0 || last->pad_after[i] != 0)
            return false;
    }
    return true;
}

static float slope_of(const coh_layer *behind)
{
    if (behind->spec.kind == COH_LAYER_RELU)
        return 0;
    return behind->spec.kind == COH_LAYER_LEAKY_RELU ? (float)behind->spec.slope
                                                     : 1.0f;
}

coh_stem coh_stem_of(const coh_layer *layer, int64_t batch)
{
    return (coh_stem){
        .batch = batch,
        .channels = layer->in.c,
        .height = layer->in.h + layer->pad_before[0] + layer->pad_after[0],
        .width = layer->in.w + layer->pad_before[1] + layer->pad_after[1],
        .filters = layer->spec.filters,
        .rows = layer->out.h / 2,
        .columns = layer->out.w / 2,
        .image = layer->in,
        .top = layer->pad_before[0],
        .left = layer->pad_before[1],
        .slope = slope_of(layer + 1),
        .threads = omp_get_max_threads(),
    };
}

int64_t coh_stem_padded_count(const coh_stem *self)
{
    return self->batch * self->channels * self->height * self->width;
}

/* Of a thread in backward: sums of all filters, and one row of patches. */
static int64_t sums_count(const coh_stem *self)
{
    return self->filters * (self->channels * TAPS + 1);
}

static int64_t thread_count(const coh_stem *self)
{
    return sums_count(self) + self->columns * self->channels * LANES;
}

/* Forward keeps the weights there, in the order it takes them. */
int64_t coh_stem_work_count(const coh_stem *self)
{
    return self->threads * thread_count(self);
}

#if defined(__x86_64__)

bool coh_stem_can_run(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

/* --- forward ------------------------------------------------------------ */

static void pad_plane(const coh_stem *self, const float *image, float *padded)
{
    const int64_t w = self->image.w;

    memset(padded, 0, (size_t)(self->height * self->width) * sizeof *padded);
    padded += self->top * self->width + self->left;
    for (int64_t y = 0; y < self->image.h; y++)
        memcpy(padded + y * self->width, image + y * w,
               (size_t)w * sizeof *padded);
}

/* packed[O / 32][C * 9][32] */
static void pack(const coh_stem *self, const float *weights, float *packed)
{
    const int64_t taps = self->channels * TAPS;

    for (int64_t o = 0; o < self->filters; o++) {
        for (int64_t t = 0; t < taps; t++)
            packed[(o / PAIR * taps + t) * PAIR + o % PAIR] =
                weights[o * taps + t];
    }
}

/* The largest of a 2x2 window, and its place; of equal ones the first. */
INLINE void pool_window(const __m512 window[4], __m512 slope, float *pooled,
                        uint8_t *places)
{
    static const int place[4] = { 0, 1, 4, 5 };
    __m512 most = window[0];
    __m512i at = _mm512_setzero_si512();

    UNROLL for (int k = 1; k < 4; k++)
    {
        const __mmask16 more = _mm512_cmp_ps_mask(window[k], most, _CMP_GT_OQ);
        most = _mm512_mask_mov_ps(most, more, window[k]);
        at = _mm512_mask_mov_epi32(at, more, _mm512_set1_epi32(place[k]));
    }
    const __mmask16 high =
        _mm512_cmp_ps_mask(most, _mm512_setzero_ps(), _CMP_GT_OQ);
    const __mmask16 low = (__mmask16)~high; /* a NaN passes as it is */
    at = _mm512_mask_or_epi32(at, low, at, _mm512_set1_epi32(IS_LOW));
    _mm512_storeu_ps(pooled, _mm512_mask_mul_ps(most, low, most, slope));
    _mm_storeu_si128((__m128i *)places, _mm512_cvtepi32_epi8(at));
}

/* Two rows, 6 columns, 32 filters of the convolution; 1 row, 3 columns of the
 * pool. x: first value under the window in padded; `step`: from the first 16
 * filters to the others in pooled and places. */
INLINE void forward_tile(const coh_stem *self, const float *x, const float *w,
                         const float *bias, int64_t step, float *pooled,
                         uint8_t *places)
{
    enum { CELLS = 2 * COLUMNS };
    __m512 sum[2][CELLS];

    UNROLL for (int k = 0; k < CELLS; k++)
    {
        sum[0][k] = _mm512_loadu_ps(bias);
        sum[1][k] = _mm512_loadu_ps(bias + LANES);
    }
    for (int64_t c = 0; c < self->channels; c++) {
        for (int64_t t = 0; t < TAPS; t++, w += PAIR) {
            const float *at = x + t / 3 * self->width + t % 3;
            const __m512 w0 = _mm512_loadu_ps(w);
            const __m512 w1 = _mm512_loadu_ps(w + LANES);
            UNROLL for (int k = 0; k < CELLS; k++)
            {
                const __m512 v =
                    _mm512_set1_ps(at[k / COLUMNS * self->width + k % COLUMNS]);
                sum[0][k] = _mm512_fmadd_ps(v, w0, sum[0][k]);
                sum[1][k] = _mm512_fmadd_ps(v, w1, sum[1][k]);
            }
        }
        x += self->height * self->width;
    }
    const __m512 slope = _mm512_set1_ps(self->slope);
    UNROLL for (int k = 0; k < COLUMNS; k++)
    {
        const int half = k / 3, q = k % 3;
        const __m512 *from = sum[half];
        const __m512 window[4] = { from[2 * q], from[2 * q + 1],
                                   from[COLUMNS + 2 * q],
                                   from[COLUMNS + 2 * q + 1] };
        pool_window(window, slope, pooled + half * step + q * LANES,
                    places + half * step + q * LANES);
    }
}

/* One row of the pool, all filters. The last tile reaches back over the one
 * before it if the columns do not divide. */
AVX512 static void forward_row(const coh_stem *self, const float *padded,
                               const float *packed, const float *bias,
                               int64_t b, int64_t p, float *pooled,
                               uint8_t *places)
{
    const int64_t plane = self->rows * self->columns * LANES;
    const int64_t last = self->columns - COLUMNS / 2;
    const float *x =
        padded + (b * self->channels * self->height + 2 * p) * self->width;
    const int64_t row =
        b * self->filters / LANES * plane + p * self->columns * LANES;

    for (int64_t o = 0; o < self->filters; o += PAIR) {
        const float *w = packed + o * self->channels * TAPS;
        const int64_t to = row + o / LANES * plane;
        for (int64_t q = 0; q < self->columns; q += COLUMNS / 2) {
            const int64_t at = q < last ? q : last;
            forward_tile(self, x + 2 * at, w, bias + o, plane,
                         pooled + to + at * LANES, places + to + at * LANES);
        }
    }
}

void coh_stem_forward(const coh_stem *self, const float *images,
                      const float *weights, const float *bias, float *padded,
                      float *work, float *pooled, uint8_t *places)
{
    const int64_t planes = self->batch * self->channels;
    const int64_t rows = self->batch * self->rows;
    float *biases = work + self->filters * self->channels * TAPS;

    pack(self, weights, work);
    for (int64_t o = 0; o < self->filters; o++)
        biases[o] = bias != NULL ? bias[o] : 0;
#pragma omp parallel num_threads(self->threads)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < planes; i++)
            pad_plane(self, images + i * self->image.h * self->image.w,
                      padded + i * self->height * self->width);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++)
            forward_row(self, padded, work, biases, i / self->rows,
                        i % self->rows, pooled, places);
    }
}

/* --- backward ----------------------------------------------------------- */

/* patches[Q][C][16]: the 4x4 values under each window of one row. */
AVX512 static void take_patches(const coh_stem *self, const float *padded,
                                int64_t b, int64_t p, float *patches)
{
    for (int64_t c = 0; c < self->channels; c++) {
        const float *x =
            padded +
            ((b * self->channels + c) * self->height + 2 * p) * self->width;
        for (int64_t q = 0; q < self->columns; q++) {
            float *patch = patches + (q * self->channels + c) * LANES;
            for (int r = 0; r < 4; r++)
                _mm_storeu_ps(patch + 4 * r,
                              _mm_loadu_ps(x + r * self->width + 2 * q));
        }
    }
}

/* sums[C * 9 + 1][16] of 16 filters grow by one row: the bias's are last. */
INLINE void backward_row_of(const coh_stem *self, const int channels,
                            const float *patches, const float *gradient,
                            const uint8_t *places, float *sums)
{
    __m512 sum[CHANNELS * TAPS], bias = _mm512_setzero_ps();
    const __m512 slope = _mm512_set1_ps(self->slope);

    UNROLL for (int t = 0; t < channels * TAPS; t++) sum[t] =
        _mm512_loadu_ps(sums + t * LANES);
    for (int64_t q = 0; q < self->columns; q++) {
        const __m512i place = _mm512_cvtepu8_epi32(
            _mm_loadu_si128((const __m128i *)(places + q * LANES)));
        const __mmask16 low =
            _mm512_test_epi32_mask(place, _mm512_set1_epi32(IS_LOW));
        const __m512i from = _mm512_and_si512(place, _mm512_set1_epi32(PLACE));
        __m512 g = _mm512_loadu_ps(gradient + q * LANES);
        g = _mm512_mask_mul_ps(g, low, g, slope);
        bias = _mm512_add_ps(bias, g);
        UNROLL for (int t = 0; t < TAPS; t++)
        {
            const __m512i at =
                _mm512_add_epi32(from, _mm512_set1_epi32(t / 3 * 4 + t % 3));
            UNROLL for (int c = 0; c < channels; c++)
            {
                const __m512 x = _mm512_permutexvar_ps(
                    at, _mm512_loadu_ps(patches + (q * channels + c) * LANES));
                sum[c * TAPS + t] = _mm512_fmadd_ps(g, x, sum[c * TAPS + t]);
            }
        }
    }
    UNROLL for (int t = 0; t < channels * TAPS; t++)
        _mm512_storeu_ps(sums + t * LANES, sum[t]);
    sums += channels * TAPS * LANES;
    _mm512_storeu_ps(sums, _mm512_add_ps(bias, _mm512_loadu_ps(sums)));
}

AVX512 static void backward_row(const coh_stem *self, const float *patches,
                                const float *gradient, const uint8_t *places,
                                float *sums)
{
    switch (self->channels) {
    case 1:
        backward_row_of(self, 1, patches, gradient, places, sums);
        break;
    case 2:
        backward_row_of(self, 2, patches, gradient, places, sums);
        break;
    default:
        backward_row_of(self, 3, patches, gradient, places, sums);
    }
}

/* The rows of one thread, into sums of its own. */
static void backward_part(const coh_stem *self, const float *padded,
                          const uint8_t *places, const float *gradient,
                          int64_t first, int64_t end, float *sums)
{
    const int64_t plane = self->rows * self->columns * LANES;
    const int64_t blocks = self->filters / LANES;
    const int64_t block = LANES * (self->channels * TAPS + 1);
    float *patches = sums + sums_count(self);

    memset(sums, 0, (size_t)sums_count(self) * sizeof *sums);
    for (int64_t i = first; i < end; i++) {
        const int64_t b = i / self->rows, p = i % self->rows;
        take_patches(self, padded, b, p, patches);
        for (int64_t o = 0; o < blocks; o++) {
            const int64_t at =
                (b * blocks + o) * plane + p * self->columns * LANES;
            backward_row(self, patches, gradient + at, places + at,
                         sums + o * block);
        }
    }
}

/* The sums of all threads, in their order, into the flat vectors. */
static void take_sums(const coh_stem *self, const float *work, int threads,
                      float *diff_weights, float *diff_bias)
{
    const int64_t taps = self->channels * TAPS;

    for (int64_t o = 0; o < self->filters; o++) {
        const float *from = work + o / LANES * LANES * (taps + 1) + o % LANES;
        for (int64_t t = 0; t <= taps; t++) {
            float sum = 0;
            for (int n = 0; n < threads; n++)
                sum += from[n * thread_count(self) + t * LANES];
            if (t < taps)
                diff_weights[o * taps + t] = sum;
            else if (diff_bias != NULL)
                diff_bias[o] = sum;
        }
    }
}

void coh_stem_backward(const coh_stem *self, const float *padded,
                       const uint8_t *places, const float *gradient,
                       float *work, float *diff_weights, float *diff_bias)
{
    const int64_t rows = self->batch * self->rows;
    int threads = 1;

#pragma omp parallel num_threads(self->threads)
    {
        const int n = omp_get_num_threads(), me = omp_get_thread_num();
#pragma omp single
        threads = n;
        backward_part(self, padded, places, gradient, rows * me / n,
                      rows * (me + 1) / n, work + me * thread_count(self));
    }
    take_sums(self, work, threads, diff_weights, diff_bias);
}

#else

bool coh_stem_can_run(void)
{
    return false;
}

/* Nobody calls what cannot run. */
void coh_stem_forward(const coh_stem *self, const float *images,
                      const float *weights, const float *bias, float *padded,
                      float *work, float *pooled, uint8_t *places)
{
    (void)self, (void)images, (void)weights, (void)bias, (void)padded;
    (void)work, (void)pooled, (void)places;
    COH_ASSERT(coh_stem_can_run());
}

void coh_stem_backward(const coh_stem *self, const float *padded,
                       const uint8_t *places, const float *gradient,
                       float *work, float *diff_weights, float *diff_bias)
{
    (void)self, (void)padded, (void)places, (void)gradient, (void)work;
    (void)diff_weights, (void)diff_bias;
    COH_ASSERT(coh_stem_can_run());
}

#endif
