/* model.c - see model.h. */
#include "common/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/model_build.h"
#include "common/rng.h"

enum { PARAMETERS_MAX_LOG2 = 40, FLOP_MAX_LOG2 = 50, VALUES_MAX_LOG2 = 44 };

/* Which input gradients are needed: those that lead to weights. */
static void find_needs(coh_model *self)
{
    for (int i = 0; i < self->nlayers; i++) {
        coh_layer *layer = &self->layers[i];
        layer->leads = layer->weight_count > 0;
        for (int k = 0; k < layer->ninputs; k++) {
            const int from = layer->inputs[k];
            layer->needs_diff[k] = from >= 0 && self->layers[from].leads;
            layer->leads |= layer->needs_diff[k];
        }
    }
}

/* Rows of the largest batch of a worker, at least 1. */
static int64_t largest_batch(const coh_config *config)
{
    const int64_t members = config->group_size > 0 ? config->group_size : 1;
    const int64_t split =
        config->train.group_batch / members / config->train.accumulate;
    const int64_t train = split > 0 ? split : config->train.batch;

    const int64_t most =
        train > config->eval.batch ? train : config->eval.batch;
    return most > 0 ? most : 1;
}

/* Counts of values, and their bytes in any layout, stay numbers. */
static bool is_too_large(coh_shape s, int64_t batch)
{
    const int64_t values = coh_times(coh_times(s.c, s.h), s.w);
    return coh_times(values, batch) >> VALUES_MAX_LOG2 != 0;
}

static coh_status check_input(coh_shape input, int64_t batch, coh_err *err)
{
    if (!is_too_large(input, batch))
        return COH_OK;
    return coh_fail(err, COH_E_CONFIG,
                    "model.input: %" PRId64 " x %" PRId64 " x %" PRId64
                    " makes too many values in a batch of %" PRId64
                    ": use smaller images, train.batch or eval.batch",
                    input.c, input.h, input.w, batch);
}

static coh_status check_size(const coh_layer *layer, int64_t batch,
                             coh_err *err)
{
    char what[192];

    if (!is_too_large(layer->out, batch))
        return COH_OK;
    snprintf(what, sizeof what,
             "which makes too many values in a batch of %" PRId64
             ": use a smaller layer, train.batch or eval.batch",
             batch);
    return coh_layer_misfit(layer, err, what);
}

/* Lay the layers' parameters into the flat vector and add up the flop. */
static coh_status sum_up(coh_model *self, coh_err *err)
{
    for (int i = 0; i < self->nlayers; i++) {
        coh_layer *layer = &self->layers[i];
        if (layer->weight_count >> PARAMETERS_MAX_LOG2 != 0 ||
            layer->flop >> FLOP_MAX_LOG2 != 0)
            return coh_layer_misfit(layer, err,
                                    "which makes too many parameters");
        layer->weight_first = self->parameters;
        layer->bias_first = layer->weight_first + layer->weight_count;
        layer->statistic_first = layer->bias_first + layer->bias_count;
        self->parameters = layer->statistic_first + layer->statistic_count;
        self->trained += layer->weight_count + layer->bias_count;
        if (self->parameters >> PARAMETERS_MAX_LOG2 != 0)
            return coh_layer_misfit(layer, err,
                                    "which makes too many parameters");
        self->flop_forward += layer->flop;
        self->flop_step += (layer->needs_diff[0] ? 3 : 2) * layer->flop;
    }
    if (self->parameters == 0)
        return coh_fail(err, COH_E_CONFIG,
                        "model.layers: no layer has parameters, nothing can "
                        "be trained: add a conv2d or dense layer");
    self->flop_step_full = 3 * self->flop_forward;
    return COH_OK;
}

/* Which of the parameters are running statistics. */
static coh_status list_statistics(coh_model *self, coh_err *err)
{
    coh_statistics *list = &self->statistics;

    list->items = calloc((size_t)self->nlayers, sizeof *list->items);
    if (list->items == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for %d layers",
                        self->nlayers);
    for (int i = 0; i < self->nlayers; i++) {
        const coh_layer *layer = &self->layers[i];
        if (layer->statistic_count > 0)
            list->items[list->count++] =
                (coh_statistic){ layer->statistic_first, layer->statistic_count,
                                 layer->spec.momentum };
    }
    return COH_OK;
}

coh_status coh_model_new(const coh_config *config, coh_model **out,
                         coh_err *err)
{
    const int64_t *input = config->model.input.items;
    const int nlayers = config->model.nlayers;
    const int64_t batch = largest_batch(config);
    coh_status status = COH_OK;

    coh_model *self = calloc(1, sizeof *self);
    if (self != NULL)
        self->layers = calloc((size_t)nlayers, sizeof *self->layers);
    if (self == NULL || self->layers == NULL) {
        coh_model_destroy(&self);
        return coh_fail(err, COH_E_NOMEM, "no memory for %d layers", nlayers);
    }
    self->input = (coh_shape){ input[0], input[1], input[2] };
    self->nlayers = nlayers;

    for (int i = 0; i < nlayers; i++)
        self->layers[i].spec = config->model.layers[i];
    status = coh_model_connect(self, err);
    for (int i = 0; i < nlayers && status == COH_OK; i++) {
        coh_layer *layer = &self->layers[i];
        layer->in = coh_model_shape(self, layer->inputs[0]);
        status = coh_model_infer(self, layer, err);
        if (status == COH_OK)
            status = check_size(layer, batch, err);
    }
    if (status == COH_OK)
        status = coh_model_aim(self, config, err);
    if (status == COH_OK) {
        find_needs(self);
        status = sum_up(self, err);
    }
    if (status == COH_OK)
        status = check_input(self->input, batch, err);
    if (status == COH_OK)
        status = list_statistics(self, err);
    if (status != COH_OK) {
        coh_model_destroy(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

coh_status coh_model_check_share(const coh_model *self, int64_t samples,
                                 coh_err *err)
{
    char what[192];

    snprintf(what, sizeof what,
             "but a worker with a step of %" PRId64 " sample%s has one value "
             "of each channel, which has no variance: raise train.batch (or "
             "train.group_batch), or use layer_norm",
             samples, samples == 1 ? "" : "s");
    for (int i = 0; i < self->nlayers; i++) {
        const coh_layer *layer = &self->layers[i];
        if (layer->spec.kind == COH_LAYER_BATCH_NORM &&
            samples * layer->in.h * layer->in.w <= 1)
            return coh_layer_misfit(layer, err, what);
    }
    return COH_OK;
}

coh_shape coh_model_shape(const coh_model *self, int layer)
{
    return layer < 0 ? self->input : self->layers[layer].out;
}

int coh_model_users(const coh_model *self, int layer, int *user)
{
    int users = 0;

    for (int i = layer + 1; i < self->nlayers; i++)
        for (int k = 0; k < self->layers[i].ninputs; k++)
            if (self->layers[i].inputs[k] == layer) {
                users++;
                *user = i;
            }
    return users;
}

void coh_model_destroy(coh_model **self)
{
    if (*self == NULL)
        return;
    free((*self)->layers);
    free((*self)->targets);
    free((*self)->statistics.items);
    free(*self);
    *self = NULL;
}

/* How many products an output is the sum of; of deconv2d, on average. */
static double fan_in(const coh_layer *layer)
{
    const coh_layer_spec *spec = &layer->spec;
    const double outputs = (double)spec->filters;

    if (spec->kind != COH_LAYER_DECONV2D)
        return (double)layer->weight_count / outputs;
    return fmax(1, (double)layer->weight_count / outputs /
                       (double)(spec->stride[0] * spec->stride[1]));
}

static bool is_norm(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_LAYER_NORM ||
           layer->spec.kind == COH_LAYER_BATCH_NORM;
}

/* Biases and means are 0, factors and variances 1, other weights 0. */
static void init_constants(const coh_layer *layer, float *values)
{
    float *statistics = values + layer->statistic_first;

    for (int64_t i = 0; i < layer->weight_count; i++)
        values[layer->weight_first + i] = is_norm(layer) ? 1.0f : 0.0f;
    for (int64_t i = 0; i < layer->bias_count; i++)
        values[layer->bias_first + i] = 0.0f;
    for (int64_t i = 0; i < layer->statistic_count; i++)
        statistics[i] = i < layer->statistic_count / 2 ? 0.0f : 1.0f;
}

void coh_model_init(const coh_model *self, uint64_t seed, float *values)
{
    const coh_rng_key key = coh_rng_key_of(seed, COH_RNG_INIT);

    for (int l = 0; l < self->nlayers; l++) {
        const coh_layer *layer = &self->layers[l];
        init_constants(layer, values);
        if (is_norm(layer))
            continue;
        const float deviation = (float)sqrt(2.0 / fan_in(layer));
        float *w = values + layer->weight_first;
        for (int64_t i = 0; i < layer->weight_count; i += 4) {
            float normal[4];
            coh_rng_normals(key, (uint32_t)l, (uint64_t)i / 4, 0, normal);
            for (int64_t j = i; j < i + 4 && j < layer->weight_count; j++)
                w[j] = deviation * normal[j - i];
        }
    }
}

/* FNV-1a over the numbers that fix what each parameter means. A kind of layer is
 * its letter, so that new kinds change no old number. */
int64_t coh_model_fingerprint(const coh_model *self)
{
    static const char *const letters[] = {
#define X(name, id, letter, help) letter,
        COH_LAYER_KINDS(X)
#undef X
    };
    uint64_t hash = 0xcbf29ce484222325u;

    for (int l = 0; l < self->nlayers; l++) {
        const coh_layer *layer = &self->layers[l];
        const coh_layer_spec *spec = &layer->spec;
        const int64_t facts[] = {
            *letters[spec->kind], layer->in.c,         layer->in.h,
            layer->in.w,          layer->out.c,        layer->out.h,
            layer->out.w,         spec->kernel[0],     spec->kernel[1],
            spec->stride[0],      spec->stride[1],     layer->pad_before[0],
            spec->dilation[0],    spec->dilation[1],   layer->pad_before[1],
            layer->weight_first,  layer->weight_count, layer->bias_count,
        };
        for (int k = 0; k < layer->ninputs; k++)
            if (layer->inputs[k] != l - 1)
                hash =
                    (hash ^ (uint64_t)(l - layer->inputs[k])) * 0x100000001b3u;
        for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
            hash = (hash ^ (uint64_t)facts[i]) * 0x100000001b3u;
    }
    return (int64_t)(hash >> 1);
}
