/* test_model_losses.c - what losses compare with, and whether it fits
 * (src/common/model.h). No MPI. */
#include "common/model.h"

#include "support/config_text.h"

static coh_err err;

static coh_config *config_with(const char *targets, const char *layers)
{
    char text[2048];

    snprintf(text, sizeof text,
             DATA "model:\n  input: [3, 8, 8]\n  targets: [%s]\n"
                  "  layers: [%s]\n",
             targets, layers);
    return config_of(text);
}

static coh_model *model_of(const char *targets, const char *layers)
{
    coh_config *config = config_with(targets, layers);
    coh_model *model = NULL;

    err = COH_ERR_INIT;
    const coh_status status = coh_model_new(config, &model, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    coh_config_destroy(&config);
    return model;
}

#define HEAD "conv2d: {filters: 4, kernel: 3, padding: same}, "
#define REST                                                 \
    ", global_avgpool: {from: conv2d1}, dense: {units: 5}, " \
    "softmax_cross_entropy: {name: last}"

START_TEST(targets_lie_one_after_another)
{
    coh_model *model = model_of(
        "{name: a, shape: [4, 8, 8]}, {name: b, shape: [1, 8, 8]}, {name: c, "
        "shape: [1, 8, 8]}",
        HEAD "smooth_l1: {target: a, mask: b}, "
             "softmax_cross_entropy: {from: conv2d1, target: c, weight: 2}, "
             "sigmoid_cross_entropy: {from: conv2d1, target: a, mask: a}" REST);
    const coh_layer *l = model->layers;

    ck_assert_int_eq(model->ntargets, 3);
    ck_assert_int_eq(model->target_count, 6 * 64);
    ck_assert_int_eq(model->targets[1].first, 4 * 64);
    ck_assert_int_eq(model->targets[2].first, 5 * 64);
    ck_assert_int_eq(model->targets[2].classes, 4);
    ck_assert(model->targets[0].is_map && model->targets[0].is_mask);
    ck_assert(model->targets[1].is_mask && !model->targets[1].is_map);
    ck_assert_int_eq(model->nlosses, 4);
    ck_assert_int_eq(model->losses[1], 2);
    ck_assert_int_eq(l[2].term, 1);
    ck_assert_int_eq(l[1].target, 0);
    ck_assert_int_eq(l[1].mask, 1);
    ck_assert_int_eq(l[1].mask_first, 4 * 64);
    ck_assert_int_eq(l[3].mask_channels, 4);
    ck_assert_int_eq(l[6].target, COH_TARGET_LABEL);
    ck_assert_int_eq(l[6].mask, COH_TARGET_NONE);
    ck_assert_int_eq(model->classifier, 6);
    ck_assert(l[6].is_classifier && !l[2].is_classifier);
    ck_assert_int_eq(model->classes, 5);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(a_reconstruction_has_no_classes)
{
    coh_model *model = model_of(
        "", HEAD "conv2d: {filters: 3, kernel: 1}, "
                 "mean_squared_error: {target: input, unlabelled: true}");

    ck_assert_int_eq(model->classes, 0);
    ck_assert_int_eq(model->classifier, -1);
    ck_assert_int_eq(model->target_count, 0);
    ck_assert_int_eq(model->layers[2].target, COH_TARGET_INPUT);
    coh_model_destroy(&model);
}
END_TEST

#define BOX "{name: box, shape: [4, 8, 8]}"
#define ONE "{name: one, shape: [1, 8, 8]}"

static const struct {
    const char *targets, *layers, *says[3];
} bad[] = {
    { BOX,
      HEAD "smooth_l1: {target: bax}",
      { "line 5: layer smooth_l11", "target: model.targets has no bax",
        "did you mean box?" } },
    { BOX,
      HEAD "smooth_l1: {target: box, mask: input}",
      { "layer smooth_l11", "mask: model.targets has no input", "" } },
    { ONE,
      HEAD "mean_squared_error: {target: one}",
      { "its input is 4 x 8 x 8", "target one is 1 x 8 x 8",
        "must be 4 x 8 x 8" } },
    { BOX,
      HEAD "softmax_cross_entropy: {target: box}",
      { "its input is 4 x 8 x 8", "target box is 4 x 8 x 8",
        "must be 1 x 8 x 8" } },
    { "{name: box, shape: [4, 8, 8]}, {name: m, shape: [2, 8, 8]}",
      HEAD "smooth_l1: {target: box, mask: m}",
      { "its mask m is 2 x 8 x 8", "must be 1 x 8 x 8", "" } },
    { "",
      HEAD "mean_squared_error: {target: input}",
      { "its input is 4 x 8 x 8", "target input is 3 x 8 x 8", "" } },
    { "",
      HEAD "mean_squared_error",
      { "layer mean_squared_error1", "a label is no number",
        "give it a target" } },
    { "",
      HEAD "softmax_cross_entropy: {target: input}",
      { "images are no labels", "", "" } },
    { "", HEAD "softmax_cross_entropy", { "one value a class", "", "" } },
    { "",
      "conv2d: {filters: 1, kernel: 8}, softmax_cross_entropy",
      { "two classes", "", "" } },
    { BOX,
      HEAD "softmax_cross_entropy: {target: one}",
      { "has no one", "", "" } },
    { BOX ", " ONE,
      HEAD "smooth_l1: {target: box}",
      { "model.targets, line 4", "no loss has one as its target or mask",
        "remove it" } },
    { "",
      "dense: {units: 3}, softmax_cross_entropy, dense: {from: dense1, units: "
      "4}, softmax_cross_entropy",
      { "layer softmax_cross_entropy2", "another number of classes", "" } },
};

START_TEST(a_loss_that_does_not_fit_is_refused)
{
    coh_config *config = config_with(bad[_i].targets, bad[_i].layers);
    coh_model *none = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    ck_assert_ptr_null(none);
    for (int i = 0; i < 3; i++)
        must_say(&err, bad[_i].says[i]);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(more_losses_than_there_may_be_are_refused)
{
    char layers[2048] = "dense: {units: 3}";
    coh_model *none = NULL;

    for (int i = 0; i <= COH_LOSSES_MAX; i++)
        strcat(layers, ", softmax_cross_entropy: {from: dense1}");
    coh_config *config = config_with("", layers);
    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &none, &err), COH_E_CONFIG);
    must_say(&err, "one more loss than the 16");
    coh_config_destroy(&config);
}
END_TEST

/* --- model.targets ------------------------------------------------------ */

static const struct {
    const char *yaml, *message;
} bad_targets[] = {
    { "{name: a}", "job.yaml:4:13: model.targets: target 1: shape missing" },
    { "{shape: [1, 1, 1]}", "target 1: name missing; e.g. {name: box" },
    { "{name: a, shape: [1, 1]}", "target 1, shape: 2 given; 3 integers" },
    { "{name: a, shape: [1, 0, 1]}", "target 1, shape: '0' is too small" },
    { "{name: a b, shape: [1, 1, 1]}", "target 1, name: 'a b' is no name" },
    { "{name: a, shap: [1, 1, 1]}", "target 1, shap: unknown field" },
    { "a", "target 1: wants a name and a shape" },
    { "{name: input, shape: [1, 1, 1]}", "'input' is there without being" },
    { "{name: label, shape: [1, 1, 1]}", "'label' is there without being" },
    { "{name: a, shape: [1, 1, 1]}, {name: a, shape: [1, 1, 1]}",
      "target 2: target 1 is called a, too" },
};

START_TEST(a_bad_target_is_refused)
{
    char text[512];

    snprintf(text, sizeof text,
             DATA "model:\n  input: [3, 8, 8]\n  targets: [%s]\n"
                  "  layers: [dense: {units: 2}, softmax_cross_entropy]\n",
             bad_targets[_i].yaml);
    refuse_sets(text, NULL, 0, &err);
    must_say(&err, bad_targets[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof table[0])

static Suite *model_losses_suite(void)
{
    Suite *suite = suite_create("model_losses");

    TCase *core = tcase_create("core");
    tcase_add_test(core, targets_lie_one_after_another);
    tcase_add_test(core, a_reconstruction_has_no_classes);
    suite_add_tcase(suite, core);

    TCase *edges = tcase_create("edges");
    tcase_add_loop_test(edges, a_loss_that_does_not_fit_is_refused, 0,
                        COUNT(bad));
    tcase_add_test(edges, more_losses_than_there_may_be_are_refused);
    tcase_add_loop_test(edges, a_bad_target_is_refused, 0, COUNT(bad_targets));
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(model_losses_suite)
