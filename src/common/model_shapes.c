/* model_shapes.c - from the shape of a layer's input to that of its output; see
 * model_build.h. */
#include "common/model_build.h"

#include <inttypes.h>
#include <stdio.h>

enum { TAPS_MAX = 1 << 20 };

coh_status coh_layer_misfit(const coh_layer *layer, coh_err *err,
                            const char *what)
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
    return coh_layer_misfit(layer, err, what);
}

static coh_status check_groups(const coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;
    char what[192];

    if (layer->in.c % spec->groups == 0 && spec->filters % spec->groups == 0)
        return COH_OK;
    snprintf(what, sizeof what,
             "but groups: %" PRId64 " must divide both these channels and "
             "its %" PRId64 " filters",
             spec->groups, spec->filters);
    return coh_layer_misfit(layer, err, what);
}

/* So that a library that makes code for each window does not do so for hours. */
static coh_status check_taps(const coh_layer *layer, coh_err *err)
{
    const int64_t *kernel = layer->spec.kernel;
    char what[192];

    if (coh_times(kernel[0], kernel[1]) <= TAPS_MAX)
        return COH_OK;
    snprintf(what, sizeof what,
             "but its window of %" PRId64 " x %" PRId64
             " has more than %d points: use a smaller kernel",
             kernel[0], kernel[1], TAPS_MAX);
    return coh_layer_misfit(layer, err, what);
}

static coh_status infer_conv(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    layer->out.c = spec->filters;
    coh_status status = check_groups(layer, err);
    if (status == COH_OK)
        status = check_taps(layer, err);
    if (status == COH_OK)
        status = slide_window(layer, err);
    if (status != COH_OK)
        return status;

    const int64_t taps =
        layer->in.c / spec->groups * spec->kernel[0] * spec->kernel[1];
    layer->weight_count = coh_times(spec->filters, taps);
    layer->bias_count = spec->bias ? spec->filters : 0;
    layer->flop = coh_times(coh_times(2, layer->weight_count),
                            layer->out.h * layer->out.w);
    return COH_OK;
}

/* Output size and padding of one axis. What the window is laid out over is cut
 * by the padding; output_padding adds to its end. */
static int64_t unslide(coh_layer *layer, int axis, int64_t in)
{
    const coh_layer_spec *spec = &layer->spec;
    const int64_t stride = spec->stride[axis];
    const int64_t reach = (spec->kernel[axis] - 1) * spec->dilation[axis] + 1;

    layer->pad_before[axis] = spec->padding[axis];
    layer->pad_after[axis] = spec->padding[axis] - spec->output_padding[axis];
    if (spec->same) {
        const int64_t pad = reach - stride; /* output = input x stride */
        layer->pad_before[axis] = pad > 0 ? pad / 2 : 0;
        layer->pad_after[axis] = pad - layer->pad_before[axis];
    }
    return (in - 1) * stride + reach - layer->pad_before[axis] -
           layer->pad_after[axis];
}

static coh_status check_output_padding(const coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    for (int axis = 0; axis < 2; axis++) {
        if (spec->output_padding[axis] == 0)
            continue;
        if (spec->same)
            return coh_layer_misfit(layer, err,
                                    "but padding: same leaves no choice of "
                                    "output_padding: remove it");
        if (spec->output_padding[axis] >= spec->stride[axis])
            return coh_layer_misfit(layer, err,
                                    "but its output_padding is not smaller "
                                    "than its stride");
    }
    return COH_OK;
}

static coh_status infer_deconv(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    layer->out.c = spec->filters;
    coh_status status = check_groups(layer, err);
    if (status == COH_OK)
        status = check_taps(layer, err);
    if (status == COH_OK)
        status = check_output_padding(layer, err);
    if (status != COH_OK)
        return status;
    layer->out.h = unslide(layer, 0, layer->in.h);
    layer->out.w = unslide(layer, 1, layer->in.w);
    if (layer->out.h < 1 || layer->out.w < 1)
        return coh_layer_misfit(layer, err,
                                "of which its padding leaves nothing: use "
                                "less, or a larger kernel");

    const int64_t taps =
        spec->filters / spec->groups * spec->kernel[0] * spec->kernel[1];
    layer->weight_count = coh_times(layer->in.c, taps);
    layer->bias_count = spec->bias ? spec->filters : 0;
    layer->flop =
        coh_times(coh_times(2, layer->weight_count), layer->in.h * layer->in.w);
    return COH_OK;
}

static coh_status infer_pool(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    layer->out.c = layer->in.c;
    if (spec->padding[0] >= spec->kernel[0] ||
        spec->padding[1] >= spec->kernel[1])
        return coh_layer_misfit(
            layer, err,
            "but its padding is as large as its kernel: some "
            "windows would hold padding only");
    return slide_window(layer, err);
}

static coh_status infer_crop(coh_layer *layer, coh_err *err)
{
    const coh_layer_spec *spec = &layer->spec;

    if (spec->offset[0] + spec->size[0] > layer->in.h ||
        spec->offset[1] + spec->size[1] > layer->in.w)
        return coh_layer_misfit(layer, err,
                                "but offset + size reaches beyond it");
    layer->out = (coh_shape){ layer->in.c, spec->size[0], spec->size[1] };
    return COH_OK;
}

static void infer_layer_norm(coh_layer *layer)
{
    layer->out = layer->in;
    layer->weight_count = layer->bias_count = coh_shape_count(layer->in);
}

static void infer_batch_norm(coh_layer *layer)
{
    layer->out = layer->in;
    layer->weight_count = layer->bias_count = layer->in.c;
    layer->statistic_count = 2 * layer->in.c;
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

coh_status coh_model_infer(const coh_model *model, coh_layer *layer,
                           coh_err *err)
{
    switch (layer->spec.kind) {
    case COH_LAYER_CONV2D:
        return infer_conv(layer, err);
    case COH_LAYER_DECONV2D:
        return infer_deconv(layer, err);
    case COH_LAYER_MAXPOOL:
    case COH_LAYER_AVGPOOL:
        return infer_pool(layer, err);
    case COH_LAYER_GLOBAL_AVGPOOL:
        layer->out = (coh_shape){ layer->in.c, 1, 1 };
        return COH_OK;
    case COH_LAYER_DENSE:
        layer->out = (coh_shape){ layer->spec.filters, 1, 1 };
        layer->weight_count =
            coh_times(layer->spec.filters, coh_shape_count(layer->in));
        layer->bias_count = layer->spec.bias ? layer->spec.filters : 0;
        layer->flop = coh_times(2, layer->weight_count);
        return COH_OK;
    case COH_LAYER_UPSAMPLE:
        layer->out =
            (coh_shape){ layer->in.c,
                         coh_times(layer->in.h, layer->spec.scale[0]),
                         coh_times(layer->in.w, layer->spec.scale[1]) };
        return COH_OK;
    case COH_LAYER_CROP:
        return infer_crop(layer, err);
    case COH_LAYER_LAYER_NORM:
        infer_layer_norm(layer);
        return COH_OK;
    case COH_LAYER_BATCH_NORM:
        infer_batch_norm(layer);
        return COH_OK;
    case COH_LAYER_FLATTEN:
        layer->out = (coh_shape){ coh_shape_count(layer->in), 1, 1 };
        return COH_OK;
    case COH_LAYER_ADD:
    case COH_LAYER_CONCAT:
        return infer_join(model, layer, err);
    case COH_LAYER_RELU:
    case COH_LAYER_LEAKY_RELU:
    case COH_LAYER_SIGMOID:
    case COH_LAYER_TANH:
    case COH_LAYER_SOFTMAX:
    case COH_LAYER_SOFTMAX_CROSS_ENTROPY:
    case COH_LAYER_SIGMOID_CROSS_ENTROPY:
    case COH_LAYER_MEAN_SQUARED_ERROR:
    case COH_LAYER_SMOOTH_L1:
    case COH_LAYER_DROPOUT:
        layer->out = layer->in;
        return COH_OK;
    }
    return coh_layer_misfit(layer, err, "its kind is not known");
}
