/* The losses, alone and several, against plain loops: targets at each position,
 * masks, ignored and missing labels, weights. Bounds as in nn_check.h.
 *
 * Every third sample of a batch has no labels (nn_nets.h). */
#include "support/check_run.h"
#include "support/nn_check.h"

#define CE(...) NN_LAYER(SOFTMAX_CROSS_ENTROPY, __VA_ARGS__)
#define BCE(...) NN_LAYER(SIGMOID_CROSS_ENTROPY, __VA_ARGS__)
#define MSE(...) NN_LAYER(MEAN_SQUARED_ERROR, __VA_ARGS__)
#define L1(...) NN_LAYER(SMOOTH_L1, __VA_ARGS__)
#define MAP(n) CONV(.filters = n, .kernel = { 3, 3 }, .bias = true)

static const nn_case singles[] = {
    /* labels at each position, of which some are -1 */
    { { 3, 7, 6 },
      5,
      { BEFORE(6), TANH, MAP(4),
        CE(.target = "y", .ignore = -1, .mean = true) },
      { TARGET("y", 1, 5, 4) } },
    { { 3, 7, 6 },
      5,
      { BEFORE(6), TANH, MAP(4), CE(.target = "y", .ignore = 2, .weight = 3) },
      { TARGET("y", 1, 5, 4) } },
    { { 3, 7, 6 },
      5,
      { BEFORE(6), TANH, MAP(17),
        CE(.target = "y", .mask = "m", .ignore = 0, .mean = true,
           .weight = 0.25) },
      { TARGET("m", 1, 5, 4), TARGET("y", 1, 5, 4) } },
    { { 3, 7, 6 },
      1,
      { BEFORE(6), TANH, MAP(2), CE(.target = "y", .mask = "m", .ignore = -1) },
      { TARGET("y", 1, 5, 4), TARGET("m", 1, 5, 4) } },
    /* the label itself, with a factor */
    { { 3, 4, 4 }, 3, { DENSE(5), CE(.ignore = -1, .weight = 0.5) } },
    { { 3, 4, 4 },
      4,
      { DENSE(5), CE(.ignore = 1, .mean = true, .unlabelled = true) } },
    /* many labels */
    { { 3, 4, 4 },
      5,
      { DENSE(9), BCE(.target = "y", .mean = true) },
      { TARGET("y", 9, 1, 1) } },
    { { 3, 7, 6 },
      5,
      { BEFORE(18), TANH, MAP(3), BCE(.target = "y", .mask = "m") },
      { TARGET("y", 3, 5, 4), TARGET("m", 1, 5, 4) } },
    /* numbers */
    { { 3, 7, 6 },
      5,
      { BEFORE(18), TANH, MAP(3), MSE(.target = "y", .mean = true) },
      { TARGET("y", 3, 5, 4) } },
    { { 3, 7, 6 },
      5,
      { BEFORE(18), TANH, MAP(3),
        MSE(.target = "y", .mask = "m", .mean = true, .weight = 2) },
      { TARGET("y", 3, 5, 4), TARGET("m", 3, 5, 4) } },
    { { 3, 7, 6 },
      5,
      { BEFORE(18), TANH, MAP(2),
        L1(.target = "y", .mask = "m", .mean = true, .weight = 5) },
      { TARGET("y", 2, 5, 4), TARGET("m", 1, 5, 4) } },
    { { 3, 7, 6 },
      2,
      { BEFORE(18), TANH, MAP(2), L1(.target = "y", .unlabelled = true) },
      { TARGET("y", 2, 5, 4) } },
    /* reconstruction; longer than one piece, too */
    { { 3, 7, 6 },
      5,
      { BEFORE(18), TANH, BEFORE(3),
        MSE(.target = "input", .mean = true, .unlabelled = true) } },
    { { 2, 80, 90 },
      2,
      { CONV(.filters = 2, .kernel = { 1, 1 }, .bias = true), TANH,
        CONV(.filters = 2, .kernel = { 1, 1 }),
        MSE(.target = "input", .weight = 1e-3) } },
    { { 2, 80, 120 },
      2,
      { CONV(.filters = 3, .kernel = { 1, 1 }, .bias = true),
        CE(.target = "y", .mask = "m", .ignore = -1, .mean = true) },
      { TARGET("y", 1, 80, 120), TARGET("m", 1, 80, 120) } },
};

/* The climate network's shape, small: five heads, one classifier besides. */
static const nn_case several = {
    { 4, 16, 16 },
    5,
    { CONV(.filters = 8, .kernel = { 7, 7 }, .stride = { 2, 2 },
           .padding = { 3, 3 }, .bias = true),
      TANH,
      CONV(.filters = 18, .kernel = { 4, 4 }, .stride = { 2, 2 },
           .padding = { 1, 1 }, .bias = true),
      TANH,
      CONV(.filters = 4, .kernel = { 3, 3 }, .padding = { 1, 1 }, .bias = true),
      CE(.target = "class", .ignore = -1, .mean = true),
      CONV(FROM("layer3"), .filters = 2, .kernel = { 3, 3 },
           .padding = { 1, 1 }, .bias = true),
      CE(.target = "object", .ignore = 0, .mean = true, .weight = 0.5),
      CE(FROM("layer6"), .target = "object", .ignore = 1, .mean = true),
      CONV(FROM("layer3"), .filters = 2, .kernel = { 3, 3 },
           .padding = { 1, 1 }, .bias = true),
      L1(.target = "place", .mask = "object", .weight = 5),
      DECONV(FROM("layer3"), .filters = 8, .kernel = { 4, 4 },
             .stride = { 2, 2 }, .padding = { 1, 1 }, .bias = true),
      DECONV(.filters = 4, .kernel = { 7, 7 }, .stride = { 2, 2 },
             .padding = { 3, 3 }, .output_padding = { 1, 1 }, .bias = true),
      MSE(.target = "input", .weight = 1.6, .mean = true, .unlabelled = true),
      NN_LAYER(GLOBAL_AVGPOOL, FROM("layer3")), DENSE(3), LOSS },
    { TARGET("place", 2, 4, 4), TARGET("object", 1, 4, 4),
      TARGET("class", 1, 4, 4) }
};

START_TEST(a_loss_agrees_with_its_formula)
{
    check_case(singles, _i);
}
END_TEST

START_TEST(several_losses_agree_with_their_sum)
{
    check_case(&several, _i);
}
END_TEST

START_TEST(the_reference_gradient_of_a_loss_is_a_slope)
{
    check_reference_slope(_i < COUNT(singles) ? &singles[_i] : &several);
}
END_TEST

START_TEST(the_terms_are_the_losses_and_sum_to_the_whole)
{
    nn_trial trial = nn_trial_new(&several, NN_THREADS);
    double sum = 0;

    nn_trial_train(&trial);
    ck_assert_int_eq(trial.model->nlosses, 6);
    for (int i = 0; i < COH_LOSSES_MAX; i++) {
        sum += trial.sums.terms[i];
        if (i < 6)
            ck_assert(trial.sums.terms[i] > 0);
        else
            ck_assert(trial.sums.terms[i] == 0);
    }
    ck_assert(sum == trial.sums.loss);
    ck_assert_int_eq(trial.model->classifier, 16);
    ck_assert_int_eq(trial.model->classes, 3);
    nn_trial_end(&trial);
}
END_TEST

/* Samples 1 and 4 have no labels: only the reconstruction knows them. */
START_TEST(unlabelled_rows_count_only_where_they_may)
{
    nn_trial trial = nn_trial_new(&several, NN_THREADS);
    coh_step_sums labelled;

    nn_trial_train(&trial);
    const coh_step_sums all = trial.sums;
    for (int64_t b = 0; b < 5; b++)
        if (b % 3 == 1)
            trial.batch->loss_weights[b] = 0;
    nn_trial_train(&trial);
    labelled = trial.sums;
    for (int i = 0; i < 6; i++) {
        if (i == 4)
            ck_assert(labelled.terms[i] < all.terms[i]);
        else
            ck_assert(labelled.terms[i] == all.terms[i]);
    }
    ck_assert(labelled.weight < all.weight);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_step_of_several_losses_gives_the_same_bits_again)
{
    nn_trial one = nn_trial_new(&several, NN_THREADS);
    nn_trial two = nn_trial_new(&several, NN_THREADS);
    const size_t bytes = (size_t)one.model->parameters * sizeof(float);

    nn_trial_train(&one);
    nn_trial_infer(&two);
    nn_trial_train(&two);
    ck_assert_mem_eq(one.gradient, two.gradient, bytes);
    ck_assert_mem_eq(&one.sums, &two.sums, sizeof one.sums);
    nn_trial_end(&one);
    nn_trial_end(&two);
}
END_TEST

/* Nothing counts in a row: its loss is 0, and so is its gradient. */
START_TEST(a_row_of_which_nothing_counts_adds_nothing)
{
    nn_trial trial = nn_trial_new(&singles[0], NN_THREADS);
    const int64_t T = trial.batch->target_count;

    for (int64_t i = 0; i < 5 * T; i++)
        trial.batch->targets[i] = -1;
    nn_trial_train(&trial);
    ck_assert(trial.sums.loss == 0 && trial.sums.weight > 0);
    for (int64_t i = 0; i < trial.model->parameters; i++)
        ck_assert(trial.gradient[i] == 0);
    nn_trial_end(&trial);
}
END_TEST

/* Without overflow or NaN, and to the last digits. */
START_TEST(losses_of_extreme_values_are_finite)
{
    static const nn_case net = { { 2, 1, 1 },
                                 2,
                                 { CONV(.filters = 2, .kernel = { 1, 1 }),
                                   BCE(.target = "y", .mean = true,
                                       .unlabelled = true) },
                                 { TARGET("y", 2, 1, 1) } };
    nn_trial trial = nn_trial_new(&net, 1);
    const float x[4] = { 500, -500, -500, 500 }, y[4] = { 1, 0, 1, 0 };
    const float unit[4] = { 1, 0, 0, 1 };

    memcpy(trial.batch->images, x, sizeof x);
    memcpy(trial.batch->targets, y, sizeof y);
    memcpy(trial.weights, unit, sizeof unit);
    trial.batch->loss_weights[0] = trial.batch->loss_weights[1] = 1;
    nn_trial_train(&trial);
    ck_assert_double_eq_tol(trial.sums.loss, 500, 1e-9);
    nn_trial_end(&trial);
}
END_TEST

static Suite *nn_losses_suite(void)
{
    Suite *suite = suite_create("nn_losses");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, a_loss_agrees_with_its_formula, 0,
                        COUNT(singles));
    tcase_add_loop_test(core, several_losses_agree_with_their_sum, 0, 1);
    tcase_add_loop_test(core, the_reference_gradient_of_a_loss_is_a_slope, 0,
                        COUNT(singles) + 1);
    tcase_add_test(core, the_terms_are_the_losses_and_sum_to_the_whole);
    tcase_add_test(core, unlabelled_rows_count_only_where_they_may);
    tcase_add_test(core, a_step_of_several_losses_gives_the_same_bits_again);
    suite_add_tcase(suite, core);

    TCase *edges = tcase_create("edges");
    tcase_add_test(edges, a_row_of_which_nothing_counts_adds_nothing);
    tcase_add_test(edges, losses_of_extreme_values_are_finite);
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(nn_losses_suite)
