/* test_config_layers.c - what layers.h promises of the list model.layers. */
#include <stdio.h>

#include "support/config_text.h"

static coh_err err;

/* A configuration with these lines as layers, the loss behind them. */
static void make_text(const char *lines, char *text, size_t size)
{
    snprintf(text, size,
             DATA "model:\n  input: [1, 28, 28]\n  layers:\n%s"
                  "    - softmax_cross_entropy\n",
             lines);
}

static coh_config *load(const char *lines)
{
    char text[2048];
    make_text(lines, text, sizeof text);
    return config_of(text);
}

START_TEST(a_layer_has_its_fields_and_the_defaults_of_the_others)
{
    coh_config *config = load("    - conv2d: {filters: 32, kernel: 3}\n"
                              "    - relu\n"
                              "    - dense:\n        units: 10\n"
                              "        bias: no\n");
    const coh_layer_spec *layers = config->model.layers;

    ck_assert_int_eq(config->model.nlayers, 4);
    ck_assert_int_eq(layers[0].kind, COH_LAYER_CONV2D);
    ck_assert_int_eq(layers[0].filters, 32);
    ck_assert_int_eq(layers[0].kernel[0], 3);
    ck_assert_int_eq(layers[0].kernel[1], 3);
    ck_assert_int_eq(layers[0].stride[0], 1);
    ck_assert_int_eq(layers[0].padding[0], 0);
    ck_assert(!layers[0].same);
    ck_assert_int_eq(layers[0].dilation[1], 1);
    ck_assert_int_eq(layers[0].groups, 1);
    ck_assert(layers[0].bias);
    ck_assert_int_eq(layers[0].line, 5);
    ck_assert_int_eq(layers[1].kind, COH_LAYER_RELU);
    ck_assert_int_eq(layers[1].stride[0], 1);
    ck_assert_int_eq(layers[2].filters, 10);
    ck_assert(!layers[2].bias);
    ck_assert_int_eq(layers[2].line, 7);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(pairs_and_padding_are_one_number_two_or_same)
{
    coh_config *config =
        load("    - conv2d: {filters: 1, kernel: [3, 5], stride: [2, 1], "
             "padding: [0, 2], dilation: 2}\n"
             "    - conv2d: {filters: 1, kernel: 3, padding: same}\n"
             "    - conv2d: {filters: 1, kernel: 3, padding: 4}\n");
    const coh_layer_spec *layers = config->model.layers;

    ck_assert_int_eq(layers[0].kernel[0], 3);
    ck_assert_int_eq(layers[0].kernel[1], 5);
    ck_assert_int_eq(layers[0].stride[0], 2);
    ck_assert_int_eq(layers[0].stride[1], 1);
    ck_assert_int_eq(layers[0].padding[1], 2);
    ck_assert_int_eq(layers[0].dilation[0], 2);
    ck_assert(layers[1].same);
    ck_assert_int_eq(layers[2].padding[0], 4);
    ck_assert_int_eq(layers[2].padding[1], 4);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(a_pool_steps_by_its_kernel_unless_told)
{
    coh_config *config = load("    - maxpool: {kernel: [2, 3]}\n"
                              "    - avgpool: {kernel: 3, stride: 2}\n");

    ck_assert_int_eq(config->model.layers[0].stride[0], 2);
    ck_assert_int_eq(config->model.layers[0].stride[1], 3);
    ck_assert_int_eq(config->model.layers[1].stride[0], 2);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(a_layer_without_a_name_gets_kind_and_number)
{
    coh_config *config = load("    - conv2d: {filters: 1, kernel: 1}\n"
                              "    - relu\n"
                              "    - conv2d: {filters: 1, kernel: 1}\n"
                              "    - relu: {name: last-relu.2}\n"
                              "    - relu: ~\n"
                              "    - dropout\n"
                              "    - leaky_relu: {slope: 0.2}\n");
    const char *const want[] = { "conv2d1",     "relu1",
                                 "conv2d2",     "last-relu.2",
                                 "relu3",       "dropout1",
                                 "leaky_relu1", "softmax_cross_entropy1" };

    ck_assert_int_eq(config->model.nlayers, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_str_eq(config->model.layers[i].name, want[i]);
    ck_assert(config->model.layers[5].rate == 0.5);
    ck_assert(config->model.layers[6].slope == 0.2);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(from_is_one_name_or_a_list)
{
    coh_config *config = load("    - relu\n    - tanh: {from: input}\n"
                              "    - add: {from: [relu1, tanh1, input]}\n");
    const coh_layer_spec *layers = config->model.layers;

    ck_assert_int_eq(layers[0].from.count, 0);
    ck_assert_int_eq(layers[1].from.count, 1);
    ck_assert_str_eq(layers[1].from.items[0], "input");
    ck_assert_int_eq(layers[2].from.count, 3);
    ck_assert_str_eq(layers[2].from.items[1], "tanh1");
    coh_config_destroy(&config);
}
END_TEST

START_TEST(an_anchor_repeats_a_layer)
{
    coh_config *config =
        load("    - &c\n      conv2d: {filters: 8, kernel: 3}\n"
             "    - *c\n");
    ck_assert_int_eq(config->model.layers[1].filters, 8);
    coh_config_destroy(&config);

    config = load("    - &c {conv2d: {filters: 8, kernel: 3}}\n"
                  "    - *c\n");
    ck_assert_str_eq(config->model.layers[1].name, "conv2d2");
    ck_assert_int_eq(config->model.layers[1].filters, 8);
    coh_config_destroy(&config);
}
END_TEST

#define LAYER1 "model.layers: layer 1, "

static const struct {
    const char *lines, *message;
} bad_layers[] = {
    { "    - rellu\n", "job.yaml:5:7: model.layers: layer 1: 'rellu' is no "
                       "layer; did you mean relu?" },
    { "    - lstm: {units: 3}\n", "'lstm' is no layer; it is one of conv2d, "
                                  "deconv2d, maxpool" },
    { "    - conv2d: {filter: 3, filters: 3, kernel: 3}\n",
      "job.yaml:5:16: " LAYER1 "conv2d.filter: unknown field; did you mean "
      "filters?" },
    { "    - relu: {kernel: 3}\n",
      LAYER1 "relu.kernel: unknown field; relu has name" },
    { "    - dense: {units: 3, zebra: 3}\n",
      LAYER1 "dense.zebra: unknown field; dense has name, units, bias" },
    { "    - conv2d: {kernel: 3}\n",
      "job.yaml:5:7: " LAYER1 "conv2d.filters: missing; 1 to 1000000" },
    { "    - maxpool\n", LAYER1 "maxpool.kernel: missing; 1 to 100000" },
    { "    - dense: {units: ~}\n", LAYER1 "dense.units: missing" },
    { "    - dense: {units: 0}\n",
      "job.yaml:5:22: " LAYER1
      "dense.units: '0' is too small; 1 to 100000000" },
    { "    - dense: {units: 1.5}\n", "dense.units: '1.5' is not whole" },
    { "    - dense: {units: 5, bias: 2}\n",
      "dense.bias: '2' is neither; true" },
    { "    - dropout: {rate: 1}\n",
      "dropout.rate: '1' is too large; 0 to 0.999999" },
    { "    - maxpool: {kernel: [1, 2, 3]}\n",
      "maxpool.kernel: wants one integer, or [height, width]; 1 to 100000" },
    { "    - maxpool: {kernel: {a: 1}}\n",
      "maxpool.kernel: wants one integer" },
    { "    - maxpool: {kernel: [2, x]}\n",
      "job.yaml:5:29: " LAYER1 "maxpool.kernel: 'x' is not an integer" },
    { "    - maxpool: {kernel: 2, padding: sam}\n",
      "maxpool.padding: 'sam' is not an integer; 0 to 100000, or same" },
    { "    - conv2d: {filters: 1, kernel: 1, stride: 0}\n",
      "conv2d.stride: '0' is too small; 1 to 100000" },
    { "    - relu: {name: a/b}\n", "relu.name: 'a/b' is no name" },
    { "    - relu: {name: .a}\n", "relu.name: '.a' is no name" },
    { "    - relu: {name: ''}\n", "relu.name: '' is no name" },
    { "    - relu: {name: "
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}"
      "\n",
      "is no name: 1 to 63 letters" },
    { "    - relu: {name: a}\n    - tanh: {name: a}\n",
      "job.yaml:6:7: model.layers: layers 1 (line 5) and 2 (line 6) are both "
      "called a; give one another name" },
    { "    - relu: {name: relu2}\n    - relu\n", "are both called relu2" },
    { "    - add: {from: [a, b c]}\n", LAYER1 "add.from: 'b c' is no name" },
    { "    - add: {from: []}\n",
      "job.yaml:5:19: " LAYER1
      "add.from: wants the name of a layer, or [a, b]" },
    { "    - add: {from: [a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, "
      "a]}\n",
      "add.from: 17 names are given, at most 16" },
    { "    - relu: {name: input}\n", "relu.name: 'input' names the images" },
    { "    - conv2d:\n      filters: 3\n      kernel: 3\n",
      "job.yaml:6:7: model.layers: layer 1: 'filters' stands beside 'conv2d'; "
      "fields stand below their layer, indented deeper" },
    { "    - dense: 10\n",
      "job.yaml:5:14: " LAYER1 "dense: wants its fields as a mapping" },
    { "    - [relu]\n", "model.layers: layer 1: wants the kind of a layer" },
    { "    -\n", "model.layers: layer 1: wants the kind of a layer" },
    { "    - {}\n", "model.layers: layer 1: wants the kind of a layer" },
};

START_TEST(a_bad_layer_is_refused_by_number_kind_and_field)
{
    char text[2048];

    make_text(bad_layers[_i].lines, text, sizeof text);
    refuse_sets(text, NULL, 0, &err);
    must_say(&err, bad_layers[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

START_TEST(a_mapping_of_layers_is_refused)
{
    refuse_sets(DATA "model: {input: [1, 1, 1], layers: {relu: {}}}\n", NULL, 0,
                &err);
    must_say(&err, "job.yaml:2:35: model.layers: wants a list of layers, one a "
                   "line behind a dash, e.g. - relu");
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

static Suite *config_layers_suite(void)
{
    Suite *suite = suite_create("config_layers");

    TCase *core = tcase_create("core");
    tcase_add_test(core, a_layer_has_its_fields_and_the_defaults_of_the_others);
    tcase_add_test(core, pairs_and_padding_are_one_number_two_or_same);
    tcase_add_test(core, a_pool_steps_by_its_kernel_unless_told);
    tcase_add_test(core, a_layer_without_a_name_gets_kind_and_number);
    tcase_add_test(core, from_is_one_name_or_a_list);
    tcase_add_test(core, an_anchor_repeats_a_layer);
    suite_add_tcase(suite, core);

    TCase *bad = tcase_create("bad");
    tcase_add_loop_test(bad, a_bad_layer_is_refused_by_number_kind_and_field, 0,
                        sizeof bad_layers / sizeof bad_layers[0]);
    tcase_add_test(bad, a_mapping_of_layers_is_refused);
    suite_add_tcase(suite, bad);
    return suite;
}

CHECK_MAIN(config_layers_suite)
