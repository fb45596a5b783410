/* deconv2d, upsample, crop, softmax, layer_norm against plain loops; bounds as
 * in nn_check.h. */
#include "support/check_run.h"
#include "support/nn_check.h"

#define TAIL DENSE(4), LOSS

static const nn_case deconvs[] = {
    { { 3, 4, 3 },
      1,
      { BEFORE(5), DECONV(.filters = 7, .kernel = { 3, 3 }, .bias = true),
        TAIL } },
    { { 3, 4, 3 },
      5,
      { BEFORE(5), DECONV(.filters = 7, .kernel = { 3, 2 }), TAIL } },
    /* as the climate network has them: twice the size, both ways */
    { { 3, 4, 5 },
      2,
      { BEFORE(18),
        DECONV(.filters = 33, .kernel = { 7, 7 }, .stride = { 2, 2 },
               .padding = { 3, 3 }, .output_padding = { 1, 1 }, .bias = true),
        TAIL } },
    { { 3, 4, 5 },
      1,
      { BEFORE(32),
        DECONV(.filters = 16, .kernel = { 4, 4 }, .stride = { 2, 2 },
               .padding = { 1, 1 }, .bias = true),
        TAIL } },
    { { 3, 4, 5 },
      2,
      { BEFORE(16),
        DECONV(.filters = 8, .kernel = { 5, 3 }, .stride = { 3, 2 },
               .padding = { 1, 0 }, .output_padding = { 2, 1 }),
        TAIL } },
    /* padding: same; the window smaller than the stride too */
    { { 3, 4, 5 },
      2,
      { BEFORE(6),
        DECONV(.filters = 4, .kernel = { 5, 4 }, .stride = { 2, 2 },
               .same = true, .bias = true),
        TAIL } },
    { { 3, 4, 5 },
      2,
      { BEFORE(6),
        DECONV(.filters = 4, .kernel = { 1, 2 }, .stride = { 3, 3 },
               .same = true, .bias = true),
        TAIL } },
    { { 3, 4, 5 },
      3,
      { BEFORE(6),
        DECONV(.filters = 5, .kernel = { 3, 3 }, .dilation = { 2, 1 },
               .bias = true),
        TAIL } },
    { { 3, 4, 4 },
      3,
      { BEFORE(12),
        DECONV(.filters = 18, .kernel = { 3, 3 }, .stride = { 2, 2 },
               .groups = 3, .bias = true),
        TAIL } },
    { { 3, 4, 4 },
      2,
      { BEFORE(32),
        DECONV(.filters = 64, .kernel = { 2, 2 }, .stride = { 2, 2 },
               .groups = 2),
        TAIL } },
    { { 3, 4, 4 },
      2,
      { BEFORE(19),
        DECONV(.filters = 19, .kernel = { 3, 3 }, .groups = 19, .bias = true),
        TAIL } },
    /* on the images: no input gradient; then after dense */
    { { 3, 4, 4 },
      2,
      { DECONV(.filters = 4, .kernel = { 3, 3 }, .stride = { 2, 2 },
               .bias = true),
        RELU, TAIL } },
    { { 3, 4, 4 },
      2,
      { DENSE(6), DECONV(.filters = 8, .kernel = { 4, 4 }, .bias = true), TANH,
        DECONV(.filters = 3, .kernel = { 4, 4 }, .stride = { 4, 4 }), TAIL } },
};

static const nn_case moves[] = {
    { { 3, 4, 3 }, 2, { BEFORE(5), UPSAMPLE(2, 2), TAIL } },
    { { 3, 4, 3 }, 3, { BEFORE(16), TANH, UPSAMPLE(3, 1), TANH, TAIL } },
    { { 3, 4, 3 },
      1,
      { BEFORE(20), UPSAMPLE(1, 4),
        CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true), TAIL } },
    { { 3, 4, 3 }, 2, { DENSE(7), UPSAMPLE(5, 2), TAIL } },
    { { 3, 4, 3 }, 2, { UPSAMPLE(2, 3), BEFORE(4), TAIL } },
    { { 3, 7, 6 },
      2,
      { BEFORE(5), CROP(.size = { 4, 3 }, .offset = { 2, 1 }), TAIL } },
    { { 3, 7, 6 },
      3,
      { BEFORE(18), CROP(.size = { 7, 1 }, .offset = { 0, 5 }), TANH, TAIL } },
    { { 3, 7, 6 }, 3, { CROP(.size = { 2, 2 }), BEFORE(18), TAIL } },
    { { 3, 7, 6 },
      1,
      { BEFORE(16), CROP(.size = { 7, 6 }), CONCAT(BOTH("layer1", "layer0")),
        TAIL } },
};

static const nn_case softmaxes[] = {
    { { 3, 4, 3 }, 2, { BEFORE(5), SOFTMAX, TAIL } },
    { { 3, 4, 3 },
      3,
      { BEFORE(16), SOFTMAX,
        CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true), TAIL } },
    { { 3, 4, 3 },
      2,
      { BEFORE(33), SOFTMAX, MAXPOOL(.kernel = { 2, 2 }), TAIL } },
    { { 3, 4, 3 }, 3, { DENSE(6), SOFTMAX, TAIL } },
    { { 3, 4, 3 }, 3, { SOFTMAX, DENSE(6), LOSS } },
};

static const nn_case norms[] = {
    { { 3, 4, 3 }, 2, { BEFORE(5), LAYER_NORM, TAIL } },
    { { 3, 4, 3 }, 5, { BEFORE(17), RELU, LAYER_NORM, TANH, TAIL } },
    { { 3, 4, 3 }, 1, { DENSE(9), LAYER_NORM, RELU, TAIL } },
    { { 3, 4, 3 },
      3,
      { BEFORE(16), LAYER_NORM,
        CONV(.filters = 16, .kernel = { 3, 3 }, .bias = true), LAYER_NORM,
        TAIL } },
    { { 3, 4, 3 }, 3, { LAYER_NORM, TAIL } },
    { { 3, 4, 3 },
      2,
      { BEFORE(6), LAYER_NORM, ADD(BOTH("layer1", "layer0")), TAIL } },
};

START_TEST(deconv2d_agrees_with_plain_loops)
{
    check_case(deconvs, _i);
}
END_TEST

START_TEST(upsample_and_crop_agree_with_plain_loops)
{
    check_case(moves, _i);
}
END_TEST

START_TEST(softmax_agrees_with_its_formula)
{
    check_case(softmaxes, _i);
}
END_TEST

START_TEST(layer_norm_agrees_with_its_formula)
{
    check_case(norms, _i);
}
END_TEST

/* The slow twin against its own loss: one network of each kind. */
START_TEST(the_reference_gradient_is_a_slope)
{
    static const nn_case *const smooth[] = {
        &deconvs[2], &deconvs[4], &deconvs[5],   &deconvs[6], &deconvs[8],
        &moves[1],   &moves[6],   &softmaxes[1], &norms[0],   &norms[3],
    };
    check_reference_slope(smooth[_i]);
}
END_TEST

static Suite *nn_more_layers_suite(void)
{
    Suite *suite = suite_create("nn_more_layers");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, deconv2d_agrees_with_plain_loops, 0,
                        COUNT(deconvs));
    tcase_add_loop_test(core, upsample_and_crop_agree_with_plain_loops, 0,
                        COUNT(moves));
    tcase_add_loop_test(core, softmax_agrees_with_its_formula, 0,
                        COUNT(softmaxes));
    tcase_add_loop_test(core, layer_norm_agrees_with_its_formula, 0,
                        COUNT(norms));
    tcase_add_loop_test(core, the_reference_gradient_is_a_slope, 0, 10);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_more_layers_suite)
