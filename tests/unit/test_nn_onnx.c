/* Layers against the test data of ONNX, made by NumPy and PyTorch: an opinion
 * that is not ours on padding, strides, groups and the order of weights.
 *
 * The data is Debian's libonnx-testdata; without it (or another place in
 * COH_ONNX_DATA) the tests pass and say so.
 *
 * A layer's outputs y are seen through the loss: a dense layer hands them on as
 * logits, with one more logit that is 0, so y_k = log p_k - log p_0.
 * Bound: 2e-5 of the largest value, or of 1. */
#include <math.h>
#include <unistd.h>

#include "support/check_run.h"
#include "support/nn_nets.h"
#include "support/onnx_tensor.h"

typedef struct onnx_case {
    const char *path; /* under data/ */
    coh_layer_spec layer;
} onnx_case;

#define NODE(name) "node/test_" name
#define TORCH(name) "pytorch-converted/test_" name

#define BATCH_NORM_OF(e) NN_LAYER(BATCH_NORM, .epsilon = e, .momentum = 0.9)

static const onnx_case cases[] = {
    { NODE("basic_conv_with_padding"),
      CONV(.filters = 1, .kernel = { 3, 3 }, .padding = { 1, 1 }) },
    { NODE("basic_conv_without_padding"),
      CONV(.filters = 1, .kernel = { 3, 3 }) },
    { NODE("conv_with_strides_padding"),
      CONV(.filters = 1, .kernel = { 3, 3 }, .padding = { 1, 1 },
           .stride = { 2, 2 }) },
    { NODE("conv_with_strides_no_padding"),
      CONV(.filters = 1, .kernel = { 3, 3 }, .stride = { 2, 2 }) },
    { NODE("conv_with_strides_and_asymmetric_padding"),
      CONV(.filters = 1, .kernel = { 3, 3 }, .padding = { 1, 0 },
           .stride = { 2, 2 }) },
    { NODE("conv_with_autopad_same"), CONV(.filters = 1, .kernel = { 3, 3 },
                                           .same = true, .stride = { 2, 2 }) },
    { TORCH("Conv2d"), CONV(.filters = 4, .kernel = { 3, 2 }, .bias = true) },
    { TORCH("Conv2d_no_bias"), CONV(.filters = 4, .kernel = { 3, 2 }) },
    { TORCH("Conv2d_strided"), CONV(.filters = 4, .kernel = { 3, 3 },
                                    .stride = { 2, 2 }, .bias = true) },
    { TORCH("Conv2d_padding"),
      CONV(.filters = 4, .kernel = { 3, 3 }, .stride = { 2, 2 },
           .padding = { 1, 1 }, .bias = true) },
    { TORCH("Conv2d_dilated"),
      CONV(.filters = 2, .kernel = { 3, 3 }, .stride = { 2, 2 },
           .padding = { 1, 1 }, .dilation = { 2, 2 }, .bias = true) },
    { TORCH("Conv2d_groups"),
      CONV(.filters = 6, .kernel = { 3, 2 }, .groups = 2, .bias = true) },
    { TORCH("Conv2d_depthwise"),
      CONV(.filters = 4, .kernel = { 3, 3 }, .groups = 4, .bias = true) },
    { TORCH("Conv2d_depthwise_padded"),
      CONV(.filters = 4, .kernel = { 3, 3 }, .padding = { 1, 1 }, .groups = 4,
           .bias = true) },
    { TORCH("Conv2d_depthwise_strided"),
      CONV(.filters = 4, .kernel = { 3, 3 }, .stride = { 2, 2 }, .groups = 4,
           .bias = true) },
    { TORCH("Conv2d_depthwise_with_multiplier"),
      CONV(.filters = 8, .kernel = { 3, 3 }, .groups = 4, .bias = true) },
    { NODE("convtranspose"), DECONV(.filters = 2, .kernel = { 3, 3 }) },
    { NODE("convtranspose_autopad_same"),
      DECONV(.filters = 2, .kernel = { 3, 3 }, .stride = { 2, 2 },
             .same = true) },
    { NODE("convtranspose_dilations"),
      DECONV(.filters = 1, .kernel = { 2, 2 }, .dilation = { 2, 2 }) },
    { NODE("convtranspose_kernel_shape"),
      DECONV(.filters = 2, .kernel = { 3, 3 }, .stride = { 3, 2 },
             .output_padding = { 1, 1 }) },
    { NODE("convtranspose_pads"),
      DECONV(.filters = 2, .kernel = { 3, 3 }, .stride = { 3, 2 },
             .padding = { 1, 2 }) },
    { TORCH("ConvTranspose2d"),
      DECONV(.filters = 4, .kernel = { 3, 3 }, .stride = { 3, 2 },
             .padding = { 1, 1 }, .output_padding = { 1, 1 }, .bias = true) },
    { TORCH("ConvTranspose2d_no_bias"),
      DECONV(.filters = 4, .kernel = { 3, 3 }, .stride = { 2, 3 },
             .padding = { 1, 1 }, .output_padding = { 1, 1 }) },
    { NODE("upsample_nearest"), UPSAMPLE(2, 3) },
    { NODE("resize_upsample_scales_nearest"), UPSAMPLE(2, 3) },
    { NODE("softmax_axis_0"), SOFTMAX },
    { NODE("softmax_example"), SOFTMAX },
    { NODE("softmax_large_number"), SOFTMAX },
    { NODE("batchnorm_example"), BATCH_NORM },
    { NODE("batchnorm_epsilon"), BATCH_NORM_OF(1e-2) },
    { NODE("layer_normalization_4d_axis1"), LAYER_NORM },
    { NODE("layer_normalization_4d_axis_negative_3"), LAYER_NORM },
    { NODE("layer_normalization_2d_axis1"), LAYER_NORM },
    { TORCH("Linear"), DENSE(8) },
    { TORCH("Linear_no_bias"), NN_LAYER(DENSE, .filters = 8) },
    { NODE("maxpool_2d_precomputed_pads"),
      MAXPOOL(.kernel = { 5, 5 }, .stride = { 1, 1 }, .padding = { 2, 2 }) },
    { NODE("maxpool_2d_precomputed_strides"), MAXPOOL(.kernel = { 2, 2 }) },
    { NODE("maxpool_2d_precomputed_same_upper"),
      MAXPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .same = true) },
    { NODE("averagepool_2d_precomputed_pads"),
      AVGPOOL(.kernel = { 5, 5 }, .stride = { 1, 1 }, .padding = { 2, 2 }) },
    { NODE("averagepool_2d_precomputed_strides"), AVGPOOL(.kernel = { 2, 2 }) },
    { NODE("averagepool_2d_precomputed_same_upper"),
      AVGPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .same = true) },
    { TORCH("AvgPool2d"), AVGPOOL(.kernel = { 2, 2 }) },
    { NODE("globalaveragepool"), GLOBAL_AVGPOOL },
    { NODE("globalaveragepool_precomputed"), GLOBAL_AVGPOOL },
    { NODE("relu"), RELU },
    { NODE("leakyrelu"), LEAKY_RELU(0.1) },
    { TORCH("LeakyReLU_with_negval"), LEAKY_RELU(0.5) },
    { NODE("sigmoid"), SIGMOID },
    { NODE("tanh"), TANH },
};

/* By its own batch; then the running statistics. */
static const onnx_case trained[] = {
    { NODE("batchnorm_example_training_mode"), BATCH_NORM },
    { NODE("batchnorm_epsilon_training_mode"), BATCH_NORM_OF(1e-2) },
};

/* Log softmax over the last axis: the loss alone, after dense. */
static const char *const softmaxes[] = {
    NODE("logsoftmax_example_1"),
    NODE("logsoftmax_large_number"),
    NODE("logsoftmax_default_axis"),
    TORCH("LogSoftmax"),
};

/* Softmax cross entropy: labels for each sample, or each position; `mean` over
 * all that count in the whole batch, else the sum (or one loss each). */
static const struct {
    const char *path;
    int64_t ignore;
    bool mean;
} losses[] = {
    { NODE("sce_sum"), -1, false },
    { NODE("sce_none"), -1, false },
    { NODE("sce_mean"), -1, true },
    { NODE("sce_mean_3d"), -1, true },
    { NODE("sce_mean_no_weight_ii"), 2, true },
    { NODE("sce_mean_no_weight_ii_3d"), 2, true },
    { NODE("sce_mean_no_weight_ii_4d"), 2, true },
};

static const char *data_folder(void)
{
    const char *folder = getenv("COH_ONNX_DATA");
    return folder != NULL ? folder : "/usr/share/libonnx-testdata/data";
}

static bool has_data(void)
{
    if (access(data_folder(), R_OK) == 0)
        return true;
    printf("skipped: no ONNX test data in %s (Debian: libonnx-testdata)\n",
           data_folder());
    return false;
}

/* A tensor of a case; it must be there. */
static onnx_tensor load(const char *path, const char *file)
{
    char whole[512];

    snprintf(whole, sizeof whole, "%s/%s/test_data_set_0/%s", data_folder(),
             path, file);
    const onnx_tensor tensor = onnx_load_tensor(whole);
    ck_assert_msg(tensor.values != NULL, "cannot read %s", whole);
    return tensor;
}

/* Input [B, C, H, W], or [C, H, W] of one sample, or [B, I]. */
static coh_shape shape_of(const onnx_tensor *x, int64_t *batch)
{
    *batch = x->ndims == 3 ? 1 : x->dims[0];
    const int64_t *last = x->dims + x->ndims - 3;
    return x->ndims == 2 ? (coh_shape){ x->dims[1], 1, 1 }
                         : (coh_shape){ last[0], last[1], last[2] };
}

/* An input of one number a channel. */
static void load_channels(const char *path, const char *file, int64_t count,
                          float *out)
{
    const onnx_tensor tensor = load(path, file);

    ck_assert_int_eq(tensor.count, count);
    memcpy(out, tensor.values, (size_t)count * sizeof *out);
    free(tensor.values);
}

/* The layer's own parameters: a second input, or the model's initializers. */
static void load_parameters(const char *path, const coh_layer *layer,
                            float *weights)
{
    char model[512];
    const bool node = strncmp(path, "node", 4) == 0;
    const int ndims = layer->spec.kind == COH_LAYER_DENSE ? 2 : 4;

    if (layer->weight_count == 0)
        return;
    snprintf(model, sizeof model, "%s/%s/model.onnx", data_folder(), path);
    const onnx_tensor w =
        node ? load(path, "input_1.pb") : onnx_load_initializer(model, ndims);
    ck_assert_int_eq(w.count, layer->weight_count);
    memcpy(weights + layer->weight_first, w.values,
           (size_t)w.count * sizeof(float));
    free(w.values);
    if (layer->bias_count == 0)
        return;
    const onnx_tensor b =
        node ? load(path, "input_2.pb") : onnx_load_initializer(model, 1);
    ck_assert_int_eq(b.count, layer->bias_count);
    memcpy(weights + layer->bias_first, b.values,
           (size_t)b.count * sizeof(float));
    free(b.values);
    if (layer->statistic_count == 0)
        return;
    const int64_t C = layer->in.c;
    load_channels(path, "input_3.pb", C, weights + layer->statistic_first);
    load_channels(path, "input_4.pb", C, weights + layer->statistic_first + C);
}

/* The dense layer that hands on I values, and 0 for every output after. */
static void fill_identity(const coh_layer *layer, float *weights)
{
    const int64_t I = coh_shape_count(layer->in);

    memset(weights + layer->weight_first, 0,
           (size_t)layer->weight_count * sizeof(float));
    for (int64_t i = 0; i < I; i++)
        weights[layer->weight_first + i * I + i] = 1;
}

/* log_probs of x through the net's layers with dense `last` as identity. */
static nn_trial run_net(const nn_case *net, const char *path, int last,
                        const onnx_tensor *x)
{
    nn_trial trial = nn_trial_new(net, 1);

    ck_assert_int_eq(x->count,
                     net->batch * coh_shape_count(trial.model->input));
    memcpy(trial.batch->images, x->values, (size_t)x->count * sizeof(float));
    if (last > 0)
        load_parameters(path, &trial.model->layers[0], trial.weights);
    fill_identity(&trial.model->layers[last], trial.weights);
    nn_trial_infer(&trial);
    return trial;
}

static void check_value(const char *path, int64_t i, double got, float want,
                        double largest)
{
    ck_assert_msg(fabs(got - (double)want) <= 2e-5 * fmax(1, largest),
                  "%s, value %lld: %.9g, want %.9g", path, (long long)i, got,
                  (double)want);
}

START_TEST(a_layer_gives_what_onnx_says)
{
    const onnx_case *c = &cases[_i];
    double largest = 0;

    if (!has_data())
        return;
    const onnx_tensor x = load(c->path, "input_0.pb");
    const onnx_tensor y = load(c->path, "output_0.pb");
    nn_case net = { .layers = { c->layer } };
    net.input = shape_of(&x, &net.batch);
    const int64_t row = y.count / net.batch, K = row + 1;
    net.layers[1] = NN_LAYER(DENSE, .filters = K);
    net.layers[2] = LOSS;

    nn_trial trial = run_net(&net, c->path, 1, &x);
    ck_assert_int_eq(coh_shape_count(trial.model->layers[0].out), row);
    for (int64_t i = 0; i < y.count; i++)
        largest = fmax(largest, fabs((double)y.values[i]));
    for (int64_t i = 0; i < y.count; i++) {
        const float *probs = trial.log_probs + i / row * K;
        check_value(c->path, i, (double)probs[i % row] - (double)probs[row],
                    y.values[i], largest);
    }
    free(x.values);
    free(y.values);
    nn_trial_end(&trial);
}
END_TEST

/* The loss of row b in training, had it the label k, and had no other a weight.
 */
static double loss_if(nn_trial *trial, int64_t b, int64_t k)
{
    for (int64_t i = 0; i < trial->batch->capacity; i++)
        trial->batch->loss_weights[i] = i == b;
    trial->batch->labels[b] = (int32_t)k;
    nn_trial_train(trial);
    return trial->sums.loss;
}

/* ONNX's running variance takes that of the batch; ours its unbiased one. */
static void check_statistics(const char *path, const nn_trial *trial)
{
    const coh_layer *layer = &trial->model->layers[0];
    const int64_t C = layer->in.c;
    const double n =
        (double)(trial->batch->capacity * layer->in.h * layer->in.w);

    for (int i = 0; i < 2; i++) {
        const onnx_tensor want =
            load(path, i == 0 ? "output_1.pb" : "output_2.pb");
        const double bias = i == 0 ? 1 : (n - 1) / n;
        ck_assert_int_eq(want.count, C);
        for (int64_t c = 0; c < C; c++) {
            const int64_t at = layer->statistic_first + i * C + c;
            const double got =
                0.9 * (double)trial->weights[at] +
                0.1 * bias * (double)trial->gradient[at] / trial->sums.weight;
            check_value(path, c, got, want.values[c], 1);
        }
        free(want.values);
    }
}

START_TEST(batch_norm_in_training_gives_what_onnx_says)
{
    const onnx_case *c = &trained[_i];

    if (!has_data())
        return;
    const onnx_tensor x = load(c->path, "input_0.pb");
    const onnx_tensor y = load(c->path, "output_0.pb");
    nn_case net = { .layers = { c->layer } };
    net.input = shape_of(&x, &net.batch);
    const int64_t row = y.count / net.batch;
    net.layers[1] = NN_LAYER(DENSE, .filters = row + 1);
    net.layers[2] = LOSS;

    nn_trial trial = run_net(&net, c->path, 1, &x);
    for (int64_t b = 0; b < net.batch; b++) {
        const double none = loss_if(&trial, b, row);
        for (int64_t i = 0; i < row; i++)
            check_value(c->path, b * row + i, none - loss_if(&trial, b, i),
                        y.values[b * row + i], 4);
    }
    check_statistics(c->path, &trial);
    free(x.values);
    free(y.values);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(log_softmax_gives_what_onnx_says)
{
    const char *path = softmaxes[_i];

    if (!has_data())
        return;
    const onnx_tensor x = load(path, "input_0.pb");
    const onnx_tensor y = load(path, "output_0.pb");
    const int64_t K = x.dims[x.ndims - 1];
    const nn_case net = { { K, 1, 1 },
                          x.count / K,
                          { NN_LAYER(DENSE, .filters = K), LOSS } };

    nn_trial trial = run_net(&net, path, 0, &x);
    for (int64_t i = 0; i < y.count; i++)
        check_value(path, i, (double)trial.log_probs[i], y.values[i], 1);
    free(x.values);
    free(y.values);
    nn_trial_end(&trial);
}
END_TEST

/* The sum over a batch of what a 1 x 1 convolution, which changes nothing, hands
 * to the loss; *count: how many labels count. */
static double loss_of(const onnx_tensor *x, const onnx_tensor *labels,
                      int64_t ignore, int64_t *count)
{
    const int64_t N = x->dims[0], C = x->dims[1], H = x->count / N / C;
    const nn_case net = { { C, H, 1 },
                          N,
                          { CONV(.filters = C, .kernel = { 1, 1 }),
                            NN_LAYER(SOFTMAX_CROSS_ENTROPY, .target = "y",
                                     .ignore = ignore) },
                          { TARGET("y", 1, H, 1) } };
    nn_trial trial = nn_trial_new(&net, 1);
    memcpy(trial.batch->images, x->values, (size_t)x->count * sizeof(float));
    memcpy(trial.batch->targets, labels->values,
           (size_t)labels->count * sizeof(float));
    for (int64_t i = 0; i < C * C; i++)
        trial.weights[i] = i % (C + 1) == 0;
    for (int64_t b = 0; b < N; b++) {
        trial.batch->loss_weights[b] = 1;
        trial.batch->is_labelled[b] = true;
    }
    nn_trial_infer(&trial);
    *count = 0;
    for (int64_t i = 0; i < labels->count; i++)
        *count += (int64_t)labels->values[i] != ignore;
    const double loss = trial.sums.loss;
    nn_trial_end(&trial);
    return loss;
}

START_TEST(softmax_cross_entropy_gives_what_onnx_says)
{
    const char *path = losses[_i].path;
    double want = 0;
    int64_t count;

    if (!has_data())
        return;
    const onnx_tensor x = load(path, "input_0.pb");
    const onnx_tensor labels = load(path, "input_1.pb");
    const onnx_tensor y = load(path, "output_0.pb");
    for (int64_t i = 0; i < y.count; i++)
        want += (double)y.values[i];
    double got = loss_of(&x, &labels, losses[_i].ignore, &count);
    if (losses[_i].mean)
        got /= (double)count;
    check_value(path, 0, got, (float)want, want);
    free(x.values);
    free(labels.values);
    free(y.values);
}
END_TEST

static Suite *nn_onnx_suite(void)
{
    Suite *suite = suite_create("nn_onnx");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, a_layer_gives_what_onnx_says, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(core, batch_norm_in_training_gives_what_onnx_says, 0,
                        sizeof trained / sizeof trained[0]);
    tcase_add_loop_test(core, log_softmax_gives_what_onnx_says, 0,
                        sizeof softmaxes / sizeof softmaxes[0]);
    tcase_add_loop_test(core, softmax_cross_entropy_gives_what_onnx_says, 0,
                        sizeof losses / sizeof losses[0]);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_onnx_suite)
