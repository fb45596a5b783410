/* Every kind of layer, forward and backward, against plain loops in double.
 *
 * A case is a small network round the layer in question: a convolution before
 * it (whose gradient is right only if the layer's input gradient is), a dense
 * layer after it. Bounds: log probabilities 1e-4 absolute; each layer's
 * gradient 2e-5 of its largest value. */
#include "support/check_run.h"
#include "support/nn_check.h"

#define AFTER DENSE(4), LOSS

static const nn_case convs[] = {
    { { 3, 7, 6 },
      1,
      { BEFORE(5), CONV(.filters = 7, .kernel = { 3, 3 }, .bias = true),
        AFTER } },
    { { 3, 7, 6 },
      5,
      { BEFORE(5), CONV(.filters = 7, .kernel = { 3, 2 }), AFTER } },
    { { 2, 9, 8 },
      5,
      { BEFORE(18),
        CONV(.filters = 33, .kernel = { 3, 3 }, .same = true, .bias = true),
        AFTER } },
    { { 1, 9, 7 },
      2,
      { BEFORE(16),
        CONV(.filters = 32, .kernel = { 5, 3 }, .stride = { 2, 1 },
             .padding = { 2, 0 }, .bias = true),
        AFTER } },
    /* even kernel, even stride: more padding after than before */
    { { 3, 8, 9 },
      3,
      { BEFORE(4),
        CONV(.filters = 20, .kernel = { 4, 2 }, .stride = { 2, 2 },
             .same = true, .bias = true),
        AFTER } },
    { { 3, 6, 6 },
      2,
      { BEFORE(17),
        CONV(.filters = 9, .kernel = { 2, 2 }, .same = true, .bias = true),
        AFTER } },
    { { 2, 11, 12 },
      2,
      { BEFORE(6),
        CONV(.filters = 5, .kernel = { 3, 3 }, .dilation = { 2, 3 },
             .bias = true),
        AFTER } },
    { { 2, 9, 9 },
      2,
      { BEFORE(16),
        CONV(.filters = 16, .kernel = { 3, 3 }, .dilation = { 2, 2 },
             .same = true, .bias = true),
        AFTER } },
    { { 2, 6, 5 },
      3,
      { BEFORE(12),
        CONV(.filters = 18, .kernel = { 3, 3 }, .groups = 3, .same = true,
             .bias = true),
        AFTER } },
    { { 2, 6, 5 },
      3,
      { BEFORE(32), CONV(.filters = 64, .kernel = { 3, 3 }, .groups = 2),
        AFTER } },
    /* depthwise, and with two filters a channel */
    { { 2, 6, 5 },
      3,
      { BEFORE(19),
        CONV(.filters = 19, .kernel = { 3, 3 }, .groups = 19, .same = true,
             .bias = true),
        AFTER } },
    { { 2, 7, 5 },
      2,
      { BEFORE(16),
        CONV(.filters = 32, .kernel = { 3, 3 }, .groups = 16,
             .stride = { 2, 2 }, .same = true, .bias = true),
        AFTER } },
    { { 3, 5, 5 },
      5,
      { BEFORE(16),
        CONV(.filters = 24, .kernel = { 1, 1 }, .stride = { 2, 2 },
             .bias = true),
        AFTER } },
    { { 3, 5, 5 },
      5,
      { BEFORE(64), CONV(.filters = 48, .kernel = { 1, 1 }), AFTER } },
    { { 3, 9, 9 },
      1,
      { CONV(.filters = 16, .kernel = { 7, 7 }, .stride = { 2, 2 },
             .same = true, .bias = true),
        AFTER } },
    { { 1, 1, 20 },
      2,
      { BEFORE(3),
        CONV(.filters = 5, .kernel = { 1, 5 }, .same = true, .bias = true),
        AFTER } },
};

static const nn_case pools[] = {
    { { 2, 8, 6 }, 1, { BEFORE(5), MAXPOOL(.kernel = { 2, 2 }), AFTER } },
    { { 2, 9, 7 },
      5,
      { BEFORE(20), MAXPOOL(.kernel = { 3, 2 }, .stride = { 2, 1 }), AFTER } },
    { { 2, 9, 8 },
      3,
      { BEFORE(16),
        MAXPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .same = true),
        AFTER } },
    { { 2, 7, 7 },
      2,
      { BEFORE(3),
        MAXPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .padding = { 1, 1 }),
        AFTER } },
    { { 2, 8, 6 }, 1, { BEFORE(5), AVGPOOL(.kernel = { 2, 2 }), AFTER } },
    { { 2, 9, 7 },
      5,
      { BEFORE(20), AVGPOOL(.kernel = { 3, 2 }, .stride = { 1, 2 }), AFTER } },
    { { 2, 9, 8 },
      3,
      { BEFORE(16),
        AVGPOOL(.kernel = { 3, 4 }, .stride = { 2, 2 }, .same = true),
        AFTER } },
    { { 2, 7, 7 },
      2,
      { BEFORE(3),
        AVGPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .padding = { 1, 1 }),
        AFTER } },
    { { 2, 5, 4 }, 1, { BEFORE(17), GLOBAL_AVGPOOL, AFTER } },
    { { 2, 7, 7 }, 5, { BEFORE(32), GLOBAL_AVGPOOL, AFTER } },
    { { 2, 7, 7 }, 5, { BEFORE(4), GLOBAL_AVGPOOL, LOSS } },
    /* before any weights, so without backward */
    { { 3, 8, 8 },
      2,
      { MAXPOOL(.kernel = { 2, 2 }), AVGPOOL(.kernel = { 2, 2 }), AFTER } },
};

static const nn_case activations[] = {
    /* done by the layer before: conv, depthwise conv, dense */
    { { 3, 6, 5 }, 5, { BEFORE(9), RELU, AFTER } },
    { { 3, 6, 5 }, 2, { BEFORE(32), LEAKY_RELU(0.2), AFTER } },
    { { 3, 6, 5 }, 2, { BEFORE(32), LEAKY_RELU(0), AFTER } },
    { { 3, 6, 5 },
      2,
      { BEFORE(8),
        CONV(.filters = 8, .kernel = { 3, 3 }, .groups = 8, .same = true,
             .bias = true),
        RELU, AFTER } },
    { { 3, 6, 5 }, 5, { DENSE(13), RELU, DENSE(6), LEAKY_RELU(0.1), AFTER } },
    /* on its own */
    { { 3, 6, 6 }, 1, { BEFORE(9), MAXPOOL(.kernel = { 2, 2 }), RELU, AFTER } },
    { { 3, 6, 6 },
      3,
      { BEFORE(16), AVGPOOL(.kernel = { 2, 2 }), LEAKY_RELU(0.3), AFTER } },
    { { 3, 6, 6 }, 3, { RELU, BEFORE(16), AFTER } },
    /* 0 becomes 0.5: must not show in the channels that fill up a block */
    { { 3, 6, 5 },
      5,
      { BEFORE(9), SIGMOID,
        CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true), AFTER } },
    { { 3, 6, 5 }, 1, { BEFORE(33), SIGMOID, AFTER } },
    { { 3, 6, 5 },
      5,
      { BEFORE(9), TANH, CONV(.filters = 5, .kernel = { 3, 3 }, .bias = true),
        AFTER } },
    { { 3, 6, 5 }, 2, { DENSE(12), TANH, DENSE(5), SIGMOID, AFTER } },
    { { 3, 6, 5 }, 2, { BEFORE(6), SIGMOID, RELU, TANH, RELU, AFTER } },
};

static const nn_case denses[] = {
    { { 3, 4, 5 }, 1, { DENSE(3), LOSS } },
    { { 17, 3, 2 }, 5, { BEFORE(18), DENSE(7), DENSE(2), LOSS } },
    { { 40, 1, 1 }, 6, { DENSE(64), RELU, DENSE(33), DENSE(10), LOSS } },
    { { 3, 6, 6 }, 4, { BEFORE(32), NN_LAYER(DENSE, .filters = 9), LOSS } },
    { { 3, 5, 5 }, 3, { BEFORE(20), FLATTEN, DENSE(9), LOSS } },
    { { 3, 5, 5 }, 3, { FLATTEN, DENSE(9), LOSS } },
    { { 3, 5, 5 }, 3, { BEFORE(20), FLATTEN, RELU, FLATTEN, TANH, AFTER } },
    /* what was flattened, or came from dense, into layers of four axes */
    { { 3, 4, 3 }, 3, { BEFORE(5), FLATTEN, BEFORE(8), RELU, AFTER } },
    { { 3, 4, 3 }, 2, { BEFORE(5), DENSE(18), BEFORE(7), LOSS } },
    { { 3, 4, 3 },
      2,
      { BEFORE(18), FLATTEN, MAXPOOL(.kernel = { 1, 1 }), AFTER } },
};

static const nn_case dropouts[] = {
    { { 3, 6, 5 }, 5, { BEFORE(9), DROPOUT(0.5), AFTER } },
    { { 3, 6, 5 },
      1,
      { BEFORE(32), RELU, DROPOUT(0.1),
        CONV(.filters = 20, .kernel = { 3, 3 }, .bias = true), AFTER } },
    { { 3, 6, 5 }, 3, { DENSE(31), RELU, DROPOUT(0.75), AFTER } },
    { { 3, 6, 5 }, 3, { DROPOUT(0.3), BEFORE(7), FLATTEN, DROPOUT(0), AFTER } },
};

/* All at once: what a user would write. */
static const nn_case networks[] = {
    { { 1, 28, 28 },
      4,
      { CONV(.filters = 16, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, MAXPOOL(.kernel = { 2, 2 }),
        CONV(.filters = 32, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, MAXPOOL(.kernel = { 2, 2 }), FLATTEN, DROPOUT(0.25), DENSE(10),
        LOSS } },
    { { 3, 16, 16 },
      3,
      { CONV(.filters = 24, .kernel = { 3, 3 }, .same = true, .bias = true),
        RELU, MAXPOOL(.kernel = { 2, 2 }),
        CONV(.filters = 24, .kernel = { 3, 3 }, .same = true), TANH,
        AVGPOOL(.kernel = { 3, 3 }, .stride = { 2, 2 }, .same = true),
        CONV(.filters = 40, .kernel = { 3, 3 }, .groups = 8, .bias = true),
        LEAKY_RELU(0.1), GLOBAL_AVGPOOL, DROPOUT(0.5), DENSE(2), LOSS } },
};

START_TEST(conv2d_agrees_with_plain_loops)
{
    check_case(convs, _i);
}
END_TEST

START_TEST(pools_agree_with_plain_loops)
{
    check_case(pools, _i);
}
END_TEST

START_TEST(activations_agree_with_plain_loops)
{
    check_case(activations, _i);
}
END_TEST

START_TEST(dense_and_flatten_agree_with_plain_loops)
{
    check_case(denses, _i);
}
END_TEST

START_TEST(dropout_agrees_with_its_formula)
{
    check_case(dropouts, _i);
}
END_TEST

START_TEST(a_whole_network_agrees_with_plain_loops)
{
    check_case(networks, _i);
}
END_TEST

static Suite *nn_layers_suite(void)
{
    Suite *suite = suite_create("nn_layers");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, conv2d_agrees_with_plain_loops, 0, COUNT(convs));
    tcase_add_loop_test(core, pools_agree_with_plain_loops, 0, COUNT(pools));
    tcase_add_loop_test(core, activations_agree_with_plain_loops, 0,
                        COUNT(activations));
    tcase_add_loop_test(core, dense_and_flatten_agree_with_plain_loops, 0,
                        COUNT(denses));
    tcase_add_loop_test(core, dropout_agrees_with_its_formula, 0,
                        COUNT(dropouts));
    tcase_add_loop_test(core, a_whole_network_agrees_with_plain_loops, 0,
                        COUNT(networks));
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_layers_suite)
