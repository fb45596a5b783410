/* winograd.c - see winograd.h. */
#include "worker/nn/winograd.h"

#include <omp.h>

#include "worker/nn/avx512.h"
#include "worker/nn/winograd_parts.h"

enum { TAPS_LEAST = 2, TAPS_MOST = 5 };

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* The taps of all phases lie in [first, first + taps). */
static void find_taps(coh_winograd *self)
{
    self->taps = TAPS_LEAST;
    for (int d = 0; d < 2; d++) {
        const int64_t last = self->kernel[d] - 1 - self->before[d];
        self->first[d] = floor_div(-self->before[d], self->stride);
        const int64_t taps = floor_div(last, self->stride) - self->first[d] + 1;
        if (self->taps < taps)
            self->taps = (int)(taps > TAPS_MOST ? TAPS_MOST + 1 : taps);
    }
}

coh_winograd coh_winograd_of(const coh_layer *layer, int64_t batch)
{
    const bool is_conv = layer->spec.kind == COH_LAYER_CONV2D;
    const coh_shape fine = is_conv ? layer->in : layer->out;
    const coh_shape coarse = is_conv ? layer->out : layer->in;
    coh_winograd self = {
        .batch = batch,
        .fine_channels = fine.c,
        .coarse_channels = coarse.c,
        .fine = { fine.h, fine.w },
        .coarse = { coarse.h, coarse.w },
        .kernel = { layer->spec.kernel[0], layer->spec.kernel[1] },
        .before = { layer->pad_before[0], layer->pad_before[1] },
        .stride = layer->spec.stride[0],
        .threads = omp_get_max_threads(),
    };

    find_taps(&self);
    return self;
}

bool coh_winograd_fits(const coh_layer *layer)
{
    const coh_layer_spec *spec = &layer->spec;

    if ((spec->kind != COH_LAYER_CONV2D && spec->kind != COH_LAYER_DECONV2D) ||
        spec->groups != 1 || layer->in.c % LANES != 0 ||
        layer->out.c % LANES != 0 || spec->stride[0] != spec->stride[1] ||
        spec->stride[0] > 2 || spec->dilation[0] != 1 ||
        spec->dilation[1] != 1 || spec->kernel[0] * spec->kernel[1] == 1)
        return false;
    const coh_winograd it = coh_winograd_of(layer, 1);
    const int64_t step = it.fine_channels * it.kernel[0] * it.kernel[1];
    return it.taps <= TAPS_MOST && step <= INT32_MAX / LANES;
}

/* --- how a pass is cut --------------------------------------------------- */

/* Sizes of the matrices of a pass: in[tiles, inputs] times weights[inputs,
 * outputs] gives out[tiles, outputs], for a strip of tiles at a time. */
typedef struct cut {
    coh_tiles tiles;
    int64_t all, strip; /* tiles */
    int64_t inputs, outputs;
    bool is_shared; /* all threads work at one strip; else each at its own */
    int64_t nsets;  /* of in and out */
    int64_t nsums;  /* of the gradient of weights; for other passes 1 */
} cut;

/* Measured with 1 and 2 threads on layers of config/hep.yaml and climate.yaml:
 * a strip of one thread is fastest where it is about as large as the L2 cache.
 * Large weights are better read once for all threads, and seldom: their strips
 * are as large as they are. */
static const double strip_bytes = 2.4e6, own_weights_bytes = 8e6;

static void find_strip(cut *it, int threads)
{
    const double square = COH_SQUARE * sizeof(float);
    const double weights = square * (double)(it->inputs * it->outputs);
    const double tile = square * (double)(it->inputs + it->outputs);

    it->is_shared = threads == 1 || weights > own_weights_bytes ||
                    it->all < (int64_t)threads * 2 * COH_STRIP_ROWS;
    const int64_t share = it->is_shared ? it->all : ceil_div(it->all, threads);
    double bytes = strip_bytes * (it->is_shared ? threads : 1);
    if (weights > own_weights_bytes && bytes < weights)
        bytes = weights;
    const int64_t room = bytes > tile ? (int64_t)(bytes / tile) : 1;
    it->strip = ceil_div(share, ceil_div(share, room));
    it->strip = ceil_div(it->strip, COH_STRIP_ROWS) * COH_STRIP_ROWS;
    it->nsets = it->is_shared ? 1 : threads;
}

static cut cut_of(const coh_winograd *self, coh_winograd_pass pass)
{
    const int64_t phases = self->stride * self->stride;
    const int64_t fine = self->fine_channels * phases;
    const bool to_fine = pass == COH_WINOGRAD_FINE;
    cut it = { .tiles.pitch = COH_POINTS + 1 - self->taps,
               .inputs = to_fine ? self->coarse_channels : fine,
               .outputs = to_fine ? fine : self->coarse_channels };

    for (int d = 0; d < 2; d++) {
        const int64_t size =
            to_fine ? ceil_div(self->fine[d], self->stride) : self->coarse[d];
        it.tiles.count[d] = ceil_div(size, it.tiles.pitch);
    }
    it.all = self->batch * it.tiles.count[0] * it.tiles.count[1];
    find_strip(&it, self->threads);
    it.nsums = pass == COH_WINOGRAD_WEIGHTS ? it.nsets : 1;
    return it;
}

static int64_t weights_count(const cut *it)
{
    return coh_matrices_count(it->inputs, it->outputs);
}

/* Of in and out of a strip. */
static int64_t strip_count(const cut *it)
{
    return coh_matrices_count(it->strip, it->inputs) +
           coh_matrices_count(it->strip, it->outputs);
}

int64_t coh_winograd_work_count(const coh_winograd *self,
                                coh_winograd_pass pass)
{
    const cut it = cut_of(self, pass);

    return it.nsums * weights_count(&it) + it.nsets * strip_count(&it);
}

double coh_winograd_saving(const coh_winograd *self, coh_winograd_pass pass)
{
    const cut it = cut_of(self, pass);
    const double direct =
        (double)(self->batch * self->coarse[0] * self->coarse[1]) *
        (double)(self->kernel[0] * self->kernel[1] * self->fine_channels *
                 self->coarse_channels);

    return direct /
           ((double)(COH_SQUARE * it.all) * (double)(it.inputs * it.outputs));
}

typedef struct sets {
    coh_matrices weights, in, out;
} sets;

/* Those of a thread, or of all, in `work`: first all weights. */
static sets sets_of(const cut *it, float *work, int which)
{
    float *weights = work + which % it->nsums * weights_count(it);
    float *in = work + it->nsums * weights_count(it) +
                which % it->nsets * strip_count(it);
    float *out = in + coh_matrices_count(it->strip, it->inputs);

    return (sets){ .weights = { weights, it->inputs, it->outputs },
                   .in = { in, it->strip, it->inputs },
                   .out = { out, it->strip, it->outputs } };
}

/* `data` is not written through a side that is only taken from. */
static coh_side coarse_side(const coh_winograd *self, const float *data)
{
    return (coh_side){ .data = (float *)data,
                       .blocks = self->coarse_channels / LANES,
                       .size = { self->coarse[0], self->coarse[1] },
                       .step = 1,
                       .phases = 1 };
}

static coh_side fine_side(const coh_winograd *self, const float *data)
{
    return (coh_side){ .data = (float *)data,
                       .blocks = self->fine_channels / LANES,
                       .size = { self->fine[0], self->fine[1] },
                       .step = self->stride,
                       .phases = self->stride * self->stride };
}

/* --- the passes ---------------------------------------------------------- */

#if defined(__x86_64__)

bool coh_winograd_can_run(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

typedef struct job {
    cut cut;
    coh_side from, to; /* of to_weights: fine, coarse */
    coh_taps taps;
    coh_winograd_end end;
    const float *weights;
    float *work, *diff;
} job;

/* Those who work at a strip, and the tiles they have. */
typedef struct team {
    int me, threads;
    int64_t first, end;
} team;

typedef struct share {
    int64_t first, end;
} share;

/* The share of thread `me` of `count` items. */
static share share_of(int64_t count, int me, int threads)
{
    return (share){ count * me / threads, count * (me + 1) / threads };
}

static team team_of(const cut *it, int me, int threads)
{
    if (it->is_shared)
        return (team){ me, threads, 0, it->all };
    const share mine = share_of(it->all, me, threads);
    return (team){ 0, 1, mine.first, mine.end };
}

static void wait_for(const team *us)
{
    if (us->threads > 1) {
#pragma omp barrier
    }
}

static int64_t tiles_in(const cut *it, const team *us, int64_t tile)
{
    return us->end - tile < it->strip ? us->end - tile : it->strip;
}

/* One side to the other; all threads call it. */
static void run_part(job *self, int me, int threads)
{
    const cut *it = &self->cut;
    const team us = team_of(it, me, threads);
    const share weights =
        share_of(it->inputs * it->outputs / LANES, me, threads);
    sets its = sets_of(it, self->work, me);

    coh_winograd_take_weights(&self->taps, self->weights, weights.first,
                              weights.end, &its.weights);
#pragma omp barrier
    for (int64_t tile = us.first; tile < us.end; tile += it->strip) {
        const int64_t count = tiles_in(it, &us, tile);
        const share in =
            share_of(it->inputs / LANES * count, us.me, us.threads);
        const share out =
            share_of(it->outputs / LANES * count, us.me, us.threads);
        coh_winograd_take(&self->from, &it->tiles, tile, count, in.first,
                          in.end, &its.in);
        wait_for(&us);
        coh_winograd_multiply(&its.in, &its.weights, count, &its.out, us.me,
                              us.threads);
        wait_for(&us);
        coh_winograd_give(&self->to, &it->tiles, tile, count, out.first,
                          out.end, &its.out, self->end);
    }
}

static void run_weights_part(job *self, int me, int threads)
{
    const cut *it = &self->cut;
    const team us = team_of(it, me, threads);
    const share weights =
        share_of(it->inputs * it->outputs / LANES, me, threads);
    sets its = sets_of(it, self->work, me);

    for (int64_t tile = us.first; tile < us.end; tile += it->strip) {
        const int64_t count = tiles_in(it, &us, tile);
        const share in =
            share_of(it->inputs / LANES * count, us.me, us.threads);
        const share out =
            share_of(it->outputs / LANES * count, us.me, us.threads);
        coh_winograd_take(&self->from, &it->tiles, tile, count, in.first,
                          in.end, &its.in);
        coh_winograd_spread(&self->to, &it->tiles, tile, count, out.first,
                            out.end, &its.out);
        wait_for(&us);
        coh_winograd_multiply_turned(&its.in, &its.out, count, tile > us.first,
                                     &its.weights, us.me, us.threads);
        wait_for(&us);
    }
#pragma omp barrier
    its = sets_of(it, self->work, 0);
    coh_winograd_give_weights(&self->taps, &its.weights,
                              it->is_shared ? 1 : threads, weights.first,
                              weights.end, self->diff);
}

/* One side to the other, both named in `it`. */
static void run_values(const coh_winograd *self, job *it,
                       coh_winograd_pass pass)
{
    it->cut = cut_of(self, pass);
    it->taps = (coh_taps){ self, .is_turned = pass == COH_WINOGRAD_FINE };
    for (int d = 0; d < 2; d++)
        it->from.from[d] = pass == COH_WINOGRAD_FINE
                               ? 1 - self->first[d] - self->taps
                               : self->first[d];
#pragma omp parallel num_threads(self->threads)
    run_part(it, omp_get_thread_num(), omp_get_num_threads());
}

void coh_winograd_to_coarse(const coh_winograd *self, const float *fine,
                            const float *weights, coh_winograd_end end,
                            float *work, float *coarse)
{
    job it = { .from = fine_side(self, fine),
               .to = coarse_side(self, coarse),
               .end = end,
               .weights = weights,
               .work = work };

    run_values(self, &it, COH_WINOGRAD_COARSE);
}

void coh_winograd_to_fine(const coh_winograd *self, const float *coarse,
                          const float *weights, coh_winograd_end end,
                          float *work, float *fine)
{
    job it = { .from = coarse_side(self, coarse),
               .to = fine_side(self, fine),
               .end = end,
               .weights = weights,
               .work = work };

    run_values(self, &it, COH_WINOGRAD_FINE);
}

void coh_winograd_to_weights(const coh_winograd *self, const float *fine,
                             const float *coarse, float *work,
                             float *diff_weights)
{
    job it = { .taps = { self, .is_turned = false },
               .cut = cut_of(self, COH_WINOGRAD_WEIGHTS),
               .from = fine_side(self, fine),
               .to = coarse_side(self, coarse),
               .work = work,
               .diff = diff_weights };

    for (int d = 0; d < 2; d++)
        it.from.from[d] = self->first[d];
#pragma omp parallel num_threads(self->threads)
    run_weights_part(&it, omp_get_thread_num(), omp_get_num_threads());
}

/* Rows first: short sums, so that few digits are lost. */
AVX512 static void sum_block(const float *values, int64_t batch, int64_t step,
                             int64_t plane, float *sums)
{
    enum { ROW = 256 };
    __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();

    for (int64_t b = 0; b < batch; b++) {
        const float *at = values + b * step;
        for (int64_t k = 0; k < plane; k += ROW) {
            const int64_t end = k + ROW < plane ? k + ROW : plane;
            __m512 sum = _mm512_setzero_ps();
            for (int64_t i = k; i < end; i++)
                sum = _mm512_add_ps(sum, _mm512_loadu_ps(at + i * LANES));
            low = _mm512_add_pd(low,
                                _mm512_cvtps_pd(_mm512_castps512_ps256(sum)));
            high = _mm512_add_pd(
                high, _mm512_cvtps_pd(_mm256_castpd_ps(
                          _mm512_extractf64x4_pd(_mm512_castps_pd(sum), 1))));
        }
    }
    _mm256_storeu_ps(sums, _mm512_cvtpd_ps(low));
    _mm256_storeu_ps(sums + LANES / 2, _mm512_cvtpd_ps(high));
}

void coh_winograd_sum(const float *values, int64_t batch, int64_t channels,
                      int64_t plane, float *sums)
{
#pragma omp parallel for schedule(static)
    for (int64_t c = 0; c < channels; c += LANES)
        sum_block(values + c * plane, batch, channels * plane, plane, sums + c);
}

#else

bool coh_winograd_can_run(void)
{
    return false;
}

/* Nobody calls what cannot run. */
void coh_winograd_to_coarse(const coh_winograd *self, const float *fine,
                            const float *weights, coh_winograd_end end,
                            float *work, float *coarse)
{
    (void)self, (void)fine, (void)weights, (void)end, (void)work, (void)coarse;
    COH_ASSERT(coh_winograd_can_run());
}

void coh_winograd_to_fine(const coh_winograd *self, const float *coarse,
                          const float *weights, coh_winograd_end end,
                          float *work, float *fine)
{
    (void)self, (void)coarse, (void)weights, (void)end, (void)work, (void)fine;
    COH_ASSERT(coh_winograd_can_run());
}

void coh_winograd_to_weights(const coh_winograd *self, const float *fine,
                             const float *coarse, float *work,
                             float *diff_weights)
{
    (void)self, (void)fine, (void)coarse, (void)work, (void)diff_weights;
    COH_ASSERT(coh_winograd_can_run());
}

void coh_winograd_sum(const float *values, int64_t batch, int64_t channels,
                      int64_t plane, float *sums)
{
    (void)values, (void)batch, (void)channels, (void)plane, (void)sums;
    COH_ASSERT(coh_winograd_can_run());
}

#endif
