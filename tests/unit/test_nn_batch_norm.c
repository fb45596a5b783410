/* batch_norm against plain loops, and what it tells for the running statistics;
 * bounds as in nn_check.h. */
#include "common/optim/shard.h"
#include "support/check_run.h"
#include "support/nn_check.h"

#define TAIL DENSE(4), LOSS

/* A layer whose output is normalised has no bias: its gradient would be 0, and
 * what is calculated the rounding. */
#define NOT_BIASED(n) CONV(.filters = n, .kernel = { 1, 1 })
#define FLAT(n) NN_LAYER(DENSE, .filters = n)

static const nn_case norms[] = {
    /* blocks that are full, filled up, and many; row-major; channels alone */
    { { 3, 4, 3 }, 3, { NOT_BIASED(16), BATCH_NORM, TAIL } },
    { { 3, 4, 3 }, 2, { NOT_BIASED(5), BATCH_NORM, TAIL } },
    { { 3, 7, 5 }, 5, { NOT_BIASED(33), BATCH_NORM, TANH, TAIL } },
    { { 3, 7, 5 }, 3, { BATCH_NORM, BEFORE(4), TAIL } },
    { { 3, 1, 4 }, 3, { BATCH_NORM, TAIL } },
    { { 3, 4, 1 }, 3, { TANH, BATCH_NORM, TAIL } },
    { { 1, 7, 5 }, 3, { BATCH_NORM, TAIL } },
    { { 3, 4, 3 }, 4, { FLAT(19), BATCH_NORM, TAIL } },
    { { 3, 4, 3 }, 6, { FLAT(8), BATCH_NORM, RELU, TAIL } },
    { { 6, 1, 1 }, 7, { BATCH_NORM, TAIL } },
    { { 3, 4, 3 }, 5, { NOT_BIASED(9), GLOBAL_AVGPOOL, BATCH_NORM, TAIL } },
    { { 3, 4, 3 }, 3, { NOT_BIASED(5), FLATTEN, BATCH_NORM, TAIL } },
    /* one sample of many positions */
    { { 3, 4, 3 }, 1, { NOT_BIASED(6), BATCH_NORM, TAIL } },
    /* with a relu, or leaky, in the same pass, also before a pool */
    { { 3, 6, 6 },
      3,
      { NOT_BIASED(20), BATCH_NORM, RELU,
        CONV(.filters = 7, .kernel = { 3, 3 }, .same = true), BATCH_NORM,
        LEAKY_RELU(0.25), TAIL } },
    { { 3, 6, 6 },
      3,
      { NOT_BIASED(20), BATCH_NORM, RELU, MAXPOOL(.kernel = { 2, 2 }), TAIL } },
    { { 3, 6, 6 },
      2,
      { BEFORE(5), RELU, BATCH_NORM, MAXPOOL(.kernel = { 2, 2 }), TANH,
        BATCH_NORM, TAIL } },
    /* its output taken twice: the relu is one of its own; a residual block */
    { { 3, 6, 6 },
      3,
      { NOT_BIASED(18), BATCH_NORM, RELU,
        CONV(.filters = 18, .kernel = { 3, 3 }, .same = true), BATCH_NORM,
        ADD(BOTH("layer4", "layer1")), RELU, TAIL } },
    { { 3, 6, 6 },
      3,
      { NOT_BIASED(6), BATCH_NORM, TANH, BATCH_NORM,
        ADD(BOTH("layer3", "layer0")), TAIL } },
    /* many parts, in both layouts */
    { { 2, 96, 96 },
      4,
      { BATCH_NORM, TANH, NOT_BIASED(3), BATCH_NORM,
        MAXPOOL(.kernel = { 16, 16 }), TAIL } },
};

/* Two norms whose padding would be felt in every gradient. */
static const nn_case padded = {
    { 3, 5, 4 },
    6,
    { NOT_BIASED(18), BATCH_NORM, RELU, CONV(.filters = 7, .kernel = { 3, 3 }),
      BATCH_NORM, TANH, FLAT(5), BATCH_NORM, TAIL }
};

START_TEST(batch_norm_agrees_with_its_formula)
{
    check_case(norms, _i);
}
END_TEST

START_TEST(the_reference_gradient_is_a_slope)
{
    static const nn_case *const smooth[] = { &norms[2], &norms[5], &norms[7],
                                             &norms[12], &norms[17] };
    check_reference_slope(smooth[_i]);
}
END_TEST

/* A choice of channels last for all convolutions. */
START_TEST(channels_last_gives_the_same)
{
    const nn_case *net = &norms[13];
    coh_model *model = nn_model_new(net);
    const coh_choice_key key =
        coh_choice_key_of(model, net->batch, true, 1, "");
    coh_choices *table = NULL;

    ck_assert_int_eq(coh_choices_new(model, &key, &table, NULL), COH_OK);
    for (int i = 0; i < model->nlayers; i++)
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++)
            coh_choices_set(table, i, (coh_chosen)pass, COH_WAY_LAST);
    nn_trial blocked = nn_trial_new(net, 1);
    nn_trial last = nn_trial_new_by(net, 1, table);
    double *want = nn_zeros(model->parameters);
    nn_trial_train(&blocked);
    nn_trial_train(&last);
    for (int64_t i = 0; i < model->parameters; i++)
        want[i] = (double)blocked.gradient[i];
    check_gradient(&last, want);
    ck_assert_double_eq_tol(last.sums.loss, blocked.sums.loss, 1e-5);
    free(want);
    nn_trial_end(&blocked);
    nn_trial_end(&last);
    coh_choices_destroy(&table);
    coh_model_destroy(&model);
}
END_TEST

START_TEST(the_number_of_threads_does_not_show)
{
    nn_trial one = nn_trial_new(&norms[18], 1);
    nn_trial two = nn_trial_new(&norms[18], NN_THREADS);
    const coh_layer *first = &one.model->layers[0];

    nn_trial_train(&one);
    nn_trial_train(&two);
    ck_assert_mem_eq(one.gradient + first->statistic_first,
                     two.gradient + first->statistic_first,
                     (size_t)first->statistic_count * sizeof(float));
    nn_trial_end(&one);
    nn_trial_end(&two);
}
END_TEST

/* --- padding ------------------------------------------------------------ */

/* The trial's batch becomes `count` samples and padding. */
static void refill(nn_trial *trial, int64_t count)
{
    const int64_t capacity = trial->batch->capacity;

    coh_batch_destroy(&trial->batch);
    trial->batch = nn_batch_new(trial->model, capacity, 0, count);
}

/* By a network for so few rows. (Of two, the last norm makes -1 and 1, whatever
 * they are: no gradient passes.) */
START_TEST(padding_changes_nothing)
{
    const int64_t count = _i;
    nn_case small = padded;
    small.batch = count;
    nn_trial whole = nn_trial_new(&padded, 1);
    nn_trial few = nn_trial_new(&small, 1);
    double *want = nn_zeros(few.model->parameters);

    nn_trial_train(&whole); /* leaves its values in the memory */
    refill(&whole, count);
    nn_trial_train(&whole);
    nn_trial_train(&few);
    for (int64_t i = 0; i < few.model->parameters; i++)
        want[i] = (double)few.gradient[i];
    check_gradient(&whole, want);
    ck_assert_double_eq_tol(whole.sums.loss, few.sums.loss, 1e-5);
    ck_assert(whole.sums.weight == few.sums.weight);
    nn_trial_infer(&whole);
    nn_trial_infer(&few);
    for (int64_t i = 0; i < count * few.model->classes; i++)
        ck_assert_double_eq_tol((double)whole.log_probs[i],
                                (double)few.log_probs[i], log_prob_bound);
    free(want);
    nn_trial_end(&whole);
    nn_trial_end(&few);
}
END_TEST

START_TEST(a_batch_without_samples_has_a_gradient_of_zeros)
{
    nn_trial trial = nn_trial_new(&padded, 1);

    refill(&trial, 0);
    nn_trial_train(&trial);
    for (int64_t i = 0; i < trial.model->parameters; i++)
        ck_assert(trial.gradient[i] == 0);
    ck_assert(trial.sums.loss == 0 && trial.sums.weight == 0);
    nn_trial_end(&trial);
}
END_TEST

/* The last incomplete batch of an epoch may leave a worker one sample: its
 * channels have one value each behind the dense layer. */
START_TEST(one_value_measures_nothing)
{
    nn_trial trial = nn_trial_new(&padded, 1);
    const coh_layer *flat = &trial.model->layers[7];

    refill(&trial, 1);
    nn_trial_train(&trial);
    for (int64_t i = 0; i < flat->statistic_count; i++) {
        const int64_t at = flat->statistic_first + i;
        ck_assert_float_eq_tol(trial.gradient[at] / (float)trial.sums.weight,
                               trial.weights[at], 1e-6f);
    }
    for (int64_t i = 0; i < trial.model->parameters; i++)
        ck_assert(isfinite(trial.gradient[i]));
    nn_trial_end(&trial);
}
END_TEST

/* --- running statistics ------------------------------------------------- */

/* So that an update does not depend on how old its weights were. */
START_TEST(what_is_measured_depends_on_no_running_statistic)
{
    nn_trial a = nn_trial_new(&padded, 1), b = nn_trial_new(&padded, 1);
    const coh_statistics *all = &b.model->statistics;

    for (int i = 0; i < all->count; i++)
        for (int64_t k = 0; k < all->items[i].count; k++)
            b.weights[all->items[i].first + k] = 1e6f;
    nn_trial_train(&a);
    nn_trial_train(&b);
    ck_assert_mem_eq(a.gradient, b.gradient,
                     (size_t)a.model->parameters * sizeof(float));
    nn_trial_end(&a);
    nn_trial_end(&b);
}
END_TEST

/* Two members with batches of 4 and 2 samples of unequal weight; then the
 * update of the group, and the formula by plain loops over the images. */
START_TEST(a_step_of_a_group_is_the_formula)
{
    static const nn_case net = {
        { 3, 5, 4 },
        4,
        { NN_LAYER(BATCH_NORM, .epsilon = 1e-5, .momentum = 0.75), TAIL }
    };
    nn_trial members[2] = { nn_trial_new(&net, 1), nn_trial_new(&net, 1) };
    const coh_model *model = members[0].model;
    const coh_layer *norm = &model->layers[0];
    const coh_plan plan = { .groups = 1,
                            .group_size = 2,
                            .parameters = model->parameters,
                            .nblocks = 1,
                            .block_count = model->parameters };
    const coh_rule rule = { .kind = COH_RULE_SGD, .momentum = 0.5f };
    coh_shard *shard = NULL;
    double weight = 0, want[6] = { 0 };

    coh_batch_destroy(&members[1].batch);
    members[1].batch = nn_batch_new(model, 4, 4, 2);
    for (int m = 0; m < 2; m++) {
        nn_trial_train(&members[m]);
        weight += members[m].sums.weight;
    }
    for (int m = 0; m < 2; m++)
        for (int c = 0; c < 3; c++) {
            const nn_ref ref = { .model = model, .batch = members[m].batch };
            double x[4 * 60], mean, variance;
            for (int i = 0; i < 4 * 60; i++)
                x[i] = (double)members[m].batch->images[i];
            nn_ref_moments(&ref, norm, x, c, &mean, &variance);
            const double n = (double)members[m].batch->count * 20;
            want[c] += members[m].sums.weight / weight * mean;
            want[3 + c] +=
                members[m].sums.weight / weight * variance * n / (n - 1);
        }
    for (int64_t i = 0; i < model->parameters; i++)
        members[0].gradient[i] += members[1].gradient[i];
    ck_assert_int_eq(
        coh_shard_new(&plan, -1, &rule, &model->statistics, &shard, NULL),
        COH_OK);
    coh_shard_load(shard, members[0].weights);
    coh_shard_apply(shard, 0, members[0].gradient, weight, 0.1f);
    for (int i = 0; i < 6; i++) {
        const int64_t at = norm->statistic_first + i;
        ck_assert_double_eq_tol(
            (double)coh_shard_values(shard)[at],
            0.75 * (double)members[0].weights[at] + 0.25 * want[i], 1e-6);
    }
    coh_shard_destroy(&shard);
    nn_trial_end(&members[0]);
    nn_trial_end(&members[1]);
}
END_TEST

static Suite *nn_batch_norm_suite(void)
{
    Suite *suite = suite_create("nn_batch_norm");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, batch_norm_agrees_with_its_formula, 0,
                        COUNT(norms));
    tcase_add_loop_test(core, the_reference_gradient_is_a_slope, 0, 5);
    tcase_add_test(core, channels_last_gives_the_same);
    tcase_add_test(core, the_number_of_threads_does_not_show);
    tcase_add_loop_test(core, padding_changes_nothing, 3, 6);
    tcase_add_test(core, a_batch_without_samples_has_a_gradient_of_zeros);
    tcase_add_test(core, one_value_measures_nothing);
    tcase_add_test(core, what_is_measured_depends_on_no_running_statistic);
    tcase_add_test(core, a_step_of_a_group_is_the_formula);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_batch_norm_suite)
