/* Networks that are no chain: values taken by several layers, add, concat.
 *
 * Bounds as in test_nn_layers.c. */
#include "support/check_run.h"
#include "support/nn_check.h"

#define TAIL DENSE(4), LOSS

static const nn_case joins[] = {
    /* a residual block; the sum in a blocked layout with filled-up channels */
    { { 3, 7, 6 },
      3,
      { BEFORE(18), RELU,
        CONV(.filters = 18, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, CONV(.filters = 18, .kernel = { 3, 3 }, .same = true),
        ADD(BOTH("layer4", "layer1")), RELU, TAIL } },
    /* the same, the activation changes the gradient in place */
    { { 3, 7, 6 },
      2,
      { BEFORE(5), TANH, ADD(BOTH("layer1", "layer0")), SIGMOID,
        ADD(BOTH("layer1", "layer3")), TANH, TAIL } },
    /* one layer three times, twice in one add */
    { { 3, 5, 5 },
      2,
      { BEFORE(16), TANH, ADD({ 3, { "layer1", "layer1", "layer0" } }), SIGMOID,
        TAIL } },
    /* with the images, which need no gradient */
    { { 4, 5, 5 }, 2, { BEFORE(4), ADD(BOTH("input", "layer0")), TAIL } },
    { { 4, 5, 5 },
      2,
      { RELU, BEFORE(4), ADD({ 3, { "layer0", "layer1", "input" } }), TAIL } },
    /* different layouts meet: pool's, conv's, dense's */
    { { 2, 8, 8 },
      2,
      { BEFORE(20), MAXPOOL(.kernel = { 2, 2 }),
        CONV(FROM("layer0"), .filters = 20, .kernel = { 2, 2 },
             .stride = { 2, 2 }),
        ADD(BOTH("layer1", "layer2")), TAIL } },
    { { 2, 4, 4 },
      3,
      { BEFORE(7), GLOBAL_AVGPOOL,
        NN_LAYER(DENSE, FROM("layer0"), .filters = 7),
        ADD(BOTH("layer1", "layer2")), LOSS } },
    { { 2, 4, 4 },
      3,
      { BEFORE(7), GLOBAL_AVGPOOL,
        NN_LAYER(DENSE, FROM("layer0"), .filters = 7),
        ADD(BOTH("layer2", "layer1")), TANH, TAIL } },
    /* channels side by side: an inception block */
    { { 3, 6, 5 },
      3,
      { BEFORE(17), RELU,
        CONV(.filters = 4, .kernel = { 3, 3 }, .same = true, .bias = true),
        CONV(FROM("layer1"), .filters = 16, .kernel = { 1, 1 }, .bias = true),
        CONCAT({ 4, { "layer1", "layer2", "layer3", "input" } }), RELU,
        TAIL } },
    { { 3, 6, 5 },
      1,
      { BEFORE(16), CONCAT(BOTH("layer0", "layer0")), TANH,
        CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true), TAIL } },
    { { 3, 4, 4 },
      3,
      { DENSE(6), NN_LAYER(DENSE, FROM("input"), .filters = 9, .bias = true),
        NN_LAYER(GLOBAL_AVGPOOL, FROM("input")),
        CONCAT({ 3, { "layer0", "layer1", "layer2" } }), TANH, TAIL } },
    /* a relu that cannot be done by its conv: another layer takes it too */
    { { 3, 6, 5 },
      2,
      { BEFORE(6), RELU, TANH,
        CONV(FROM("layer0"), .filters = 6, .kernel = { 1, 1 }),
        ADD({ 3, { "layer1", "layer2", "layer3" } }), TAIL } },
    /* a relu that can, though it is not the next layer */
    { { 3, 6, 5 },
      2,
      { BEFORE(6), CONV(FROM("input"), .filters = 6, .kernel = { 1, 1 }),
        NN_LAYER(LEAKY_RELU, FROM("layer0"), .slope = 0.3), TANH,
        ADD({ 3, { "layer1", "layer2", "layer3" } }), TAIL } },
    /* far reaching: a small U */
    { { 2, 8, 8 },
      2,
      { CONV(.filters = 8, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, MAXPOOL(.kernel = { 2, 2 }),
        CONV(.filters = 12, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, MAXPOOL(.kernel = { 2, 2 }),
        CONV(FROM("layer4"), .filters = 3, .kernel = { 2, 2 },
             .stride = { 2, 2 }),
        CONCAT(BOTH("layer5", "layer6")), DROPOUT(0.2), FLATTEN, DENSE(7),
        NN_LAYER(DENSE, FROM("layer1"), .filters = 7),
        ADD(BOTH("layer10", "layer11")), SIGMOID, TAIL } },
};

START_TEST(joined_layers_agree_with_plain_loops)
{
    check_case(joins, _i);
}
END_TEST

START_TEST(a_step_of_a_graph_gives_the_same_bits_again)
{
    const nn_case *net = &joins[_i];
    nn_trial one = nn_trial_new(net, NN_THREADS);
    nn_trial two = nn_trial_new(net, NN_THREADS);
    const size_t bytes = (size_t)one.model->parameters * sizeof(float);

    nn_trial_train(&one);
    nn_trial_infer(&two); /* works in the same memory */
    nn_trial_train(&two);
    ck_assert_mem_eq(one.gradient, two.gradient, bytes);
    nn_trial_train(&two);
    ck_assert_mem_eq(one.gradient, two.gradient, bytes);
    ck_assert(one.sums.loss == two.sums.loss);
    nn_trial_end(&one);
    nn_trial_end(&two);
}
END_TEST

/* The slow twin against its own loss: no kinks in these. */
START_TEST(the_reference_gradient_of_a_graph_is_a_slope)
{
    static const int smooth[] = { 1, 2, 3, 8 };
    check_reference_slope(&joins[smooth[_i]]);
}
END_TEST

static Suite *nn_graph_suite(void)
{
    Suite *suite = suite_create("nn_graph");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, joined_layers_agree_with_plain_loops, 0,
                        COUNT(joins));
    tcase_add_loop_test(core, a_step_of_a_graph_gives_the_same_bits_again, 0,
                        COUNT(joins));
    tcase_add_loop_test(core, the_reference_gradient_of_a_graph_is_a_slope, 0,
                        4);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_graph_suite)
