/* The network as a whole: gradient, padding, sums, repeatability, dropout. */
#include <omp.h>

#include "support/check_run.h"
#include "support/nn_check.h"

/* Sanitizers end the program instead. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_RUN_OUT_OF_MEMORY 0
#else
#define CAN_RUN_OUT_OF_MEMORY 1
#endif

/* Blocked layouts, fused and single activations, both pools. */
static const nn_case mixed = {
    { 3, 8, 8 },
    6,
    { CONV(.filters = 18, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }),
      CONV(.filters = 20, .kernel = { 3, 3 }, .bias = true), TANH,
      AVGPOOL(.kernel = { 2, 2 }), DENSE(12), LEAKY_RELU(0.1), DENSE(3), LOSS }
};

/* No kinks: a finite step does not jump over one. */
static const nn_case smooth = {
    { 2, 6, 5 },
    3,
    { CONV(.filters = 4, .kernel = { 3, 3 }, .same = true, .bias = true), TANH,
      AVGPOOL(.kernel = { 2, 2 }), FLATTEN, DENSE(5), SIGMOID, DENSE(3), LOSS }
};

static const nn_case dropping = { { 2, 5, 3 },
                                  3,
                                  { DROPOUT(0.4), DENSE(2), LOSS } };

static size_t bytes_of(const nn_trial *trial)
{
    return (size_t)trial->model->parameters * sizeof(float);
}

/* A copy of the gradient, for the caller to free. */
static float *copy_gradient(const nn_trial *trial)
{
    float *copy = malloc(bytes_of(trial));

    ck_assert_ptr_nonnull(copy);
    return memcpy(copy, trial->gradient, bytes_of(trial));
}

static bool same_gradient(const nn_trial *trial, const float *other)
{
    return memcmp(trial->gradient, other, bytes_of(trial)) == 0;
}

static void replace_batch(nn_trial *trial, int64_t first, int64_t count)
{
    const int64_t capacity = trial->batch->capacity;

    coh_batch_destroy(&trial->batch);
    trial->batch = nn_batch_new(trial->model, capacity, first, count);
}

static double largest(const float *values, int64_t count)
{
    double most = 0;

    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

/* --- gradient ----------------------------------------------------------- */

/* The loss is a float calculation of about 1e-6 relative: a step of 1e-2
 * leaves 1e-4 of that, and about as much from the third derivative. */
START_TEST(the_gradient_is_the_slope_of_the_loss)
{
    nn_trial trial = nn_trial_new(&smooth, 1);
    const int64_t P = trial.model->parameters;
    const float step = 1e-2f;

    nn_trial_train(&trial);
    float *gradient = copy_gradient(&trial);
    const double bound = 2e-3 * largest(gradient, P);
    for (int64_t i = 0; i < P; i++) {
        const float was = trial.weights[i];
        trial.weights[i] = was + step;
        nn_trial_train(&trial);
        const double above = trial.sums.loss;
        trial.weights[i] = was - step;
        nn_trial_train(&trial);
        const double slope = (above - trial.sums.loss) /
                             ((double)(was + step) - (double)(was - step));
        trial.weights[i] = was;
        ck_assert_double_eq_tol((double)gradient[i], slope, bound);
    }
    free(gradient);
    nn_trial_end(&trial);
}
END_TEST

/* The slow twin is checked too, against nothing but its own loss. */
START_TEST(the_reference_gradient_is_the_slope_of_the_reference_loss)
{
    check_reference_slope(_i == 0 ? &smooth : &mixed);
}
END_TEST

START_TEST(two_halves_sum_to_the_whole)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);
    const int64_t P = trial.model->parameters;
    double *sum = nn_zeros(P);
    coh_step_sums sums = { 0 };

    nn_trial_train(&trial);
    float *whole = copy_gradient(&trial);
    const coh_step_sums whole_sums = trial.sums;
    for (int half = 0; half < 2; half++) {
        replace_batch(&trial, 3 * half, 3);
        nn_trial_train(&trial);
        for (int64_t i = 0; i < P; i++)
            sum[i] += (double)trial.gradient[i];
        sums.loss += trial.sums.loss;
        sums.weight += trial.sums.weight;
    }
    const double bound = 2e-6 * largest(whole, P);
    for (int64_t i = 0; i < P; i++)
        ck_assert_double_eq_tol(sum[i], (double)whole[i], bound);
    ck_assert_double_eq_tol(sums.loss, whole_sums.loss, 1e-5);
    ck_assert(sums.weight == whole_sums.weight);
    free(sum);
    free(whole);
    nn_trial_end(&trial);
}
END_TEST

/* --- padding ------------------------------------------------------------ */

START_TEST(what_is_in_padding_rows_changes_not_a_bit)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);
    const int64_t row = coh_shape_count(trial.model->input);

    replace_batch(&trial, 0, 4);
    nn_trial_train(&trial);
    float *before = copy_gradient(&trial);
    const coh_step_sums sums = trial.sums;

    for (int64_t i = 4 * row; i < 6 * row; i++)
        trial.batch->images[i] = 100.0f;
    trial.batch->labels[4] = 2;
    nn_trial_train(&trial);
    ck_assert(same_gradient(&trial, before));
    ck_assert(sums.loss == trial.sums.loss);
    ck_assert(sums.weight == trial.sums.weight);
    free(before);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_batch_of_padding_has_no_loss_and_no_gradient)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);

    replace_batch(&trial, 0, 0);
    nn_trial_train(&trial);
    ck_assert(trial.sums.loss == 0 && trial.sums.weight == 0);
    for (int64_t i = 0; i < trial.model->parameters; i++)
        ck_assert(trial.gradient[i] == 0);
    nn_trial_end(&trial);
}
END_TEST

/* --- repeatability ------------------------------------------------------ */

START_TEST(the_same_step_gives_the_same_bits)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS),
             other = nn_trial_new(&mixed, NN_THREADS);
    nn_trial_train(&trial);
    float *first = copy_gradient(&trial);
    const double loss = trial.sums.loss;

    /* inference in between works in the same memory */
    nn_trial_infer(&trial);
    replace_batch(&trial, 50, 6);
    nn_trial_train(&trial);
    ck_assert(!same_gradient(&trial, first));
    replace_batch(&trial, 0, 6);
    nn_trial_train(&trial);
    ck_assert(same_gradient(&trial, first));
    ck_assert(trial.sums.loss == loss);

    nn_trial_train(&other);
    ck_assert(same_gradient(&other, first));
    nn_trial_infer(&other);
    ck_assert_mem_eq(trial.log_probs, other.log_probs, 18 * sizeof(float));
    free(first);
    nn_trial_end(&trial);
    nn_trial_end(&other);
}
END_TEST

START_TEST(the_callers_vectors_may_lie_anywhere)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);
    const size_t bytes = bytes_of(&trial);
    float *block = malloc(2 * bytes + 2 * sizeof *block);
    ck_assert_ptr_nonnull(block);
    float *weights = memcpy(block + 1, trial.weights, bytes);
    float *gradient = weights + trial.model->parameters;

    nn_trial_train(&trial);
    trial.compute.train(trial.compute.self, trial.batch, weights, gradient,
                        &trial.sums, NULL);
    const double bound =
        1e-6 * largest(trial.gradient, trial.model->parameters);
    for (int64_t i = 0; i < trial.model->parameters; i++)
        ck_assert_double_eq_tol((double)gradient[i], (double)trial.gradient[i],
                                bound);
    ck_assert_mem_eq(weights, trial.weights, bytes);
    free(block);
    nn_trial_end(&trial);
}
END_TEST

/* --- dropout ------------------------------------------------------------ */

/* One row with an image of ones into a dense layer: its weights' gradient
 * shows the mask, times a number a class. */
START_TEST(the_dropout_mask_is_its_formula_to_the_bit)
{
    nn_trial trial = nn_trial_new(&dropping, NN_THREADS);
    const int64_t row = coh_shape_count(trial.model->input);
    const float kept = (float)(1 / (1 - 0.4));

    for (int64_t sample = 0; sample < 20; sample++) {
        replace_batch(&trial, 1000000007 * sample, 1);
        const nn_ref ref = {
            trial.model, trial.batch, NULL, NULL, NN_SEED, true
        };
        for (int64_t i = 0; i < row; i++)
            trial.batch->images[i] = 1;
        nn_trial_train(&trial);
        const float bias = trial.gradient[trial.model->layers[1].bias_first];
        for (int64_t e = 0; e < row; e++)
            ck_assert(trial.gradient[e] ==
                      (nn_ref_kept(&ref, 0, 0, e) > 0 ? kept * bias : 0));
    }
    nn_trial_end(&trial);
}
END_TEST

START_TEST(the_dropout_mask_does_not_depend_on_the_row)
{
    nn_trial trial = nn_trial_new(&dropping, NN_THREADS);
    const int64_t row = coh_shape_count(trial.model->input);

    replace_batch(&trial, 77, 1);
    nn_trial_train(&trial);
    float *first = copy_gradient(&trial);

    trial.batch->count = 3; /* the sample moves to the last row */
    nn_fill_row(trial.batch, trial.model, 2, 77);
    trial.batch->loss_weights[0] = 0;
    memset(trial.batch->images, 0, (size_t)(2 * row) * sizeof(float));
    nn_trial_train(&trial);
    ck_assert(same_gradient(&trial, first));
    free(first);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(another_epoch_or_seed_drops_others)
{
    nn_trial trial = nn_trial_new(&dropping, NN_THREADS);
    coh_compute other = { 0 };
    nn_trial_train(&trial);
    float *first = copy_gradient(&trial);

    trial.batch->epoch++;
    nn_trial_train(&trial);
    ck_assert(!same_gradient(&trial, first));

    trial.batch->epoch--;
    ck_assert_int_eq(coh_net_new(trial.model, 3, 0, NN_SEED + 1, NN_THREADS,
                                 NULL, &other, NULL),
                     COH_OK);
    other.train(other.self, trial.batch, trial.weights, trial.gradient,
                &trial.sums, NULL);
    ck_assert(!same_gradient(&trial, first));
    other.destroy(&other.self);
    free(first);
    nn_trial_end(&trial);
}
END_TEST

/* --- loss --------------------------------------------------------------- */

/* Two weights, no bias: the logits are what the one pixel is multiplied by. */
static const nn_case logits = { { 1, 1, 1 },
                                1,
                                { NN_LAYER(DENSE, .filters = 2), LOSS } };

START_TEST(huge_logits_do_not_overflow)
{
    nn_trial trial = nn_trial_new(&logits, 1);

    trial.batch->images[0] = 1;
    trial.batch->labels[0] = 1;
    trial.batch->loss_weights[0] = 2;
    trial.weights[0] = 10000;
    trial.weights[1] = -10000;
    nn_trial_train(&trial);
    ck_assert(trial.sums.loss == 40000 && trial.sums.weight == 2);
    ck_assert(trial.gradient[0] == 2 && trial.gradient[1] == -2);
    nn_trial_infer(&trial);
    ck_assert(trial.log_probs[0] == 0 && trial.log_probs[1] == -20000);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_row_of_weight_0_adds_nothing_though_its_logits_overflow)
{
    nn_case two_rows = logits;
    two_rows.batch = 2;
    nn_trial trial = nn_trial_new(&two_rows, 1);

    trial.batch->images[0] = 0;
    trial.batch->images[1] = trial.weights[0] = trial.weights[1] = 1e30f;
    trial.batch->loss_weights[1] = 0;
    nn_trial_train(&trial);
    ck_assert_double_eq_tol(trial.sums.loss, 0.5 * log(2), 1e-6);
    ck_assert(trial.sums.weight == 0.5);
    ck_assert(trial.gradient[0] == 0 && trial.gradient[1] == 0);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_sure_label_keeps_a_small_gradient)
{
    nn_trial trial = nn_trial_new(&logits, 1);
    const double want = 1 / (1 + exp(20));

    trial.batch->images[0] = 1;
    trial.batch->labels[0] = 0;
    trial.batch->loss_weights[0] = 1;
    trial.weights[0] = 20;
    trial.weights[1] = 0;
    nn_trial_train(&trial);
    ck_assert_double_eq_tol((double)trial.gradient[0], -want, 1e-6 * want);
    ck_assert_double_eq_tol((double)trial.gradient[1], want, 1e-6 * want);
    nn_trial_end(&trial);
}
END_TEST

/* A relu behind all that may have parameters; a pool. */
static const nn_case rectified = {
    { 3, 8, 8 },
    4,
    { CONV(.filters = 16, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }),
      CONV(.filters = 16, .kernel = { 3, 3 }, .same = true), BATCH_NORM, RELU,
      CONV(.filters = 8, .kernel = { 3, 3 }, .bias = true), RELU, LAYER_NORM,
      RELU, DENSE(12), RELU, DENSE(3), LOSS }
};

static bool all_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static void spoil(nn_trial *trial, int64_t i, float bad)
{
    const float was = trial->weights[i];

    trial->weights[i] = bad;
    nn_trial_train(trial);
    ck_assert_msg(!isfinite(trial->sums.loss) ||
                      !all_finite(trial->gradient, trial->model->parameters),
                  "parameter %lld, training", (long long)i);
    nn_trial_infer(trial);
    ck_assert_msg(!isfinite(trial->sums.loss), "parameter %lld, inference",
                  (long long)i);
    trial->weights[i] = was;
}

/* Whatever the library's relu and maxpool make of it: of each layer a weight,
 * its last, a bias, a statistic. */
START_TEST(a_parameter_that_is_not_finite_shows)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    nn_trial trial = nn_trial_new(&rectified, NN_THREADS);

    for (int l = 0; l < trial.model->nlayers; l++) {
        const coh_layer *it = &trial.model->layers[l];
        if (it->weight_count > 0) {
            spoil(&trial, it->weight_first, bad[_i]);
            spoil(&trial, it->weight_first + it->weight_count - 1, bad[_i]);
        }
        if (it->bias_count > 0)
            spoil(&trial, it->bias_first + 1, bad[_i]);
        if (it->statistic_count > 0)
            spoil(&trial, it->statistic_first + 1, bad[_i]);
    }
    nn_trial_train(&trial);
    ck_assert(isfinite(trial.sums.loss));
    ck_assert(all_finite(trial.gradient, trial.model->parameters));
    nn_trial_infer(&trial);
    ck_assert(isfinite(trial.sums.loss));
    nn_trial_end(&trial);
}
END_TEST

/* --- making it ---------------------------------------------------------- */

START_TEST(either_step_may_be_left_out)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);
    coh_compute half[2] = { 0 };
    nn_trial_train(&trial);
    nn_trial_infer(&trial);
    float *gradient = copy_gradient(&trial), log_probs[18];

    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(coh_net_new(trial.model, i == 0 ? 6 : 0,
                                     i == 0 ? 0 : 6, NN_SEED, NN_THREADS, NULL,
                                     &half[i], NULL),
                         COH_OK);
    half[0].train(half[0].self, trial.batch, trial.weights, trial.gradient,
                  &trial.sums, NULL);
    ck_assert(same_gradient(&trial, gradient));
    half[1].infer(half[1].self, trial.batch, trial.weights, log_probs,
                  &trial.sums);
    ck_assert_mem_eq(log_probs, trial.log_probs, sizeof log_probs);
    for (int i = 0; i < 2; i++)
        half[i].destroy(&half[i].self);
    free(gradient);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_layer_that_onednn_refuses_is_named)
{
    coh_model *model = nn_model_new(&mixed);
    coh_compute compute = { 0 };
    coh_err err = COH_ERR_INIT;

    model->layers[3].pad_after[0] += 5; /* does not fit the output any more */
    ck_assert_int_eq(
        coh_net_new(model, 6, 6, 0, NN_THREADS, NULL, &compute, &err),
        COH_E_FAILED);
    ck_assert_ptr_null(compute.self);
    ck_assert_msg(strstr(err.text, "layer3") != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "invalid_arguments") != NULL, "%s",
                  err.text);
    coh_model_destroy(&model);
}
END_TEST

#if CAN_RUN_OUT_OF_MEMORY
START_TEST(a_batch_that_memory_cannot_hold_is_refused)
{
    coh_model *model = nn_model_new(&smooth);
    coh_compute compute = { 0 };
    coh_err err = COH_ERR_INIT;

    ck_assert_int_lt(coh_net_new(model, (int64_t)1 << 46, 0, 0, NN_THREADS,
                                 NULL, &compute, &err),
                     0);
    ck_assert_ptr_null(compute.self);
    ck_assert_str_ne(err.text, "");
    coh_model_destroy(&model);
}
END_TEST
#endif

#ifdef __SSE__
START_TEST(denormals_are_zero_in_every_thread)
{
    nn_trial trial = nn_trial_new(&mixed, NN_THREADS);
    int wrong = 0;

    nn_trial_train(&trial);
    const volatile float small = 1e-30f;
#pragma omp parallel reduction(+ : wrong)
    wrong += small * small * 1e30f != 0 || small * 1e-10f != 0;
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(omp_get_max_threads(), NN_THREADS);
    nn_trial_end(&trial);
}
END_TEST
#endif

static Suite *nn_net_suite(void)
{
    Suite *suite = suite_create("nn_net");
    TCase *core = tcase_create("core"), *limits = tcase_create("limits");

    tcase_set_timeout(core, 60);
    tcase_add_test(core, the_gradient_is_the_slope_of_the_loss);
    tcase_add_loop_test(
        core, the_reference_gradient_is_the_slope_of_the_reference_loss, 0, 2);
    tcase_add_test(core, two_halves_sum_to_the_whole);
    tcase_add_test(core, what_is_in_padding_rows_changes_not_a_bit);
    tcase_add_test(core, a_batch_of_padding_has_no_loss_and_no_gradient);
    tcase_add_test(core, the_same_step_gives_the_same_bits);
    tcase_add_test(core, the_callers_vectors_may_lie_anywhere);
    tcase_add_test(core, the_dropout_mask_is_its_formula_to_the_bit);
    tcase_add_test(core, the_dropout_mask_does_not_depend_on_the_row);
    tcase_add_test(core, another_epoch_or_seed_drops_others);
    suite_add_tcase(suite, core);

    tcase_add_test(limits, huge_logits_do_not_overflow);
    tcase_add_test(limits,
                   a_row_of_weight_0_adds_nothing_though_its_logits_overflow);
    tcase_add_test(limits, a_sure_label_keeps_a_small_gradient);
    tcase_add_loop_test(limits, a_parameter_that_is_not_finite_shows, 0, 3);
    tcase_add_test(limits, either_step_may_be_left_out);
    tcase_add_test(limits, a_layer_that_onednn_refuses_is_named);
#if CAN_RUN_OUT_OF_MEMORY
    tcase_add_test(limits, a_batch_that_memory_cannot_hold_is_refused);
#endif
#ifdef __SSE__
    tcase_add_test(limits, denormals_are_zero_in_every_thread);
#endif
    suite_add_tcase(suite, limits);
    return suite;
}

CHECK_MAIN(nn_net_suite)
