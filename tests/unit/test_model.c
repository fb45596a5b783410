/* test_model.c - shapes, counts and flop of a network (src/common/model.h).
 * No MPI. */
#include "common/model.h"

#include <math.h>
#include <stdlib.h>

#include "support/config_text.h"

static coh_err err;

static coh_config *config_with(const char *input, const char *layers)
{
    char text[2048];

    snprintf(text, sizeof text, DATA "model:\n  input: %s\n  layers: [%s]\n",
             input, layers);
    return config_of(text);
}

static coh_model *model_of(const char *input, const char *layers)
{
    coh_config *config = config_with(input, layers);
    coh_model *model = NULL;

    err = COH_ERR_INIT;
    const coh_status status = coh_model_new(config, &model, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    coh_config_destroy(&config); /* nothing of it is kept */
    return model;
}

#define CONV "conv2d: {filters: 128, kernel: 3, padding: same}, relu"
#define UNIT CONV ", maxpool: {kernel: 2}, dropout: {rate: 0.5}, "
#define HEP                                                          \
    UNIT UNIT UNIT UNIT CONV ", global_avgpool, dense: {units: 2}, " \
                             "softmax_cross_entropy"

/* Convolutions, by hand: 2 x 128 x pixels x inputs x 9:
 *     224^2 x   3    346,816,512
 *     112^2 x 128  3,699,376,128
 *      56^2 x 128    924,844,032
 *      28^2 x 128    231,211,008
 *      14^2 x 128     57,802,752
 * and the dense layer 2 x 2 x 128 = 512. Parameters 3,584 + 4 x 147,584 + 258.
 */
START_TEST(the_hep_network_has_the_published_size_and_work)
{
    coh_model *model = model_of("[3, 224, 224]", HEP);

    ck_assert_int_eq(model->parameters, 594178);
    ck_assert_int_eq(model->flop_forward, INT64_C(5260050944));
    ck_assert_int_eq(model->flop_step_full, INT64_C(15780152832));
    ck_assert_int_eq(model->flop_step, INT64_C(15433336320));
    ck_assert_int_eq(model->classes, 2);
    ck_assert_int_eq(model->layers[0].flop, 346816512);
    coh_model_destroy(&model);
    coh_model_destroy(&model); /* twice is once */
}
END_TEST

#define STRIDED(filters, kernel, pad)                  \
    "conv2d: {filters: " #filters ", kernel: " #kernel \
    ", stride: 2, padding: " #pad "}, relu, "

START_TEST(the_climate_encoder_has_the_published_sizes)
{
    static const int64_t counts[] = { 75360, 1204480, 6423040, 19268352,
                                      12583936 };
    coh_model *model = model_of(
        "[16, 768, 768]",
        STRIDED(96, 7, 3) STRIDED(256, 7, 3) STRIDED(512, 7, 3)
            STRIDED(768, 7, 3) STRIDED(
                1024, 4,
                1) "global_avgpool, dense: {units: 4}, softmax_cross_entropy");

    int64_t size = 768;
    for (int i = 0; i < 5; i++) {
        const coh_layer *layer = &model->layers[2 * i];
        size /= 2;
        ck_assert_int_eq(layer->weight_count + layer->bias_count, counts[i]);
        ck_assert_int_eq(layer->out.h, size);
        ck_assert_int_eq(layer->out.w, size);
    }
    ck_assert_int_eq(model->layers[0].flop, INT64_C(22196256768));
    ck_assert_int_eq(model->layers[2].flop, INT64_C(88785027072));
    coh_model_destroy(&model);
}
END_TEST

/* Parameters and forward flop of its 14 layers with weights. */
static const struct {
    const char *name;
    int64_t parameters, flop;
} climate[] = {
    { "conv1", 75360, INT64_C(22196256768) },
    { "conv2", 1204480, INT64_C(88785027072) },
    { "conv3", 6423040, INT64_C(118380036096) },
    { "conv4", 19268352, INT64_C(88785027072) },
    { "conv5", 12583936, INT64_C(14495514624) },
    { "class_head", 36868, 42467328 },
    { "object_head", 18434, 21233664 },
    { "offset_head", 18434, 21233664 },
    { "size_head", 18434, 21233664 },
    { "deconv1", 12583680, INT64_C(14495514624) },
    { "deconv2", 19268096, INT64_C(88785027072) },
    { "deconv3", 6422784, INT64_C(118380036096) },
    { "deconv4", 1204320, INT64_C(88785027072) },
    { "deconv5", 75280, INT64_C(22196256768) },
};

START_TEST(the_climate_network_has_the_published_size_and_work)
{
    coh_config *config = NULL;
    coh_model *model = NULL;
    int at = 0;

    ck_assert_int_eq(
        coh_config_load("config/climate.yaml", NULL, 0, &config, &err), COH_OK);
    const coh_status status = coh_model_new(config, &model, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    ck_assert_int_eq(model->parameters, 79201498);
    ck_assert_int_eq(model->flop_forward, INT64_C(665389891584));
    ck_assert_int_eq(model->flop_step, INT64_C(1973973417984));
    ck_assert_int_eq(model->flop_step_full, INT64_C(1996169674752));
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        if (layer->weight_count == 0)
            continue;
        ck_assert_str_eq(layer->spec.name, climate[at].name);
        ck_assert_int_eq(layer->weight_count + layer->bias_count,
                         climate[at].parameters);
        ck_assert_int_eq(layer->flop, climate[at++].flop);
    }
    ck_assert_int_eq(at, 14);
    ck_assert_int_eq(model->nlosses, 6);
    ck_assert_int_eq(model->classes, 0);
    coh_config_destroy(&config);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(parameters_lie_in_layer_order_weights_then_bias)
{
    coh_model *model = model_of(
        "[2, 5, 5]", "conv2d: {filters: 3, kernel: [2, 3]}, tanh, "
                     "conv2d: {filters: 4, kernel: 1, bias: false}, flatten, "
                     "dense: {units: 7}, softmax_cross_entropy");
    const coh_layer *l = model->layers;

    ck_assert_int_eq(l[0].weight_first, 0);
    ck_assert_int_eq(l[0].weight_count, 3 * 2 * 2 * 3);
    ck_assert_int_eq(l[0].bias_first, 36);
    ck_assert_int_eq(l[0].bias_count, 3);
    ck_assert_int_eq(l[2].weight_first, 39);
    ck_assert_int_eq(l[2].weight_count, 12);
    ck_assert_int_eq(l[2].bias_count, 0);
    ck_assert_int_eq(l[4].weight_first, 51);
    ck_assert_int_eq(l[4].weight_count, 7 * 4 * 4 * 3);
    ck_assert_int_eq(l[4].bias_first, 51 + 336);
    ck_assert_int_eq(model->parameters, 51 + 336 + 7);
    coh_model_destroy(&model);
}
END_TEST

#define END ", flatten, dense: {units: 2}, softmax_cross_entropy"

/* input, the first layer, its output, padding top left bottom right. */
static const struct {
    const char *input, *layer;
    int64_t out[3], pad[4];
} shapes[] = {
    { "[1, 28, 28]", "conv2d: {filters: 8, kernel: 5}", { 8, 24, 24 }, { 0 } },
    { "[1, 28, 28]",
      "conv2d: {filters: 8, kernel: 5, padding: 2}",
      { 8, 28, 28 },
      { 2, 2, 2, 2 } },
    { "[1, 27, 31]",
      "conv2d: {filters: 8, kernel: 3, stride: 2}",
      { 8, 13, 15 },
      { 0 } },
    { "[1, 27, 30]",
      "conv2d: {filters: 8, kernel: 3, stride: 2, padding: same}",
      { 8, 14, 15 },
      { 1, 0, 1, 1 } },
    { "[1, 28, 28]",
      "conv2d: {filters: 8, kernel: 2, padding: same}",
      { 8, 28, 28 },
      { 0, 0, 1, 1 } },
    { "[1, 28, 28]",
      "conv2d: {filters: 8, kernel: 3, dilation: 4}",
      { 8, 20, 20 },
      { 0 } },
    { "[1, 28, 28]",
      "conv2d: {filters: 8, kernel: 3, dilation: [1, 3], padding: same}",
      { 8, 28, 28 },
      { 1, 3, 1, 3 } },
    { "[6, 9, 9]",
      "conv2d: {filters: 4, kernel: 3, groups: 2}",
      { 4, 7, 7 },
      { 0 } },
    { "[1, 5, 9]",
      "conv2d: {filters: 1, kernel: [5, 1], stride: [1, 4]}",
      { 1, 1, 3 },
      { 0 } },
    { "[3, 7, 5]", "deconv2d: {filters: 8, kernel: 3}", { 8, 9, 7 }, { 0 } },
    { "[3, 7, 5]",
      "deconv2d: {filters: 8, kernel: 7, stride: 2, padding: 3, "
      "output_padding: 1}",
      { 8, 14, 10 },
      { 3, 3, 2, 2 } },
    { "[3, 7, 5]",
      "deconv2d: {filters: 8, kernel: [5, 4], stride: 2, padding: same}",
      { 8, 14, 10 },
      { 1, 1, 2, 1 } },
    { "[3, 7, 5]",
      "deconv2d: {filters: 8, kernel: 1, stride: 3, padding: same}",
      { 8, 21, 15 },
      { 0, 0, -2, -2 } },
    { "[3, 7, 5]",
      "deconv2d: {filters: 8, kernel: 3, dilation: 2}",
      { 8, 11, 9 },
      { 0 } },
    { "[3, 7, 5]", "upsample: {scale: [2, 3]}", { 3, 14, 15 }, { 0 } },
    { "[3, 7, 5]", "crop: {size: [2, 4], offset: [5, 1]}", { 3, 2, 4 }, { 0 } },
    { "[3, 7, 5]", "softmax", { 3, 7, 5 }, { 0 } },
    { "[3, 7, 5]", "layer_norm", { 3, 7, 5 }, { 0 } },
    { "[3, 7, 5]", "batch_norm", { 3, 7, 5 }, { 0 } },
    { "[3, 7, 7]", "maxpool: {kernel: 2}", { 3, 3, 3 }, { 0 } },
    { "[3, 7, 7]",
      "maxpool: {kernel: 2, padding: same}",
      { 3, 4, 4 },
      { 0, 0, 1, 1 } },
    { "[3, 7, 7]", "avgpool: {kernel: 3, stride: 1}", { 3, 5, 5 }, { 0 } },
    { "[3, 7, 7]",
      "avgpool: {kernel: 2, stride: 3, padding: same}",
      { 3, 3, 3 },
      { 0, 0, 1, 1 } },
    { "[3, 7, 7]", "global_avgpool", { 3, 1, 1 }, { 0 } },
    { "[3, 7, 7]", "flatten", { 147, 1, 1 }, { 0 } },
    { "[3, 7, 7]", "relu", { 3, 7, 7 }, { 0 } },
    { "[3, 7, 7]", "dropout: {rate: 0.5}", { 3, 7, 7 }, { 0 } },
    { "[3, 7, 7]", "dense: {units: 10}", { 10, 1, 1 }, { 0 } },
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

START_TEST(a_layer_gives_its_shape)
{
    char layers[512];
    snprintf(layers, sizeof layers, "%s" END, shapes[_i].layer);
    coh_model *model = model_of(shapes[_i].input, layers);
    const coh_layer *layer = &model->layers[0];

    ck_assert_int_eq(layer->out.c, shapes[_i].out[0]);
    ck_assert_int_eq(layer->out.h, shapes[_i].out[1]);
    ck_assert_int_eq(layer->out.w, shapes[_i].out[2]);
    ck_assert_int_eq(layer->pad_before[0], shapes[_i].pad[0]);
    ck_assert_int_eq(layer->pad_before[1], shapes[_i].pad[1]);
    ck_assert_int_eq(layer->pad_after[0], shapes[_i].pad[2]);
    ck_assert_int_eq(layer->pad_after[1], shapes[_i].pad[3]);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(a_deconvolution_works_as_the_convolution_it_undoes)
{
    coh_model *there = model_of(
        "[4, 12, 12]", "conv2d: {filters: 6, kernel: 7, stride: 2, padding: 3, "
                       "groups: 2}" END);
    coh_model *back = model_of(
        "[6, 6, 6]", "deconv2d: {filters: 4, kernel: 7, stride: 2, padding: 3, "
                     "output_padding: 1, groups: 2}" END);

    ck_assert_int_eq(there->layers[0].weight_count,
                     back->layers[0].weight_count);
    ck_assert_int_eq(there->layers[0].flop, back->layers[0].flop);
    ck_assert_int_eq(back->layers[0].out.h, 12);
    ck_assert_int_eq(back->layers[0].bias_count, 4);
    coh_model_destroy(&there);
    coh_model_destroy(&back);
}
END_TEST

START_TEST(the_factors_of_layer_norm_begin_as_1)
{
    coh_model *model = model_of("[4, 3, 2]", "layer_norm" END);
    float values[24 + 24 + 48 + 2];

    ck_assert_int_eq(model->parameters, 24 + 24 + 48 + 2);
    coh_model_init(model, 1, values);
    for (int i = 0; i < 24; i++) {
        ck_assert_float_eq(values[i], 1);
        ck_assert_float_eq(values[24 + i], 0);
    }
    ck_assert_int_eq(model->layers[0].flop, 0);
    coh_model_destroy(&model);
}
END_TEST

/* Factors, biases, means, variances; then the dense layer. */
START_TEST(batch_norm_has_statistics_behind_its_bias)
{
    coh_model *model =
        model_of("[4, 3, 2]", "batch_norm: {momentum: 0.75}" END);
    const coh_layer *l = model->layers;
    float values[16 + 48 + 2];

    ck_assert_int_eq(model->parameters, 16 + 48 + 2);
    ck_assert_int_eq(model->trained, 8 + 48 + 2);
    ck_assert_int_eq(l[0].bias_first, 4);
    ck_assert_int_eq(l[0].statistic_first, 8);
    ck_assert_int_eq(l[0].statistic_count, 8);
    ck_assert_int_eq(coh_layer_parameters(&l[0]), 16);
    ck_assert_int_eq(l[1].weight_first, 16);
    ck_assert_int_eq(model->statistics.count, 1);
    ck_assert_int_eq(model->statistics.items[0].first, 8);
    ck_assert_int_eq(model->statistics.items[0].count, 8);
    ck_assert_double_eq(model->statistics.items[0].momentum, 0.75);
    coh_model_init(model, 1, values);
    for (int i = 0; i < 16; i++)
        ck_assert_float_eq(values[i], i < 4 || i >= 12 ? 1 : 0);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(one_value_of_a_channel_is_too_few_for_batch_norm)
{
    coh_model *image = model_of("[4, 1, 2]", "batch_norm" END);
    coh_model *flat = model_of(
        "[4, 1, 2]", "dense: {units: 3}, batch_norm: {name: narrow}" END);

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_check_share(image, 1, &err), COH_OK);
    ck_assert_int_eq(coh_model_check_share(flat, 2, &err), COH_OK);
    ck_assert_int_eq(coh_model_check_share(flat, 1, &err), COH_E_CONFIG);
    must_say(&err, "line 4: layer narrow: its input is 3 x 1 x 1");
    must_say(&err, "a step of 1 sample has one value");
    must_say(&err, "raise train.batch");
    coh_model_destroy(&image);
    coh_model_destroy(&flat);
}
END_TEST

/* 18,432 weights; as in the test above. A stride of 2 leaves a quarter of the
 * products to each output. */
START_TEST(weights_of_deconv2d_begin_by_the_mean_fan_in)
{
    coh_model *model = model_of(
        "[64, 8, 8]", "deconv2d: {filters: 18, kernel: 4, stride: 2}" END);
    float *values = malloc((size_t)model->parameters * sizeof *values);
    const double n = 64 * 18 * 16, s2 = 2.0 / (64 * 16 / 4.0);
    double squares = 0;

    coh_model_init(model, 1, values);
    for (int64_t i = 0; i < model->layers[0].weight_count; i++)
        squares += (double)values[i] * (double)values[i];
    ck_assert_double_eq_tol(squares / n, s2, 5 * s2 * sqrt(2 / n));
    free(values);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(groups_divide_the_weights_and_the_work)
{
    coh_model *whole =
        model_of("[8, 9, 9]", "conv2d: {filters: 4, kernel: 3}" END);
    coh_model *parts =
        model_of("[8, 9, 9]", "conv2d: {filters: 4, kernel: 3, groups: 4}" END);

    ck_assert_int_eq(whole->layers[0].weight_count, 4 * 8 * 9);
    ck_assert_int_eq(parts->layers[0].weight_count, 4 * 2 * 9);
    ck_assert_int_eq(whole->layers[0].flop, 4 * parts->layers[0].flop);
    coh_model_destroy(&whole);
    coh_model_destroy(&parts);
}
END_TEST

/* What does not fit: the layer's name, the shape it gets, the mending. */
static const struct {
    const char *input, *layers, *says[3];
} misfits[] = {
    { "[1, 4, 4]",
      "conv2d: {name: big, filters: 8, kernel: 5}" END,
      { "layer big", "1 x 4 x 4", "window of 5 x 5" } },
    { "[1, 5, 9]",
      "conv2d: {name: wide, filters: 8, kernel: 3, dilation: 3}" END,
      { "layer wide", "1 x 5 x 9", "padding: same" } },
    { "[1, 4, 4]",
      "maxpool: {kernel: 4}, maxpool: {name: last, kernel: 2}" END,
      { "layer last", "1 x 1 x 1", "fewer pools" } },
    { "[1, 8, 8]",
      "avgpool: {name: padded, kernel: 2, padding: 2}" END,
      { "layer padded", "1 x 8 x 8", "padding is as large as its kernel" } },
    { "[6, 8, 8]",
      "conv2d: {name: g, filters: 8, kernel: 1, groups: 4}" END,
      { "layer g", "6 x 8 x 8", "groups: 4 must divide" } },
    { "[8, 8, 8]",
      "conv2d: {name: g, filters: 6, kernel: 1, groups: 4}" END,
      { "layer g", "8 x 8 x 8", "its 6 filters" } },
    { "[8, 8, 8]",
      "deconv2d: {name: d, filters: 6, kernel: 1, groups: 4}" END,
      { "layer d", "8 x 8 x 8", "its 6 filters" } },
    { "[8, 2, 2]",
      "deconv2d: {name: d, filters: 6, kernel: 3, padding: 2}" END,
      { "layer d", "8 x 2 x 2", "its padding leaves nothing" } },
    { "[8, 2, 2]",
      "deconv2d: {filters: 6, kernel: 3, stride: 2, output_padding: 2}" END,
      { "layer deconv2d1", "output_padding", "not smaller than its stride" } },
    { "[8, 2, 2]",
      "deconv2d: {filters: 6, kernel: 3, stride: 2, padding: same, "
      "output_padding: 1}" END,
      { "layer deconv2d1", "padding: same", "remove it" } },
    { "[8, 5, 5]",
      "crop: {size: [3, 3], offset: [0, 3]}" END,
      { "layer crop1", "8 x 5 x 5", "reaches beyond" } },
    { "[8, 500, 500]",
      "upsample: {scale: 1000}, upsample: {scale: 1000}, upsample: {scale: "
      "1000}, upsample: {scale: 1000}" END,
      { "layer upsample", "8 x ", "too many values" } },
    { "[4, 8, 8]",
      "conv2d: {filters: 2, kernel: 1}, softmax_cross_entropy",
      { "layer softmax_cross_entropy", "2 x 8 x 8", "one value a class" } },
    { "[4, 8, 8]",
      "dense: {units: 1}, softmax_cross_entropy",
      { "layer softmax_cross_entropy", "1 x 1 x 1", "two classes" } },
    { "[1000000, 1000000, 1000000]",
      "dense: {name: huge, units: 100000000}, softmax_cross_entropy",
      { "layer huge", "1000000 x 1000000 x 1000000", "too many parameters" } },
    { "[1000000, 8, 8]",
      "conv2d: {name: c, filters: 1000000, kernel: 1000, padding: same}" END,
      { "layer c", "1000000 x 8 x 8", "too many parameters" } },
    { "[1, 8, 8]",
      "conv2d: {name: c, filters: 2, kernel: 100000, padding: same}" END,
      { "layer c", "window of 100000 x 100000", "use a smaller kernel" } },
    { "[1, 8, 8]",
      "deconv2d: {name: d, filters: 2, kernel: [1025, 1024]}" END,
      { "layer d", "window of 1025 x 1024", "use a smaller kernel" } },
};
enum { MISFITS = sizeof misfits / sizeof misfits[0] };

START_TEST(a_layer_that_does_not_fit_is_named_with_its_shape)
{
    coh_config *config = config_with(misfits[_i].input, misfits[_i].layers);
    coh_model *none = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    ck_assert_ptr_null(none);
    must_say(&err, "model.layers, line 4: ");
    for (int i = 0; i < 3; i++)
        must_say(&err, misfits[_i].says[i]);
    coh_config_destroy(&config);
}
END_TEST

/* 2^44 values are too many: their bytes would be no number in some layout. */
static const struct {
    const char *head, *input, *layers, *says[2];
} large_batches[] = {
    { "train: {batch: 1000000}\n",
      "[1, 8, 8]",
      "conv2d: {name: wide, filters: 1000000, kernel: 1}",
      { "line 5: layer wide: ", "in a batch of 1000000: use a smaller" } },
    { "eval: {batch: 999999}\n",
      "[1, 8, 8]",
      "conv2d: {name: wide, filters: 1000000, kernel: 1}",
      { "line 5: layer wide: ", "in a batch of 999999: use a smaller" } },
    { "group_size: 2\ntrain: {group_batch: 2000000}\n",
      "[1, 8, 8]",
      "conv2d: {name: wide, filters: 1000000, kernel: 1}",
      { "line 6: layer wide: ", "in a batch of 1000000: use a smaller" } },
    { "train: {batch: 1}\n",
      "[1000000, 1000000, 1000000]",
      "conv2d: {filters: 1, kernel: 1, stride: 100000}",
      { "model.input: 1000000 x 1000000 x 1000000 ", "a batch of 1: use" } },
};
enum { LARGE = sizeof large_batches / sizeof large_batches[0] };

START_TEST(a_batch_of_too_many_values_is_refused)
{
    char text[1024];
    coh_model *none = NULL;

    snprintf(text, sizeof text,
             "%s" DATA "model:\n  input: %s\n  layers: [%s" END "]\n",
             large_batches[_i].head, large_batches[_i].input,
             large_batches[_i].layers);
    coh_config *config = config_of(text);
    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    must_say(&err, large_batches[_i].says[0]);
    must_say(&err, large_batches[_i].says[1]);
    coh_config_destroy(&config);
}
END_TEST

/* Names that lead nowhere; shapes that do not go together. */
static const struct {
    const char *layers, *says[3];
} bad_inputs[] = {
    { "relu: {name: first}, tanh, add: {from: [tanh1, frist]}" END,
      { "layer add1", "no layer is called frist", "did you mean first?" } },
    { "relu, add: {from: [relu1, softmax_cross_entropy1]}" END,
      { "layer add1", "softmax_cross_entropy1 comes later (line 4)",
        "change their order" } },
    { "relu: {from: relu1}" END,
      { "layer relu1", "relu1 is the layer itself", "those before" } },
    { "dense: {units: 3}, softmax_cross_entropy, "
      "dense: {from: softmax_cross_entropy1, units: 2}, softmax_cross_entropy",
      { "layer dense2", "softmax_cross_entropy1 is a loss", "no output" } },
    { "relu, relu: {from: input}" END,
      { "layer relu1", "no layer takes its output", "name it in a from:" } },
    { "relu, tanh: {from: [relu1, input]}" END,
      { "layer tanh1", "takes one input", "put an add" } },
    { "relu, add" END, { "layer add1", "two inputs or more", "from: [a, b]" } },
    { "concat: {from: input}" END, { "layer concat1", "two inputs", "from" } },
    { "maxpool: {kernel: 2}, add: {name: sum, from: [maxpool1, input]}" END,
      { "layer sum: it takes maxpool1 of 4 x 6 x 6 and input of 4 x 12 x 12",
        "line 4", "shapes must be the same" } },
    { "conv2d: {filters: 3, kernel: 1}, add: {from: [input, conv2d1]}" END,
      { "input of 4 x 12 x 12 and conv2d1 of 3 x 12 x 12", "add1", "same" } },
    { "maxpool: {kernel: 2}, concat: {from: [maxpool1, input]}" END,
      { "layer concat1", "4 x 6 x 6", "height and width" } },
};
enum { BAD_INPUTS = sizeof bad_inputs / sizeof bad_inputs[0] };

START_TEST(an_input_that_cannot_be_is_refused_by_name)
{
    coh_config *config = config_with("[4, 12, 12]", bad_inputs[_i].layers);
    coh_model *none = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    ck_assert_ptr_null(none);
    for (int i = 0; i < 3; i++)
        must_say(&err, bad_inputs[_i].says[i]);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(layers_know_what_they_take)
{
    coh_model *model = model_of(
        "[3, 8, 8]", "conv2d: {name: a, filters: 5, kernel: 1}, relu, "
                     "conv2d: {name: b, from: a, filters: 5, kernel: 1}, "
                     "add: {from: [b, relu1, a]}, "
                     "concat: {from: [add1, input]}" END);
    const coh_layer *l = model->layers;
    int user = 0;

    ck_assert_int_eq(l[0].inputs[0], -1);
    ck_assert_int_eq(l[2].ninputs, 1);
    ck_assert_int_eq(l[2].inputs[0], 0);
    ck_assert_int_eq(l[3].ninputs, 3);
    ck_assert_int_eq(l[3].inputs[0], 2);
    ck_assert_int_eq(l[3].inputs[1], 1);
    ck_assert_int_eq(l[4].out.c, 5 + 3);
    ck_assert_int_eq(l[4].inputs[1], -1);
    ck_assert(l[4].needs_diff[0] && !l[4].needs_diff[1]);
    ck_assert_int_eq(coh_model_users(model, 0, &user), 3);
    ck_assert_int_eq(coh_model_users(model, 4, &user), 1);
    ck_assert_int_eq(user, 5);
    coh_model_destroy(&model);
}
END_TEST

/* Two convolutions see the images: neither needs an input gradient. */
START_TEST(needless_input_gradients_are_no_work)
{
    coh_model *model =
        model_of("[3, 8, 8]", "conv2d: {filters: 5, kernel: 1}, "
                              "conv2d: {from: input, filters: 5, kernel: 1}, "
                              "add: {from: [conv2d1, conv2d2]}, "
                              "conv2d: {filters: 2, kernel: 1}" END);
    const int64_t one = 2 * 3 * 5 * 64, third = 2 * 5 * 2 * 64,
                  dense = 2 * 2 * 2 * 64;

    ck_assert_int_eq(model->flop_forward, 2 * one + third + dense);
    ck_assert_int_eq(model->flop_step, 3 * model->flop_forward - 2 * one);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(a_model_without_parameters_is_refused)
{
    coh_config *config =
        config_with("[4, 8, 8]", "global_avgpool, softmax_cross_entropy");
    coh_model *none = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    must_say(&err, "no layer has parameters");
    coh_config_destroy(&config);
}
END_TEST

/* 147,456 weights of deviation s: their variance is within 5 s^2 sqrt(2/n) =
 * 0.0184 s^2 of s^2, the mean within 5 s / sqrt(n) = 0.013 s of 0. */
START_TEST(weights_begin_with_variance_2_over_fan_in_and_biases_with_0)
{
    coh_model *model =
        model_of("[128, 8, 8]", "conv2d: {filters: 128, kernel: 3}" END);
    float *values = malloc((size_t)model->parameters * sizeof *values);
    const coh_layer *layer = &model->layers[0];
    double sum = 0, squares = 0;

    coh_model_init(model, 1, values);
    for (int64_t i = 0; i < layer->weight_count; i++) {
        sum += (double)values[i];
        squares += (double)values[i] * (double)values[i];
    }
    const double n = (double)layer->weight_count, s2 = 2.0 / (128 * 9);
    ck_assert_double_eq_tol(squares / n, s2, 0.0184 * s2);
    ck_assert_double_eq_tol(sum / n, 0, 0.0131 * sqrt(s2));
    for (int64_t i = 0; i < layer->bias_count; i++)
        ck_assert_float_eq(values[layer->bias_first + i], 0);
    free(values);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(initial_weights_depend_on_the_seed_alone)
{
    coh_model *model = model_of("[1, 8, 8]", "dense: {units: 5}, "
                                             "softmax_cross_entropy");
    float a[325], b[325];

    coh_model_init(model, 1, a);
    coh_model_init(model, 1, b);
    ck_assert_mem_eq(a, b, sizeof a);
    coh_model_init(model, 2, b);
    ck_assert_mem_ne(a, b, sizeof a);
    coh_model_destroy(&model);
}
END_TEST

static int64_t fingerprint_of(const char *layers)
{
    coh_model *model = model_of("[4, 12, 12]", layers);
    const int64_t print = coh_model_fingerprint(model);

    coh_model_destroy(&model);
    return print;
}

START_TEST(models_whose_parameters_differ_in_meaning_have_other_fingerprints)
{
    static const char *const models[] = {
        "conv2d: {filters: 4, kernel: 3, padding: same}" END,
        "conv2d: {filters: 4, kernel: 3}" END,
        "conv2d: {filters: 4, kernel: [1, 9], padding: same}" END,
        "conv2d: {filters: 4, kernel: [9, 1], padding: same}" END,
        "conv2d: {filters: 4, kernel: 3, padding: same, dilation: 2}" END,
        "conv2d: {filters: 4, kernel: 3, padding: same}, relu" END,
        "conv2d: {filters: 4, kernel: 3, padding: same}, tanh" END,
        "conv2d: {filters: 4, kernel: 3, padding: same, bias: false}" END,
        "conv2d: {filters: 4, kernel: 3, padding: same, groups: 2}" END,
        "dense: {units: 4}, softmax_cross_entropy",
        "relu, tanh, add: {from: [tanh1, relu1]}" END,
        "relu, tanh, add: {from: [tanh1, input]}" END,
        "relu, tanh, concat: {from: [tanh1, relu1]}" END,
        "layer_norm" END,
        "batch_norm" END,
    };
    enum { N = sizeof models / sizeof models[0] };
    int64_t prints[N];

    for (int i = 0; i < N; i++) {
        prints[i] = fingerprint_of(models[i]);
        ck_assert_int_eq(prints[i], fingerprint_of(models[i]));
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(prints[i], prints[j]);
    }
}
END_TEST

static Suite *model_suite(void)
{
    Suite *suite = suite_create("model");

    TCase *core = tcase_create("core");
    tcase_add_test(core, the_hep_network_has_the_published_size_and_work);
    tcase_add_test(core, the_climate_encoder_has_the_published_sizes);
    tcase_add_test(core, the_climate_network_has_the_published_size_and_work);
    tcase_add_test(core, parameters_lie_in_layer_order_weights_then_bias);
    tcase_add_loop_test(core, a_layer_gives_its_shape, 0, SHAPES);
    tcase_add_test(core, layers_know_what_they_take);
    tcase_add_test(core, needless_input_gradients_are_no_work);
    tcase_add_test(core, a_deconvolution_works_as_the_convolution_it_undoes);
    tcase_add_test(core, groups_divide_the_weights_and_the_work);
    suite_add_tcase(suite, core);

    TCase *values = tcase_create("values");
    tcase_add_test(values,
                   weights_begin_with_variance_2_over_fan_in_and_biases_with_0);
    tcase_add_test(values, initial_weights_depend_on_the_seed_alone);
    tcase_add_test(
        values,
        models_whose_parameters_differ_in_meaning_have_other_fingerprints);
    tcase_add_test(values, weights_of_deconv2d_begin_by_the_mean_fan_in);
    tcase_add_test(values, the_factors_of_layer_norm_begin_as_1);
    tcase_add_test(values, batch_norm_has_statistics_behind_its_bias);
    suite_add_tcase(suite, values);

    TCase *edges = tcase_create("edges");
    tcase_add_loop_test(
        edges, a_layer_that_does_not_fit_is_named_with_its_shape, 0, MISFITS);
    tcase_add_loop_test(edges, a_batch_of_too_many_values_is_refused, 0, LARGE);
    tcase_add_test(edges, a_model_without_parameters_is_refused);
    tcase_add_test(edges, one_value_of_a_channel_is_too_few_for_batch_norm);
    tcase_add_loop_test(edges, an_input_that_cannot_be_is_refused_by_name, 0,
                        BAD_INPUTS);
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(model_suite)
