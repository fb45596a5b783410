/* model.c - see model.h. */
#include "common/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "common/model_inputs.h"
#include "common/rng.h"

enum { PARAMETERS_MAX_LOG2 = 40, FLOP_MAX_LOG2 = 50 };

/* a b of numbers that are not negative; the largest number if it is more. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t out;
    return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

static coh_status misfit(const coh_layer *layer, coh_err *err, const char *what)
{
    return coh_fail(err, COH_E_CONFIG,
                    "model.layers, line %d: layer %s: its input is %" PRId64
                    " x %" PRId64 " x %" PRId64 " (channels, height, width), "
                    "%s",
                    layer->spec.line, layer->spec.name, layer->in.c,
                    layer->in.h, layer->in.w, what);
}

/* Two inputs that do not go together. */
static coh_status misfit_pair(const coh_model *model, const coh_layer *layer,
                              int k, coh_err *err, const char *what)
{
    const int inputs[2] = { layer->inputs[0], layer->inputs[k] };
    char text[2][160];

    for (int i = 0; i < 2; i++) {
        const coh_shape s = coh_model_shape(model, inputs[i]);
        snprintf(text[i], sizeof text[i],
                 "%s of %" PRId64 " x %" PRId64 " x %" PRId64,
                 inputs[i] < 0 ? "input" : model->layers[inputs[i]].spec.name,
                 s.c, s.h, s.w);
    }
    return coh_fail(err, COH_E_CONFIG,
                    "model.layers, line %d: layer %s: it takes %s and %s "
                    "(channels, height, width): %s",
                    layer->spec.line, layer->spec.name, text[0], text[1], what);
}

/* Output size and padding of one axis; 0 if the window does not fit. */
static int64_t slide(coh_layer *layer, int axis, int64_t in)
{
    const coh_layer_spec *spec = &layer->spec;
    const int64_t stride = spec->stride[axis];
    const int64_t reach = (spec->kernel[axis] - 1) * spec->dilation[axis] + 1;

    if (!spec->same) {
        layer->pad_before[axis] = layer->pad_after[axis] = spec->padding[axis];
        const int64_t room = in + 2 * spec->padding[axis] - reach;
        return room < 0 ? 0 : room / stride + 1;
    }
    const int64_t out = (in + stride - 1) / stride;
    int64_t pad = (out - 1) * stride + reach - in;
    if (pad < 0)
        pad = 0;
    layer->pad_before[axis] = pad / 2;
    layer->pad_after[axis] = pad - pad / 2;
    return out;
}

/* out.h and out.w of a layer with a window. */
static coh_status slide_window(coh_layer *layer, coh_err *err)
{
    char what[192];

    layer->out.h = slide(layer, 0, layer->in.h);
    layer->out.w = slide(layer, 1, layer->in.w);
    if (layer->out.h >= 1 && layer->out.w >= 1)
        return COH_OK;
    snprintf(what, sizeof what,
             "smaller than its window of %" PRId64 " x %" PRId64
             ": use a smaller kernel, padding: same, or fewer pools before it",
             layer->spec.kernel[0], layer->spec.kernel[1]);
    return misfit(layer, err, what);
}

static coh_status infer_conv(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;
    char what[192];

    layer->out.c = spec->filters;
    if (layer->in.c % spec->groups != 0 || spec->filters % spec->groups != 0) {
        snprintf(what, sizeof what,
                 "but groups: %" PRId64 " must divide both these channels and "
                 "its %" PRId64 " filters",
                 spec->groups, spec->filters);
        return misfit(layer, err, what);
    }
    const coh_status status = slide_window(layer, err);
    if (status != COH_OK)
        return status;

    const int64_t taps =
        layer->in.c / spec->groups * spec->kernel[0] * spec->kernel[1];
    layer->weight_count = times(spec->filters, taps);
    layer->bias_count = spec->bias ? spec->filters : 0;
    layer->flop =
        times(times(2, layer->weight_count), layer->out.h * layer->out.w);
    return COH_OK;
}

static coh_status infer_pool(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    layer->out.c = layer->in.c;
    if (spec->padding[0] >= spec->kernel[0] ||
        spec->padding[1] >= spec->kernel[1])
        return misfit(layer, err,
                      "but its padding is as large as its kernel: some "
                      "windows would hold padding only");
    return slide_window(layer, err);
}

/* add and concat: the inputs must be alike, but for concat's channels. */
static coh_status infer_join(const coh_model *model, coh_layer *layer,
                             coh_err *err)
{
    const bool adds = layer->spec.kind == COH_LAYER_ADD;

    layer->out = layer->in;
    for (int k = 1; k < layer->ninputs; k++) {
        const coh_shape s = coh_model_shape(model, layer->inputs[k]);
        if (s.h != layer->in.h || s.w != layer->in.w ||
            (adds && s.c != layer->in.c))
            return misfit_pair(model, layer, k, err,
                               adds ? "their shapes must be the same"
                                    : "height and width must be the same");
        if (!adds)
            layer->out.c += s.c;
    }
    return COH_OK;
}

static coh_status infer_loss(coh_layer *layer, coh_err *err)
{
    layer->out = layer->in;
    if (layer->in.h != 1 || layer->in.w != 1)
        return misfit(layer, err,
                      "but it needs one value a class: put a dense layer or "
                      "global_avgpool before it");
    if (layer->in.c < 2)
        return misfit(layer, err, "but it needs two classes or more");
    return COH_OK;
}

/* From layer->spec and layer->in: out, padding, counts, flop. */
static coh_status infer(const coh_model *model, coh_layer *layer, coh_err *err)
{
    switch (layer->spec.kind) {
    case COH_LAYER_CONV2D:
        return infer_conv(layer, err);
    case COH_LAYER_MAXPOOL:
    case COH_LAYER_AVGPOOL:
        return infer_pool(layer, err);
    case COH_LAYER_GLOBAL_AVGPOOL:
        layer->out = (coh_shape){ layer->in.c, 1, 1 };
        return COH_OK;
    case COH_LAYER_DENSE:
        layer->out = (coh_shape){ layer->spec.filters, 1, 1 };
        layer->weight_count =
            times(layer->spec.filters, coh_shape_count(layer->in));
        layer->bias_count = layer->spec.bias ? layer->spec.filters : 0;
        layer->flop = times(2, layer->weight_count);
        return COH_OK;
    case COH_LAYER_FLATTEN:
        layer->out = (coh_shape){ coh_shape_count(layer->in), 1, 1 };
        return COH_OK;
    case COH_LAYER_ADD:
    case COH_LAYER_CONCAT:
        return infer_join(model, layer, err);
    case COH_LAYER_SOFTMAX_CROSS_ENTROPY:
        return infer_loss(layer, err);
    case COH_LAYER_RELU:
    case COH_LAYER_LEAKY_RELU:
    case COH_LAYER_SIGMOID:
    case COH_LAYER_TANH:
    case COH_LAYER_DROPOUT:
        layer->out = layer->in;
        return COH_OK;
    }
    return misfit(layer, err, "its kind is not known");
}

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

/* Lay the layers' parameters into the flat vector and add up the flop. */
static coh_status sum_up(coh_model *self, coh_err *err)
{
    for (int i = 0; i < self->nlayers; i++) {
        coh_layer *layer = &self->layers[i];
        if (layer->weight_count >> PARAMETERS_MAX_LOG2 != 0 ||
            layer->flop >> FLOP_MAX_LOG2 != 0)
            return misfit(layer, err, "which makes too many parameters");
        layer->weight_first = self->parameters;
        layer->bias_first = layer->weight_first + layer->weight_count;
        self->parameters = layer->bias_first + layer->bias_count;
        if (self->parameters >> PARAMETERS_MAX_LOG2 != 0)
            return misfit(layer, err, "which makes too many parameters");
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

coh_status coh_model_new(const coh_config *config, coh_model **out,
                         coh_err *err)
{
    const int64_t *input = config->model.input.items;
    const int nlayers = config->model.nlayers;
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
        status = infer(self, layer, err);
    }
    find_needs(self);
    if (status == COH_OK)
        status = sum_up(self, err);
    if (status != COH_OK) {
        coh_model_destroy(&self);
        return status;
    }
    self->classes = self->layers[nlayers - 1].in.c;
    *out = self;
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
    free(*self);
    *self = NULL;
}

void coh_model_init(const coh_model *self, uint64_t seed, float *values)
{
    const coh_rng_key key = coh_rng_key_of(seed, COH_RNG_INIT);

    for (int l = 0; l < self->nlayers; l++) {
        const coh_layer *layer = &self->layers[l];
        if (layer->weight_count == 0)
            continue;
        const double fan_in =
            (double)(layer->weight_count / layer->spec.filters);
        const float deviation = (float)sqrt(2.0 / fan_in);
        float *w = values + layer->weight_first;
        for (int64_t i = 0; i < layer->weight_count; i += 4) {
            float normal[4];
            coh_rng_normals(key, (uint32_t)l, (uint64_t)i / 4, 0, normal);
            for (int64_t j = i; j < i + 4 && j < layer->weight_count; j++)
                w[j] = deviation * normal[j - i];
        }
        for (int64_t i = 0; i < layer->bias_count; i++)
            values[layer->bias_first + i] = 0.0f;
    }
}

/* FNV-1a over the numbers that fix what each parameter means. */
int64_t coh_model_fingerprint(const coh_model *self)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (int l = 0; l < self->nlayers; l++) {
        const coh_layer *layer = &self->layers[l];
        const coh_layer_spec *spec = &layer->spec;
        const int64_t facts[] = {
            spec->kind,          layer->in.c,         layer->in.h,
            layer->in.w,         layer->out.c,        layer->out.h,
            layer->out.w,        spec->kernel[0],     spec->kernel[1],
            spec->stride[0],     spec->stride[1],     layer->pad_before[0],
            spec->dilation[0],   spec->dilation[1],   layer->pad_before[1],
            layer->weight_first, layer->weight_count, layer->bias_count,
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
