/* nn_reference.h - the slow twin of nn/: plain loops, in double, from the
 * definitions. Nothing is shared with what it checks, but the shapes of
 * coh_model and the random words of rng.h.
 *
 * x, y: [B, in], [B, out] of a layer; dx, dy: d loss / d x, d y.
 */
#ifndef COH_TESTS_NN_REFERENCE_H
#define COH_TESTS_NN_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "worker/compute.h"

enum { NN_REF_MAX = 40 }; /* layers and images */

typedef struct nn_ref {
    const coh_model *model;
    const coh_batch *batch;
    const double *weights; /* [P] */
    double *gradient;      /* [P], added to; NULL: forward only */
    uint64_t seed;
    bool training;
} nn_ref;

/* One tap of a window: output (oh, ow), tap (kh, kw), input (ih, iw). */
typedef struct nn_tap {
    int64_t b, oh, ow, kh, kw, ih, iw;
} nn_tap;

/* Step to the next tap that lies inside the input; false at the end. Start
 * with kw = -1 and all else 0. */
static inline bool nn_next_tap(const coh_layer *l, int64_t batch, nn_tap *t)
{
    const coh_layer_spec *s = &l->spec;

    for (;;) {
        if (++t->kw == s->kernel[1]) {
            t->kw = 0;
            if (++t->kh == s->kernel[0]) {
                t->kh = 0;
                if (++t->ow == l->out.w) {
                    t->ow = 0;
                    if (++t->oh == l->out.h) {
                        t->oh = 0;
                        if (++t->b == batch)
                            return false;
                    }
                }
            }
        }
        t->ih =
            t->oh * s->stride[0] - l->pad_before[0] + t->kh * s->dilation[0];
        t->iw =
            t->ow * s->stride[1] - l->pad_before[1] + t->kw * s->dilation[1];
        if (t->ih >= 0 && t->ih < l->in.h && t->iw >= 0 && t->iw < l->in.w)
            return true;
    }
}

static inline int64_t nn_at(coh_shape s, int64_t b, int64_t c, int64_t h,
                            int64_t w)
{
    return ((b * s.c + c) * s.h + h) * s.w + w;
}

/* Forward if dy is NULL, else backward. */
static inline void nn_ref_conv(const nn_ref *r, const coh_layer *l,
                               const double *x, double *y, const double *dy,
                               double *dx)
{
    const int64_t B = r->batch->capacity, O = l->out.c;
    const int64_t og = O / l->spec.groups, ig = l->in.c / l->spec.groups;
    const int64_t KH = l->spec.kernel[0], KW = l->spec.kernel[1];
    const double *w = r->weights + l->weight_first;
    const int64_t pixels = l->out.h * l->out.w;

    for (int64_t n = 0; n < B * O * pixels && l->bias_count > 0; n++) {
        const int64_t bias = l->bias_first + n / pixels % O;
        if (dy == NULL)
            y[n] = r->weights[bias];
        else
            r->gradient[bias] += dy[n];
    }
    for (nn_tap t = { .kw = -1 }; nn_next_tap(l, B, &t);) {
        for (int64_t o = 0; o < O; o++) {
            const int64_t out = nn_at(l->out, t.b, o, t.oh, t.ow);
            for (int64_t i = 0; i < ig; i++) {
                const int64_t tap = ((o * ig + i) * KH + t.kh) * KW + t.kw;
                const int64_t in =
                    nn_at(l->in, t.b, o / og * ig + i, t.ih, t.iw);
                if (dy == NULL) {
                    y[out] += w[tap] * x[in];
                    continue;
                }
                r->gradient[l->weight_first + tap] += dy[out] * x[in];
                dx[in] += dy[out] * w[tap];
            }
        }
    }
}

/* conv2d's input gradient: each input value adds its window to the output. */
static inline void nn_ref_deconv(const nn_ref *r, const coh_layer *l,
                                 const double *x, double *y, const double *dy,
                                 double *dx)
{
    const coh_layer_spec *s = &l->spec;
    const int64_t B = r->batch->capacity, I = l->in.c;
    const int64_t og = l->out.c / s->groups, ig = I / s->groups;
    const int64_t pixels = l->out.h * l->out.w;
    const double *w = r->weights + l->weight_first;

    for (int64_t n = 0; n < B * l->out.c * pixels && l->bias_count > 0; n++) {
        const int64_t bias = l->bias_first + n / pixels % l->out.c;
        if (dy == NULL)
            y[n] = r->weights[bias];
        else
            r->gradient[bias] += dy[n];
    }
    for (int64_t in = 0; in < B * coh_shape_count(l->in); in++) {
        const int64_t iw = in % l->in.w, ih = in / l->in.w % l->in.h;
        const int64_t i = in / (l->in.w * l->in.h) % I,
                      b = in / coh_shape_count(l->in);
        for (int64_t k = 0; k < og * s->kernel[0] * s->kernel[1]; k++) {
            const int64_t kw = k % s->kernel[1],
                          kh = k / s->kernel[1] % s->kernel[0],
                          o = k / (s->kernel[1] * s->kernel[0]);
            const int64_t oh =
                ih * s->stride[0] + kh * s->dilation[0] - l->pad_before[0];
            const int64_t ow =
                iw * s->stride[1] + kw * s->dilation[1] - l->pad_before[1];
            if (oh < 0 || oh >= l->out.h || ow < 0 || ow >= l->out.w)
                continue;
            const int64_t tap = i * og * s->kernel[0] * s->kernel[1] + k;
            const int64_t out = nn_at(l->out, b, i / ig * og + o, oh, ow);
            if (dy == NULL) {
                y[out] += w[tap] * x[in];
                continue;
            }
            r->gradient[l->weight_first + tap] += dy[out] * x[in];
            dx[in] += dy[out] * w[tap];
        }
    }
}

/* upsample and crop: where an output comes from. */
static inline void nn_ref_move(const nn_ref *r, const coh_layer *l,
                               const double *x, double *y, const double *dy,
                               double *dx)
{
    const coh_layer_spec *s = &l->spec;
    const bool crops = s->kind == COH_LAYER_CROP;

    for (int64_t n = 0; n < r->batch->capacity * coh_shape_count(l->out); n++) {
        const int64_t w = n % l->out.w, h = n / l->out.w % l->out.h;
        const int64_t plane = n / (l->out.w * l->out.h);
        const int64_t from =
            (plane * l->in.h + (crops ? h + s->offset[0] : h / s->scale[0])) *
                l->in.w +
            (crops ? w + s->offset[1] : w / s->scale[1]);
        if (dy == NULL)
            y[n] = x[from];
        else
            dx[from] += dy[n];
    }
}

static inline void nn_ref_softmax(const nn_ref *r, const coh_layer *l,
                                  const double *x, double *y, const double *dy,
                                  double *dx)
{
    const int64_t pixels = l->in.h * l->in.w, C = l->in.c;

    for (int64_t p = 0; p < r->batch->capacity * pixels; p++) {
        const int64_t first = p / pixels * C * pixels + p % pixels;
        double most = x[first], sum = 0;
        for (int64_t c = 1; c < C; c++)
            most = fmax(most, x[first + c * pixels]);
        for (int64_t c = 0; c < C; c++)
            sum += dy == NULL ? exp(x[first + c * pixels] - most)
                              : dy[first + c * pixels] * y[first + c * pixels];
        for (int64_t c = 0; c < C; c++) {
            const int64_t n = first + c * pixels;
            if (dy == NULL)
                y[n] = exp(x[n] - most) / sum;
            else
                dx[n] = y[n] * (dy[n] - sum);
        }
    }
}

/* Backward by the chain rule through mean and deviation, term by term. */
static inline void nn_ref_norm(const nn_ref *r, const coh_layer *l,
                               const double *x, double *y, const double *dy,
                               double *dx)
{
    const int64_t n = coh_shape_count(l->in);
    const double *g = r->weights + l->weight_first;

    for (int64_t b = 0; b < r->batch->capacity; b++) {
        const double *row = x + b * n;
        double mean = 0, variance = 0, dmean = 0, dvariance = 0;
        for (int64_t i = 0; i < n; i++)
            mean += row[i] / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += (row[i] - mean) * (row[i] - mean) / (double)n;
        const double d = sqrt(variance + l->spec.epsilon);
        for (int64_t i = 0; i < n && dy == NULL; i++)
            y[b * n + i] =
                (row[i] - mean) / d * g[i] + r->weights[l->bias_first + i];
        for (int64_t i = 0; i < n && dy != NULL; i++) {
            const double du = dy[b * n + i] * g[i];
            r->gradient[l->weight_first + i] +=
                dy[b * n + i] * (row[i] - mean) / d;
            r->gradient[l->bias_first + i] += dy[b * n + i];
            dmean -= du / d;
            dvariance -= du * (row[i] - mean) / (2 * d * d * d);
        }
        for (int64_t i = 0; i < n && dy != NULL; i++)
            dx[b * n + i] =
                dy[b * n + i] * g[i] / d +
                (2 * dvariance * (row[i] - mean) + dmean) / (double)n;
    }
}

/* Mean and variance of channel c, over the rows that hold a sample. */
static inline void nn_ref_moments(const nn_ref *r, const coh_layer *l,
                                  const double *x, int64_t c, double *mean,
                                  double *variance)
{
    const int64_t P = l->in.h * l->in.w, N = r->batch->count * P;

    *mean = *variance = 0;
    for (int64_t i = 0; i < N; i++)
        *mean += x[(i / P * l->in.c + c) * P + i % P] / (double)N;
    for (int64_t i = 0; i < N; i++)
        *variance +=
            pow(x[(i / P * l->in.c + c) * P + i % P] - *mean, 2) / (double)N;
}

/* Backward by the chain rule through mean and deviation, term by term; the
 * statistics are told as the samples' weight times their values. */
static inline void nn_ref_batch_norm_back(const nn_ref *r, const coh_layer *l,
                                          const double *x, const double *dy,
                                          double *dx, int64_t c)
{
    const int64_t C = l->in.c, P = l->in.h * l->in.w, N = r->batch->count * P;
    double *gradient = r->gradient, mean, variance;
    double weight = 0, dmean = 0, dvariance = 0;

    nn_ref_moments(r, l, x, c, &mean, &variance);
    const double d = sqrt(variance + l->spec.epsilon);
    const double g = r->weights[l->weight_first + c];
    for (int64_t i = 0; i < N; i++) {
        const int64_t at = (i / P * C + c) * P + i % P;
        gradient[l->weight_first + c] += dy[at] * (x[at] - mean) / d;
        gradient[l->bias_first + c] += dy[at];
        dmean -= dy[at] * g / d;
        dvariance -= dy[at] * g * (x[at] - mean) / (2 * d * d * d);
    }
    for (int64_t i = 0; i < N; i++) {
        const int64_t at = (i / P * C + c) * P + i % P;
        dx[at] = dy[at] * g / d +
                 (2 * dvariance * (x[at] - mean) + dmean) / (double)N;
    }
    for (int64_t b = 0; b < r->batch->capacity; b++)
        weight += (double)r->batch->loss_weights[b];
    gradient[l->statistic_first + c] += weight * mean;
    gradient[l->statistic_first + C + c] +=
        weight * variance * (double)N / (double)(N - 1);
}

static inline void nn_ref_batch_norm(const nn_ref *r, const coh_layer *l,
                                     const double *x, double *y,
                                     const double *dy, double *dx)
{
    const int64_t C = l->in.c, P = l->in.h * l->in.w, N = r->batch->count * P;
    const double *statistics = r->weights + l->statistic_first;

    for (int64_t c = 0; c < C; c++) {
        double mean = statistics[c], variance = statistics[C + c];
        if (dy != NULL) {
            nn_ref_batch_norm_back(r, l, x, dy, dx, c);
            continue;
        }
        if (r->training)
            nn_ref_moments(r, l, x, c, &mean, &variance);
        for (int64_t i = 0; i < N; i++) {
            const int64_t at = (i / P * C + c) * P + i % P;
            y[at] = (x[at] - mean) / sqrt(variance + l->spec.epsilon) *
                        r->weights[l->weight_first + c] +
                    r->weights[l->bias_first + c];
        }
    }
}

static inline void nn_ref_dense(const nn_ref *r, const coh_layer *l,
                                const double *x, double *y, const double *dy,
                                double *dx)
{
    const int64_t I = coh_shape_count(l->in), O = l->out.c;
    const double *w = r->weights + l->weight_first;

    for (int64_t n = 0; n < r->batch->capacity * O; n++) {
        const int64_t b = n / O, o = n % O;
        if (l->bias_count > 0 && dy == NULL)
            y[n] = r->weights[l->bias_first + o];
        if (l->bias_count > 0 && dy != NULL)
            r->gradient[l->bias_first + o] += dy[n];
        for (int64_t i = 0; i < I; i++) {
            if (dy == NULL) {
                y[n] += w[o * I + i] * x[b * I + i];
                continue;
            }
            r->gradient[l->weight_first + o * I + i] += dy[n] * x[b * I + i];
            dx[b * I + i] += dy[n] * w[o * I + i];
        }
    }
}

/* Of equal values the first is the largest. */
static inline void nn_ref_maxpool(const nn_ref *r, const coh_layer *l,
                                  const double *x, double *y, const double *dy,
                                  double *dx)
{
    const int64_t B = r->batch->capacity;
    const int64_t n = B * coh_shape_count(l->out);
    int64_t *best = malloc((size_t)n * sizeof *best);

    memset(best, 0xff, (size_t)n * sizeof *best);
    for (nn_tap t = { .kw = -1 }; nn_next_tap(l, B, &t);) {
        for (int64_t c = 0; c < l->in.c; c++) {
            const int64_t out = nn_at(l->out, t.b, c, t.oh, t.ow);
            const int64_t in = nn_at(l->in, t.b, c, t.ih, t.iw);
            if (best[out] < 0 || x[in] > x[best[out]])
                best[out] = in;
        }
    }
    for (int64_t out = 0; out < n; out++) {
        if (dy == NULL)
            y[out] = x[best[out]];
        else
            dx[best[out]] += dy[out];
    }
    free(best);
}

static inline void nn_ref_avgpool(const nn_ref *r, const coh_layer *l,
                                  const double *x, double *y, const double *dy,
                                  double *dx)
{
    const int64_t B = r->batch->capacity, n = B * coh_shape_count(l->out);
    double *taps = calloc((size_t)n, sizeof *taps);

    for (nn_tap t = { .kw = -1 }; nn_next_tap(l, B, &t);) {
        for (int64_t c = 0; c < l->in.c; c++)
            taps[nn_at(l->out, t.b, c, t.oh, t.ow)] += 1;
    }
    for (nn_tap t = { .kw = -1 }; nn_next_tap(l, B, &t);) {
        for (int64_t c = 0; c < l->in.c; c++) {
            const int64_t out = nn_at(l->out, t.b, c, t.oh, t.ow);
            const int64_t in = nn_at(l->in, t.b, c, t.ih, t.iw);
            if (dy == NULL)
                y[out] += x[in] / taps[out];
            else
                dx[in] += dy[out] / taps[out];
        }
    }
    free(taps);
}

static inline void nn_ref_eltwise(const nn_ref *r, const coh_layer *l,
                                  const double *x, double *y, const double *dy,
                                  double *dx)
{
    const coh_layer_kind kind = l->spec.kind;
    const int64_t n = r->batch->capacity * coh_shape_count(l->in);
    const double below = kind == COH_LAYER_RELU         ? 0
                         : kind == COH_LAYER_LEAKY_RELU ? l->spec.slope
                                                        : 1;

    for (int64_t i = 0; i < n; i++) {
        double value = x[i] > 0 ? x[i] : below * x[i];
        double slope = x[i] > 0 ? 1 : below;
        if (kind == COH_LAYER_SIGMOID) {
            value = 1 / (1 + exp(-x[i]));
            slope = value * (1 - value);
        }
        if (kind == COH_LAYER_TANH) {
            value = tanh(x[i]);
            slope = 1 - value * value;
        }
        if (dy == NULL)
            y[i] = value;
        else
            dx[i] = dy[i] * slope;
    }
}

/* The factor of value e of row b of a dropout layer, by its definition. */
static inline double nn_ref_kept(const nn_ref *r, int layer, int64_t b,
                                 int64_t e)
{
    const double rate = r->model->layers[layer].spec.rate;
    uint32_t word[4];

    if (!r->training)
        return 1;
    coh_rng_words(coh_rng_key_of(r->seed, COH_RNG_LAYER + (uint32_t)layer),
                  r->batch->epoch, (uint64_t)r->batch->samples[b],
                  (uint32_t)(e / 4), word);
    return coh_rng_uniform(word[e % 4]) >= rate ? 1 / (1 - rate) : 0;
}

static inline void nn_ref_dropout(const nn_ref *r, int layer, const double *x,
                                  double *y, const double *dy, double *dx)
{
    const int64_t row = coh_shape_count(r->model->layers[layer].in);

    for (int64_t n = 0; n < r->batch->capacity * row; n++) {
        const double kept = nn_ref_kept(r, layer, n / row, n % row);
        if (dy == NULL)
            y[n] = x[n] * kept;
        else
            dx[n] = dy[n] * kept;
    }
}

/* The loss of one value or, for labels, of one position; its gradient is added
 * to dx, times `scale`. Channels of a position lie `step` apart. */
static inline double nn_ref_value(const coh_layer *l, const double *x, double t,
                                  int64_t step, double scale, double *dx)
{
    const double d = *x - t;

    if (l->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY) {
        double most = x[0], sum = 0;
        for (int64_t c = 1; c < l->in.c; c++)
            most = fmax(most, x[c * step]);
        for (int64_t c = 0; c < l->in.c; c++)
            sum += exp(x[c * step] - most);
        for (int64_t c = 0; c < l->in.c && dx != NULL; c++)
            dx[c * step] +=
                scale * (exp(x[c * step] - most) / sum - (c == (int64_t)t));
        return log(sum) + most - x[(int64_t)t * step];
    }
    double slope = 2 * d, loss = d * d;
    if (l->spec.kind == COH_LAYER_SMOOTH_L1) {
        slope = fabs(d) < 1 ? d : d > 0 ? 1 : -1;
        loss = fabs(d) < 1 ? d * d / 2 : fabs(d) - 0.5;
    }
    if (l->spec.kind == COH_LAYER_SIGMOID_CROSS_ENTROPY) {
        const double p = 1 / (1 + exp(-*x));
        slope = p - t;
        loss = -t * log(p) - (1 - t) * log(1 - p);
    }
    if (dx != NULL)
        *dx += scale * slope;
    return loss;
}

/* What value or position i of row b is compared with, and its factor. */
static inline double nn_ref_target(const nn_ref *r, const coh_layer *l,
                                   int64_t b, int64_t i, double *factor)
{
    const coh_batch *batch = r->batch;
    const float *targets = batch->targets + b * batch->target_count;
    const coh_target *all = r->model->targets;
    double t = batch->labels[b];

    if (l->target == COH_TARGET_INPUT)
        t = (double)batch->images[b * coh_shape_count(l->in) + i];
    if (l->target >= 0)
        t = (double)targets[all[l->target].first + i];
    *factor = 1;
    if (l->mask >= 0)
        *factor = (double)targets[all[l->mask].first +
                                  i % coh_shape_count(all[l->mask].shape)];
    if (l->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY &&
        (t < 0 || (int64_t)t == l->spec.ignore))
        *factor = 0;
    return t;
}

/* The sum over rows of a loss; dx NULL: forward only. */
static inline double nn_ref_loss(const nn_ref *r, const coh_layer *l,
                                 const double *x, double *dx)
{
    const bool labels = l->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY;
    const int64_t size = coh_shape_count(l->in), pixels = l->in.h * l->in.w;
    const int64_t n = labels ? pixels : size;
    double sum = 0, factor;

    for (int64_t b = 0; b < r->batch->capacity; b++) {
        double weight = (double)r->batch->loss_weights[b] * l->spec.weight,
               all = 0;
        if (!r->batch->is_labelled[b] && !l->spec.unlabelled)
            continue;
        for (int64_t i = 0; i < n; i++) {
            nn_ref_target(r, l, b, i, &factor);
            all += factor;
        }
        if (l->spec.mean)
            weight /= all;
        for (int64_t i = 0; i < n; i++) {
            const double t = nn_ref_target(r, l, b, i, &factor);
            if (factor > 0)
                sum += weight * factor *
                       nn_ref_value(l, x + b * size + i, t, pixels,
                                    weight * factor,
                                    dx == NULL ? NULL : dx + b * size + i);
        }
    }
    return sum;
}

/* Log probabilities. */
static inline void nn_ref_log_softmax(const nn_ref *r, const coh_layer *l,
                                      const double *x, double *y)
{
    const int64_t K = l->in.c;

    for (int64_t b = 0; b < r->batch->capacity; b++)
        for (int64_t k = 0; k < K; k++)
            y[b * K + k] = -nn_ref_value(l, x + b * K, (double)k, 1, 0, NULL);
}

static inline void nn_ref_layer(const nn_ref *r, int i, const double *x,
                                double *y, const double *dy, double *dx)
{
    coh_layer layer = r->model->layers[i];

    switch (layer.spec.kind) {
    case COH_LAYER_CONV2D:
        nn_ref_conv(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_DENSE:
        nn_ref_dense(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_DECONV2D:
        nn_ref_deconv(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_UPSAMPLE:
    case COH_LAYER_CROP:
        nn_ref_move(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_SOFTMAX:
        nn_ref_softmax(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_LAYER_NORM:
        nn_ref_norm(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_BATCH_NORM:
        nn_ref_batch_norm(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_MAXPOOL:
        nn_ref_maxpool(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_GLOBAL_AVGPOOL:
        for (int axis = 0; axis < 2; axis++) {
            layer.spec.kernel[axis] = axis == 0 ? layer.in.h : layer.in.w;
            layer.spec.stride[axis] = layer.spec.dilation[axis] = 1;
        }
        nn_ref_avgpool(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_AVGPOOL:
        nn_ref_avgpool(r, &layer, x, y, dy, dx);
        return;
    case COH_LAYER_DROPOUT:
        nn_ref_dropout(r, i, x, y, dy, dx);
        return;
    case COH_LAYER_FLATTEN:
        memcpy(dy == NULL ? y : dx, dy == NULL ? x : dy,
               (size_t)(r->batch->capacity * coh_shape_count(layer.in)) *
                   sizeof *y);
        return;
    default:
        nn_ref_eltwise(r, &layer, x, y, dy, dx);
        return;
    }
}

static inline double *nn_zeros(int64_t count)
{
    double *zeros = calloc((size_t)count + 1, sizeof *zeros);

    ck_assert_ptr_nonnull(zeros);
    return zeros;
}

/* Values and gradients of a step: [0] the images, [i + 1] layer i's output. */
typedef struct nn_ref_state {
    double *values[NN_REF_MAX], *diffs[NN_REF_MAX];
} nn_ref_state;

/* add and concat: forward if `back` is false. */
static inline void nn_ref_join(const nn_ref *r, int i, nn_ref_state *s,
                               bool back)
{
    const coh_layer *l = &r->model->layers[i];
    const int64_t all = coh_shape_count(l->out);
    double *y = back ? s->diffs[i + 1] : s->values[i + 1];

    for (int64_t b = 0; b < r->batch->capacity; b++) {
        int64_t first = 0;
        for (int k = 0; k < l->ninputs; k++) {
            const int from = l->inputs[k] + 1;
            const int64_t n =
                coh_shape_count(coh_model_shape(r->model, l->inputs[k]));
            for (int64_t e = 0; e < n; e++) {
                double *out = &y[b * all + first + e];
                if (back)
                    s->diffs[from][b * n + e] += *out;
                else
                    *out += s->values[from][b * n + e];
            }
            first += l->spec.kind == COH_LAYER_CONCAT ? n : 0;
        }
    }
}

static inline void nn_ref_forward(const nn_ref *r, int i, nn_ref_state *s)
{
    const coh_layer *l = &r->model->layers[i];

    s->values[i + 1] = nn_zeros(r->batch->capacity * coh_shape_count(l->out));
    if (l->ninputs > 1)
        nn_ref_join(r, i, s, false);
    else if (!coh_layer_is_loss(l->spec.kind))
        nn_ref_layer(r, i, s->values[l->inputs[0] + 1], s->values[i + 1], NULL,
                     NULL);
}

static inline void nn_ref_backward(const nn_ref *r, int i, nn_ref_state *s)
{
    const coh_layer *l = &r->model->layers[i];
    const int64_t n = r->batch->capacity * coh_shape_count(l->in);
    double *dx = nn_zeros(n);

    if (l->ninputs > 1)
        nn_ref_join(r, i, s, true);
    else if (coh_layer_is_loss(l->spec.kind))
        nn_ref_loss(r, l, s->values[l->inputs[0] + 1], dx);
    else
        nn_ref_layer(r, i, s->values[l->inputs[0] + 1], s->values[i + 1],
                     s->diffs[i + 1], dx);
    for (int64_t e = 0; e < n && l->ninputs == 1; e++)
        s->diffs[l->inputs[0] + 1][e] += dx[e];
    free(dx);
}

/* One step of the whole network. log_probs[B, K] may be NULL. Returns the
 * weighted sum of the losses. */
static inline double nn_ref_step(const nn_ref *r, double *log_probs)
{
    const coh_model *m = r->model;
    const int64_t B = r->batch->capacity;
    nn_ref_state s = { 0 };
    double loss = 0;

    ck_assert_int_lt(m->nlayers + 1, NN_REF_MAX);
    s.values[0] = nn_zeros(B * coh_shape_count(m->input));
    for (int64_t i = 0; i < B * coh_shape_count(m->input); i++)
        s.values[0][i] = (double)r->batch->images[i];
    for (int i = 0; i < m->nlayers; i++)
        nn_ref_forward(r, i, &s);
    for (int i = 0; i < m->nlosses; i++) {
        const coh_layer *l = &m->layers[m->losses[i]];
        loss += nn_ref_loss(r, l, s.values[l->inputs[0] + 1], NULL);
        if (log_probs != NULL && m->losses[i] == m->classifier)
            nn_ref_log_softmax(r, l, s.values[l->inputs[0] + 1], log_probs);
    }

    for (int i = -1; i < m->nlayers; i++)
        s.diffs[i + 1] = nn_zeros(B * coh_shape_count(coh_model_shape(m, i)));
    for (int i = m->nlayers - 1; i >= 0 && r->gradient != NULL; i--)
        nn_ref_backward(r, i, &s);
    for (int i = 0; i <= m->nlayers; i++) {
        free(s.values[i]);
        free(s.diffs[i]);
    }
    return loss;
}

#endif
