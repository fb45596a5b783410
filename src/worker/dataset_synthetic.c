/* dataset_synthetic.c - images made in memory; see dataset_part.h.
 *
 * A class is a plane wave with its own direction, wavelength and, in each
 * channel, phase. A sample is its class's wave of a random strength, moved by
 * a random part of up to a quarter of a wavelength, under noise that is
 * stronger than it. Sample i is of class i mod classes. All is a pure function
 * of (seed, split, sample): nothing is kept, and the size of the set is free.
 *
 * If the network has targets, a sample also shows one to four objects: boxes in
 * which every channel is lifted by an amount of the object's class. Object 0
 * has the sample's class. A target of H x W cells tells of each object in the
 * cell that holds its centre (of several, the first); elsewhere it is 0:
 *     labels      its class; -1 in the other cells. A mask: 1
 *     of sigmoid  1 in the channel of its class
 *     numbers     channel by channel through all such targets, in turns: where
 *                 in the cell its centre lies (x, y, in [0, 1)), the logarithms
 *                 (base 2) of its width and height, in cells
 * A class is taken modulo the target's classes. A share of the training set
 * (data.unlabelled) has no labels: its targets are 0.
 *
 * Counters of the random numbers: epoch 0 and 1 are the training and the test
 * set with the sample's number, index 0 for strength and phase, from 1 on for
 * the noise; epoch 2 are the classes, index 0 the whole set's offsets; epoch 3
 * and 4 the objects of the training and the test set.
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
    OBJECT_NUMBERS = 3, /* and 4 */
    OBJECTS_MAX = 4,
    BLOCK = 8 /* noise values of one call: 16 bits each */
};

static const float noise_deviation = 1.0f;
static const float strength_least = 0.25f, strength_most = 0.75f;
static const double wave_shortest = 4.0, wave_longest = 12.0; /* pixels */
static const double box_smallest = -4, box_largest = -2; /* log2 of the image */
static const float box_lift = 2;
static const double pi = 3.141592653589793;

typedef struct synthetic {
    coh_rng_key key;
    uint32_t numbers; /* TRAIN_NUMBERS or TEST_NUMBERS */
    int64_t classes;
    coh_shape shape;
    double unlabelled;      /* share of this set */
    const coh_model *model; /* if it has targets: borrowed; else NULL */
    float *waves;           /* cosine and sine along a row, [2, W], owned */
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

/* --- Objects ---------------------------------------------------------------- */

/* Centre and size as shares of the image. */
typedef struct object {
    int64_t class;
    double x, y, w, h;
} object;

/* Returns how many; the same for the image and for all targets. */
static int find_objects(const synthetic *self, int64_t sample,
                        object out[OBJECTS_MAX])
{
    const double span = box_largest - box_smallest;
    uint32_t place[4], size[4];
    int count = 1;

    for (int i = 0; i < count; i++) {
        coh_rng_words(self->key, OBJECT_NUMBERS + self->numbers,
                      (uint64_t)sample, (uint32_t)(2 * i), place);
        coh_rng_words(self->key, OBJECT_NUMBERS + self->numbers,
                      (uint64_t)sample, (uint32_t)(2 * i + 1), size);
        if (i == 0)
            count += (int)(place[2] % OBJECTS_MAX);
        out[i] = (object){
            .class = i == 0 ? sample % self->classes
                            : (int64_t)size[2] % self->classes,
            .x = (double)coh_rng_uniform(place[0]),
            .y = (double)coh_rng_uniform(place[1]),
            .w = exp2(box_smallest + span * (double)coh_rng_uniform(size[0])),
            .h = exp2(box_smallest + span * (double)coh_rng_uniform(size[1])),
        };
    }
    return count;
}

static int64_t within(double x, int64_t count)
{
    const int64_t i = (int64_t)floor(x * (double)count);
    return i < 0 ? 0 : i > count ? count : i;
}

/* Lift every channel inside the object's box. */
static void draw(const synthetic *self, const object *o, float *image)
{
    const int64_t h = self->shape.h, w = self->shape.w;
    const int64_t top = within(o->y - o->h / 2, h);
    const int64_t bottom = within(o->y + o->h / 2, h);
    const int64_t left = within(o->x - o->w / 2, w);
    const int64_t right = within(o->x + o->w / 2, w);
    uint32_t word[4];

    for (int64_t c = 0; c < self->shape.c; c++) {
        coh_rng_words(self->key, CLASS_NUMBERS, (uint64_t)o->class,
                      (uint32_t)c + 1, word);
        const float lift = box_lift * (2 * coh_rng_uniform(word[1]) - 1);
        for (int64_t y = top; y < bottom; y++)
            for (int64_t x = left; x < right; x++)
                image[(c * h + y) * w + x] += lift;
    }
}

/* Number `property` of an object, seen on a grid of h x w cells. */
static float number_of(const object *o, int64_t property, int64_t h, int64_t w)
{
    const double x = o->x * (double)w, y = o->y * (double)h;

    switch (property % 4) {
    case 0:
        return (float)(x - floor(x));
    case 1:
        return (float)(y - floor(y));
    case 2:
        return (float)log2(o->w * (double)w);
    default:
        return (float)log2(o->h * (double)h);
    }
}

/* One object in one target; `property` of its first channel. */
static void mark(const coh_target *target, const object *o, int64_t property,
                 float *values)
{
    const coh_shape s = target->shape;
    const int64_t cells = s.h * s.w;
    float *cell = values + within(o->y, s.h) * s.w + within(o->x, s.w);

    for (int64_t c = 0; c < s.c; c++) {
        if (target->is_mask)
            cell[c * cells] = 1;
        else if (target->classes > 0)
            cell[c * cells] = (float)(o->class % target->classes);
        else if (target->is_map)
            cell[c * cells] = c == o->class % s.c;
        else
            cell[c * cells] = number_of(o, property + c, s.h, s.w);
    }
}

static bool make_targets(const void *part, int64_t sample, float *targets)
{
    const synthetic *self = part;
    object objects[OBJECTS_MAX];
    uint32_t own[4];
    int64_t property = 0;

    coh_rng_words(self->key, self->numbers, (uint64_t)sample, 0, own);
    const bool is_labelled =
        (double)coh_rng_uniform(own[2]) >= self->unlabelled;
    if (self->model == NULL)
        return is_labelled;
    memset(targets, 0, (size_t)self->model->target_count * sizeof *targets);
    if (!is_labelled)
        return false;
    const int count = find_objects(self, sample, objects);
    for (int t = 0; t < self->model->ntargets; t++) {
        const coh_target *target = &self->model->targets[t];
        float *values = targets + target->first;
        const bool is_label = target->classes > 0 && !target->is_mask;
        for (int64_t i = 0; is_label && i < coh_shape_count(target->shape); i++)
            values[i] = -1;
        for (int i = count - 1; i >= 0; i--)
            mark(target, &objects[i], property, values);
        if (!is_label && !target->is_mask && !target->is_map)
            property += target->shape.c;
    }
    return true;
}

static void aim(void *part, const coh_model *model)
{
    synthetic *self = part;
    self->model = model;
}

/* --- The part --------------------------------------------------------------- */

static coh_status read_rows(void *part, const coh_part_row *rows, int64_t count,
                            float *images, coh_err *err)
{
    const synthetic *self = part;

    object objects[OBJECTS_MAX];

    (void)err;
    for (int64_t i = 0; i < count; i++) {
        float *image = images + rows[i].row * coh_shape_count(self->shape);
        make_image(self, rows[i].sample, image);
        if (self->model == NULL)
            continue;
        const int n = find_objects(self, rows[i].sample, objects);
        for (int k = 0; k < n; k++)
            draw(self, &objects[k], image);
    }
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
                                            .aim = aim,
                                            .targets = make_targets,
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
    self->unlabelled = is_train ? config->data.unlabelled : 0;
    self->shape = input;
    *out = part;
    return COH_OK;
}
