/* dataset_synthetic.c - images made in memory; see dataset_part.h.
 *
 * A class is a plane wave with its own direction, wavelength and, in each
 * channel, phase. A sample is its class's wave of a random strength, moved by
 * a random part of up to a quarter of a wavelength, under noise that is
 * stronger than it. Sample i is of class i mod classes. All is a pure function
 * of (seed, split, sample): nothing is kept, and the size of the set is free.
 *
 * Counters of the random numbers: epoch 0 and 1 are the training and the test
 * set with the sample's number, index 0 for strength and phase, from 1 on for
 * the noise; epoch 2 are the classes, index 0 the whole set's offsets.
 */
#include "worker/dataset_part.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

enum {
    TRAIN_NUMBERS = 0,
    TEST_NUMBERS = 1,
    CLASS_NUMBERS = 2,
    BLOCK = 8 /* noise values of one call: 16 bits each */
};

static const float noise_deviation = 1.0f;
static const float strength_least = 0.25f, strength_most = 0.75f;
static const double wave_shortest = 4.0, wave_longest = 12.0; /* pixels */
static const double pi = 3.141592653589793;

typedef struct synthetic {
    coh_rng_key key;
    uint32_t numbers; /* TRAIN_NUMBERS or TEST_NUMBERS */
    int64_t classes;
    coh_shape shape;
    float *waves; /* cosine and sine along a row, [2, W], owned */
} synthetic;

/* Part `k` of a sequence that fills [0, 1) evenly for any length of it. */
static double spread(int64_t k, double step, uint32_t offset)
{
    const double x = (double)k * step + (double)coh_rng_uniform(offset);
    return x - floor(x);
}

/* Overwrite values[count] with noise: uniform, mean 0. */
static void fill_noise(const synthetic *self, int64_t sample, float *values,
                       int64_t count)
{
    const float step = noise_deviation * 3.4641016f / 65536.0f; /* sqrt 12 */
    uint32_t word[4], index = 1;

    for (int64_t i = 0; i < count; i += BLOCK, index++) {
        float block[BLOCK];
        coh_rng_words(self->key, self->numbers, (uint64_t)sample, index, word);
        for (int k = 0; k < 4; k++) {
            block[2 * k] = ((float)(word[k] & 0xffff) - 32767.5f) * step;
            block[2 * k + 1] = ((float)(word[k] >> 16) - 32767.5f) * step;
        }
        const int64_t left = count - i;
        memcpy(values + i, block,
               (size_t)(left < BLOCK ? left : BLOCK) * sizeof *values);
    }
}

/* plane[H, W] += strength * sin(fy y + fx x + phase). */
static void add_wave(const synthetic *self, double fy, double fx, double phase,
                     float strength, float *plane)
{
    const int64_t w = self->shape.w;
    float *restrict cosine = self->waves, *restrict sine = self->waves + w;

    for (int64_t x = 0; x < w; x++) {
        cosine[x] = (float)cos(fx * (double)x);
        sine[x] = (float)sin(fx * (double)x);
    }
    for (int64_t y = 0; y < self->shape.h; y++) {
        const double angle = fy * (double)y + phase;
        const float s = strength * (float)sin(angle);
        const float c = strength * (float)cos(angle);
        float *restrict row = plane + y * w;
        for (int64_t x = 0; x < w; x++)
            row[x] += s * cosine[x] + c * sine[x];
    }
}

static void make_image(const synthetic *self, int64_t sample, float *image)
{
    const int64_t class = sample % self->classes;
    const int64_t pixels = self->shape.h * self->shape.w;
    uint32_t set[4], own[4], channel[4];

    coh_rng_words(self->key, CLASS_NUMBERS, 0, 0, set);
    coh_rng_words(self->key, self->numbers, (uint64_t)sample, 0, own);
    const double direction = pi * spread(class, 0.6180339887498949, set[0]);
    const double length =
        wave_shortest + (wave_longest - wave_shortest) *
                            spread(class, 0.7548776662466927, set[1]);
    const double frequency = 2 * pi / length;
    const double moved = pi * ((double)coh_rng_uniform(own[0]) - 0.5);
    const float strength = strength_least + (strength_most - strength_least) *
                                                coh_rng_uniform(own[1]);

    fill_noise(self, sample, image, self->shape.c * pixels);
    for (int64_t c = 0; c < self->shape.c; c++) {
        coh_rng_words(self->key, CLASS_NUMBERS, (uint64_t) class,
                      (uint32_t)c + 1, channel);
        const double phase = 2 * pi * (double)coh_rng_uniform(channel[0]);
        add_wave(self, frequency * sin(direction), frequency * cos(direction),
                 phase + moved, strength, image + c * pixels);
    }
}

static coh_status read_rows(void *part, const coh_part_row *rows, int64_t count,
                            float *images, coh_err *err)
{
    const synthetic *self = part;

    (void)err;
    for (int64_t i = 0; i < count; i++)
        make_image(self, rows[i].sample,
                   images + rows[i].row * coh_shape_count(self->shape));
    return COH_OK;
}

static int32_t label_of(const void *part, int64_t sample)
{
    const synthetic *self = part;
    return (int32_t)(sample % self->classes);
}

static void close_part(void *part)
{
    synthetic *self = part;

    free(self->waves);
    free(self);
}

static const coh_part_ops synthetic_ops = { .read = read_rows,
                                            .label = label_of,
                                            .close = close_part };

coh_status coh_part_open_synthetic(const coh_config *config, coh_split split,
                                   coh_shape input, int64_t classes,
                                   coh_part *out, coh_err *err)
{
    const bool is_train = split == COH_SPLIT_TRAIN;
    if (config->data.classes > classes)
        return coh_fail(err, COH_E_CONFIG,
                        "data.classes is %" PRId64 ", but the network ends in "
                        "%" PRId64 " classes: make them equal",
                        config->data.classes, classes);

    synthetic *self = calloc(1, sizeof *self);
    coh_part part = { .ops = &synthetic_ops,
                      .self = self,
                      .name = strdup(is_train ? "synthetic training set"
                                              : "synthetic test set"),
                      .shape = input,
                      .count = is_train ? config->data.train_samples
                                        : config->data.test_samples };
    if (self != NULL)
        self->waves = malloc(2 * (size_t)input.w * sizeof *self->waves);
    if (self == NULL || self->waves == NULL || part.name == NULL) {
        coh_part_close(&part);
        return coh_fail(err, COH_E_NOMEM, "no memory for synthetic data");
    }
    self->key = coh_rng_key_of((uint64_t)config->run.seed, COH_RNG_SYNTHETIC);
    self->numbers = is_train ? TRAIN_NUMBERS : TEST_NUMBERS;
    self->classes = config->data.classes;
    self->shape = input;
    *out = part;
    return COH_OK;
}
