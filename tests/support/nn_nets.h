/* nn_nets.h - small networks, batches and parameters for the tests of nn/.
 *
 * Everything is random but the same in every run. Failures end the test.
 */
#ifndef COH_TESTS_NN_NETS_H
#define COH_TESTS_NN_NETS_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model.h"
#include "common/rng.h"
#include "worker/batch.h"
#include "worker/nn/net.h"

/* libgomp's barriers are unknown to the thread sanitizer. */
#ifdef __SANITIZE_THREAD__
enum { NN_THREADS = 1 };
#else
enum { NN_THREADS = 2 };
#endif

enum { NN_LAYERS_MAX = 20, NN_SEED = 12 };

/* A layer: CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true). Fields left
 * out are 0, and stride, dilation, groups 1 (pools: stride as kernel). */
#define NN_LAYER(id, ...)                   \
    (coh_layer_spec)                        \
    {                                       \
        .kind = COH_LAYER_##id, __VA_ARGS__ \
    }
#define CONV(...) NN_LAYER(CONV2D, __VA_ARGS__)
#define DECONV(...) NN_LAYER(DECONV2D, __VA_ARGS__)
#define UPSAMPLE(h, w) NN_LAYER(UPSAMPLE, .scale = { h, w })
#define CROP(...) NN_LAYER(CROP, __VA_ARGS__)
#define SOFTMAX NN_LAYER(SOFTMAX, .line = 0)
#define LAYER_NORM NN_LAYER(LAYER_NORM, .epsilon = 1e-5)
#define BATCH_NORM NN_LAYER(BATCH_NORM, .epsilon = 1e-5, .momentum = 0.9)
#define DENSE(units) NN_LAYER(DENSE, .filters = units, .bias = true)
#define MAXPOOL(...) NN_LAYER(MAXPOOL, __VA_ARGS__)
#define AVGPOOL(...) NN_LAYER(AVGPOOL, __VA_ARGS__)
#define GLOBAL_AVGPOOL NN_LAYER(GLOBAL_AVGPOOL, .line = 0)
#define RELU NN_LAYER(RELU, .slope = 0.01) /* a slope that is not its own */
#define LEAKY_RELU(s) NN_LAYER(LEAKY_RELU, .slope = s)
#define SIGMOID NN_LAYER(SIGMOID, .line = 0)
#define TANH NN_LAYER(TANH, .line = 0)
#define FLATTEN NN_LAYER(FLATTEN, .line = 0)
#define DROPOUT(r) NN_LAYER(DROPOUT, .rate = r)
#define ADD(...) NN_LAYER(ADD, .from = __VA_ARGS__)
#define CONCAT(...) NN_LAYER(CONCAT, .from = __VA_ARGS__)
/* CONV(.filters = 5, FROM("layer2")): layer2 is the third of the list. */
#define FROM(name) .from = { 1, { name } }
#define BOTH(a, b) \
    {              \
        2,         \
        {          \
            a, b   \
        }          \
    }
#define LOSS NN_LAYER(SOFTMAX_CROSS_ENTROPY, .ignore = -1, .mean = true)
#define TARGET(n, c, h, w)                     \
    {                                          \
        .name = n, .shape = { 3, { c, h, w } } \
    }

/* A case may leave its targets out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* A network and the rows it is tried on. The list of layers ends where fields
 * were left out. */
typedef struct nn_case {
    coh_shape input;
    int64_t batch;
    coh_layer_spec layers[NN_LAYERS_MAX];
    coh_target_spec targets[5]; /* up to one without name */
} nn_case;

typedef struct nn_trial {
    coh_model *model;
    coh_batch *batch;
    coh_compute compute;
    float *weights;   /* [P] */
    float *gradient;  /* [P] */
    float *log_probs; /* [B, K] */
    coh_step_sums sums;
} nn_trial;

/* Number i of a stream of standard normal numbers. */
static inline float nn_normal(uint32_t stream, int64_t i)
{
    float four[4];
    coh_rng_normals(coh_rng_key_of(1, 5000 + stream), 0, (uint64_t)(i / 4), 0,
                    four);
    return four[i % 4];
}

static inline void nn_fill_defaults(coh_layer_spec *spec, int index)
{
    const bool pool =
        spec->kind == COH_LAYER_MAXPOOL || spec->kind == COH_LAYER_AVGPOOL;

    snprintf(spec->name, sizeof spec->name, "layer%d", index);
    for (int i = 0; i < 2; i++) {
        if (spec->stride[i] == 0)
            spec->stride[i] = pool ? spec->kernel[i] : 1;
        if (spec->dilation[i] == 0)
            spec->dilation[i] = 1;
    }
    if (spec->groups == 0)
        spec->groups = 1;
    if (spec->weight == 0)
        spec->weight = 1;
}

static inline coh_model *nn_model_new(const nn_case *net)
{
    coh_layer_spec layers[NN_LAYERS_MAX];
    coh_config config = { .train.accumulate = 1 };
    coh_err err = COH_ERR_INIT;
    coh_model *model = NULL;
    int n = 0;

    while (n < NN_LAYERS_MAX && (net->layers[n].kind != COH_LAYER_CONV2D ||
                                 net->layers[n].filters > 0)) {
        layers[n] = net->layers[n];
        nn_fill_defaults(&layers[n], n);
        n++;
    }
    config.model.input.count = 3;
    config.model.input.items[0] = net->input.c;
    config.model.input.items[1] = net->input.h;
    config.model.input.items[2] = net->input.w;
    config.model.nlayers = n;
    config.model.layers = layers;
    coh_target_spec targets[5];
    memcpy(targets, net->targets, sizeof targets);
    config.model.targets = targets;
    while (targets[config.model.ntargets].name[0] != '\0')
        config.model.ntargets++;
    coh_model_new(&config, &model, &err);
    ck_assert_msg(model != NULL, "%s", err.text);
    return model;
}

/* Value i of a sample's target t. */
static inline float nn_target(const coh_target *t, int64_t sample, int64_t i)
{
    const float normal = nn_normal(4, sample * 7919 + t->first + i);
    const float uniform = 0.5f + 0.5f * tanhf(normal);

    if (t->classes > 0 && t->is_mask)
        return floorf(uniform * (float)t->classes);
    if (t->classes > 0)
        return floorf(uniform * (float)(t->classes + 1)) - 1; /* from -1 on */
    if (t->is_mask)
        return uniform < 0.3f ? 0 : uniform < 0.6f ? 1 : uniform;
    return t->is_map ? uniform : 2 * normal;
}

/* Row b of a batch becomes sample `sample`: image, label and weight are
 * functions of it alone. */
static inline void nn_fill_row(coh_batch *batch, const coh_model *model,
                               int64_t b, int64_t sample)
{
    const int64_t count = coh_shape_count(model->input);

    batch->samples[b] = sample;
    batch->is_labelled[b] = model->ntargets == 0 || sample % 3 != 1;
    for (int t = 0; t < model->ntargets; t++)
        for (int64_t i = 0; i < coh_shape_count(model->targets[t].shape); i++)
            batch->targets[b * batch->target_count + model->targets[t].first +
                           i] = nn_target(&model->targets[t], sample, i);
    if (model->classes > 0)
        batch->labels[b] = (int32_t)((sample * 7 + 3) % model->classes);
    batch->loss_weights[b] = 0.5f + 0.25f * (float)(sample % 4);
    batch->metric_weights[b] = 1.0f;
    for (int64_t i = 0; i < count; i++)
        batch->images[b * count + i] = nn_normal(1, sample * count + i);
}

/* Samples first, first + 1, ...: `count` of them, the rest is padding. */
static inline coh_batch *nn_batch_new(const coh_model *model, int64_t capacity,
                                      int64_t first, int64_t count)
{
    coh_batch *batch = NULL;

    ck_assert_int_eq(coh_batch_new(model->input, model->target_count, capacity,
                                   &batch, NULL),
                     COH_OK);
    batch->count = count;
    batch->epoch = 3;
    for (int64_t b = 0; b < count; b++)
        nn_fill_row(batch, model, b, first + b);
    return batch;
}

/* Initial weights, but no biases of 0 and no factors of 1; statistics that could
 * be. */
static inline float *nn_weights_new(const coh_model *model)
{
    float *weights = malloc((size_t)model->parameters * sizeof *weights);

    ck_assert_ptr_nonnull(weights);
    coh_model_init(model, 3, weights);
    for (int l = 0; l < model->nlayers; l++) {
        const coh_layer *layer = &model->layers[l];
        for (int64_t i = 0; i < layer->bias_count; i++)
            weights[layer->bias_first + i] = 0.3f * nn_normal(2, i);
        for (int64_t i = 0; i < layer->weight_count; i++)
            if (layer->spec.kind == COH_LAYER_LAYER_NORM ||
                layer->spec.kind == COH_LAYER_BATCH_NORM)
                weights[layer->weight_first + i] += 0.3f * nn_normal(3, i);
        for (int64_t i = 0; i < layer->statistic_count; i++)
            weights[layer->statistic_first + i] +=
                0.4f * tanhf(nn_normal(5, i));
    }
    return weights;
}

/* A full batch, a net for training and inference, no step yet. Gradient and
 * log_probs are NaN, so that what a step leaves out is found. */
static inline nn_trial nn_trial_new_by(const nn_case *net, int threads,
                                       const coh_choices *choices)
{
    nn_trial self = { .model = nn_model_new(net) };
    const int64_t outputs = net->batch * self.model->classes + 1;
    coh_err err = COH_ERR_INIT;

    self.batch = nn_batch_new(self.model, net->batch, 0, net->batch);
    self.weights = nn_weights_new(self.model);
    self.gradient = malloc((size_t)self.model->parameters * sizeof(float));
    self.log_probs = malloc((size_t)outputs * sizeof(float));
    ck_assert(self.gradient != NULL && self.log_probs != NULL);
    memset(self.gradient, 0xff, (size_t)self.model->parameters * sizeof(float));
    memset(self.log_probs, 0xff, (size_t)outputs * sizeof(float));
    coh_net_new(self.model, net->batch, net->batch, NN_SEED, threads, choices,
                &self.compute, &err);
    ck_assert_msg(self.compute.self != NULL, "%s", err.text);
    return self;
}

/* The same, all direct. */
static inline nn_trial nn_trial_new(const nn_case *net, int threads)
{
    return nn_trial_new_by(net, threads, NULL);
}

static inline void nn_trial_train(nn_trial *self)
{
    self->compute.train(self->compute.self, self->batch, self->weights,
                        self->gradient, &self->sums, NULL);
}

static inline void nn_trial_infer(nn_trial *self)
{
    self->compute.infer(self->compute.self, self->batch, self->weights,
                        self->log_probs, &self->sums);
}

static inline void nn_trial_end(nn_trial *self)
{
    self->compute.destroy(&self->compute.self);
    ck_assert_ptr_null(self->compute.self);
    coh_batch_destroy(&self->batch);
    coh_model_destroy(&self->model);
    free(self->weights);
    free(self->gradient);
    free(self->log_probs);
}

#endif
