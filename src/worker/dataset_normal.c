/* dataset_normal.c - see dataset_normal.h and coh_dataset_measure().
 *
 * max: shift 0, factor 1 / max |x|; standard: shift the mean, factor
 * 1 / standard deviation (of the population). Where that number is 0, as in a
 * channel of zeros, the factor is 1. Sums are in double: means and squared
 * deviations are merged by the formula of Chan, Golub and LeVeque ("Updating
 * formulae and a pairwise algorithm for computing sample variances", 1979),
 * which does not lose a small deviation beside a large mean.
 */
#include "worker/dataset_normal.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

enum {
    LANES = 8,            /* partial sums, so that the compiler can vectorise */
    MEASURED_AT_ONCE = 32 /* samples in memory */
};

/* Of one channel, or of all. */
typedef struct moments {
    double count, mean, squares; /* squares: sum of (x - mean)^2 */
    double largest;              /* |x| */
} moments;

void coh_normal_apply(const coh_normal *self, coh_shape shape, float *image)
{
    const int64_t pixels = shape.h * shape.w;

    if (self->channels == 0)
        return;
    for (int64_t c = 0; c < shape.c; c++) {
        const int64_t k = self->channels == 1 ? 0 : c;
        const float shift = self->shift[k], factor = self->factor[k];
        float *plane = image + c * pixels;
        for (int64_t i = 0; i < pixels; i++)
            plane[i] = (plane[i] - shift) * factor;
    }
}

/* Numbers kept: one a channel, or one in all. */
static int64_t channels_of(const coh_config *config, coh_shape shape)
{
    if (config->data.normalize == COH_NORMALIZE_NONE)
        return 0;
    return config->data.normalize_over == COH_NORMALIZE_GLOBAL ? 1 : shape.c;
}

static double sum_lanes(const double *lanes)
{
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

static double mean_of(const float *x, int64_t count)
{
    double lanes[LANES] = { 0 };
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        for (int k = 0; k < LANES; k++)
            lanes[k] += (double)x[i + k];
    }
    for (; i < count; i++)
        lanes[0] += (double)x[i];
    return sum_lanes(lanes) / (double)count;
}

static double squares_of(const float *x, int64_t count, double mean)
{
    double lanes[LANES] = { 0 };
    int64_t i = 0;

    for (; i + LANES <= count; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            const double d = (double)x[i + k] - mean;
            lanes[k] += d * d;
        }
    }
    for (; i < count; i++)
        lanes[0] += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sum_lanes(lanes);
}

static double largest_of(const float *x, int64_t count)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    return (double)largest;
}

static void merge(moments *self, const float *x, int64_t count)
{
    const double n = (double)count;
    const double mean = mean_of(x, count);
    const double apart = mean - self->mean;
    const double total = self->count + n;
    const double largest = largest_of(x, count);

    self->squares +=
        squares_of(x, count, mean) + apart * apart * self->count * n / total;
    self->mean += apart * n / total;
    self->count = total;
    if (largest > self->largest)
        self->largest = largest;
}

static void add_images(moments *sums, int64_t channels, coh_shape shape,
                       const float *images, int64_t count)
{
    const int64_t pixels = shape.h * shape.w;

    for (int64_t plane = 0; plane < count * shape.c; plane++)
        merge(&sums[channels == 1 ? 0 : plane % shape.c],
              images + plane * pixels, pixels);
}

/* A deviation this small beside the values is the rounding of their mean. */
static double deviation_of(const moments *self)
{
    const double deviation =
        self->count > 0 ? sqrt(self->squares / self->count) : 0;
    return deviation > 1e-10 * self->largest ? deviation : 0;
}

static void finish(const moments *sums, int64_t channels, coh_normalize kind,
                   coh_normal *out)
{
    const bool is_standard = kind == COH_NORMALIZE_STANDARD;

    memset(out, 0, sizeof *out);
    out->channels = channels;
    for (int64_t c = 0; c < channels; c++) {
        const double scale =
            is_standard ? deviation_of(&sums[c]) : sums[c].largest;
        const float factor = (float)(1 / scale);
        out->shift[c] = is_standard ? (float)sums[c].mean : 0.0f;
        out->factor[c] = scale > 0 && isfinite(factor) ? factor : 1.0f;
    }
}

static int by_value(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* The samples to measure on, in the order of the files. */
static coh_status choose(const coh_dataset *self, uint64_t seed, int64_t count,
                         int64_t **out, coh_err *err)
{
    int64_t *samples = malloc((size_t)(count + 1) * sizeof *samples);
    if (samples == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory to measure %" PRId64 " samples: lower "
                        "data.normalize_samples",
                        count);
    for (int64_t i = 0; i < count; i++)
        samples[i] = coh_rng_permute(seed, 0, coh_dataset_count(self), i);
    qsort(samples, (size_t)count, sizeof *samples, by_value);
    *out = samples;
    return COH_OK;
}

static coh_status measure(coh_dataset *self, const int64_t *samples,
                          int64_t count, int64_t channels, moments *sums,
                          coh_err *err)
{
    const coh_shape input = coh_dataset_input(self);
    const coh_normal was = *coh_dataset_normal(self), none = { 0 };
    coh_batch *batch = NULL;
    coh_status status = coh_batch_new(input, coh_dataset_targets(self),
                                      MEASURED_AT_ONCE, &batch, err);

    coh_dataset_normalize(self, &none);
    for (int64_t i = 0; status == COH_OK && i < count; i += MEASURED_AT_ONCE) {
        const int64_t left = count - i;
        const int64_t n = left < MEASURED_AT_ONCE ? left : MEASURED_AT_ONCE;
        status = coh_dataset_read(self, samples + i, n, batch, err);
        if (status == COH_OK)
            add_images(sums, channels, input, batch->images, n);
    }
    coh_dataset_normalize(self, &was);
    coh_batch_destroy(&batch);
    return status;
}

coh_status coh_dataset_measure(coh_dataset *self, const coh_config *config,
                               coh_normal *out, coh_err *err)
{
    const int64_t channels = channels_of(config, coh_dataset_input(self));
    const int64_t limit = config->data.normalize_samples;
    const int64_t all = coh_dataset_count(self);
    const int64_t count = all < limit ? all : limit;
    int64_t *samples = NULL;
    if (channels > COH_CHANNELS_MAX)
        return coh_fail(err, COH_E_CONFIG,
                        "data.normalize_over: channel can do %d channels, "
                        "model.input has %" PRId64 ": use global",
                        COH_CHANNELS_MAX, channels);
    if (channels == 0) {
        memset(out, 0, sizeof *out);
        return COH_OK;
    }

    moments *sums = calloc((size_t)channels, sizeof *sums);
    coh_status status =
        sums == NULL
            ? coh_fail(err, COH_E_NOMEM, "no memory to measure")
            : choose(self, (uint64_t)config->run.seed, count, &samples, err);
    if (status == COH_OK)
        status = measure(self, samples, count, channels, sums, err);
    if (status == COH_OK)
        finish(sums, channels, (coh_normalize)config->data.normalize, out);
    free(samples);
    free(sums);
    return status;
}
