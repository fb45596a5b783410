/* test_timed.c - a network that takes its time (src/worker/timed.h). No MPI. */
#include "worker/timed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/config_text.h"

enum { ROWS = 4, ROOM = 4096 };

/* Two layers with weights behind each other, one with running statistics. */
static const char text[] =
    DATA "model: {input: [2, 4, 4], layers: [conv2d: {filters: 3, kernel: 3}, "
         "batch_norm, relu, dense: {units: 5}, softmax_cross_entropy]}\n";

static coh_err err;
static coh_model *model;
static coh_compute compute;
static coh_batch *batch;
static double flop;
static float weights[ROOM], kept[ROOM], gradient[ROOM];

static void spend(void *user, double more)
{
    ck_assert_double_gt(more, 0);
    *(double *)user += more;
}

/* Three rows of four: samples 6, 7 and 9, of weights 1, 2 and 0.5. */
static void setup(void)
{
    coh_config *config = config_of(text);
    static const int64_t samples[] = { 6, 7, 9 };
    static const float factors[] = { 1, 2, 0.5f };

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(config, &model, &err), COH_OK);
    coh_config_destroy(&config);
    ck_assert_int_le(model->parameters, ROOM);
    ck_assert_int_eq(coh_timed_new(model, spend, &flop, &compute, &err),
                     COH_OK);
    ck_assert_int_eq(coh_batch_new(model->input, 0, ROWS, &batch, &err),
                     COH_OK);
    batch->count = 3;
    memcpy(batch->samples, samples, sizeof samples);
    memcpy(batch->loss_weights, factors, sizeof factors);
    coh_model_init(model, 3, weights);
    memcpy(kept, weights, sizeof kept);
    flop = 0;
}

static void teardown(void)
{
    coh_batch_destroy(&batch);
    compute.destroy(&compute.self);
    coh_model_destroy(&model);
}

static coh_step_sums train(const coh_watch *watch)
{
    coh_step_sums sums;
    compute.train(compute.self, batch, weights, gradient, &sums, watch);
    return sums;
}

static bool is_statistic(int64_t i)
{
    const coh_statistic *statistic;
    (void)coh_statistics_run(&model->statistics, i, i + 1, &statistic);
    return statistic != NULL;
}

/* By hand: sample 6 is pulled to 0, 7 and 9 to 1. */
START_TEST(the_loss_and_its_gradient_are_those_of_the_header)
{
    double loss = 0;
    const coh_step_sums sums = train(NULL);

    for (int64_t i = 0; i < model->parameters; i++) {
        const double w = (double)weights[i];
        if (is_statistic(i)) {
            ck_assert_float_eq_tol(gradient[i], 3.5 * w, 1e-6);
            continue;
        }
        loss += 0.5 * (1 * w * w + 2.5 * (w - 1) * (w - 1));
        ck_assert_float_eq_tol(gradient[i], 1 * w + 2.5 * (w - 1), 1e-6);
    }
    ck_assert_double_eq_tol(sums.loss, loss, 1e-9 * loss);
    ck_assert_double_eq(sums.terms[0], sums.loss);
    ck_assert_double_eq(sums.weight, 3.5);
}
END_TEST

START_TEST(the_time_is_that_of_the_models_flop_for_all_rows)
{
    float log_probs[ROWS * 5];
    coh_step_sums sums;

    const coh_step_sums trained = train(NULL);
    ck_assert_double_eq(flop, (double)(ROWS * model->flop_step));
    flop = 0;
    compute.infer(compute.self, batch, weights, log_probs, &sums);
    ck_assert_double_eq(flop, (double)(ROWS * model->flop_forward));
    ck_assert_double_eq(sums.loss, trained.loss);
    for (int i = 0; i < ROWS * 5; i++)
        ck_assert_float_eq_tol(log_probs[i], -logf(5), 1e-6f);
}
END_TEST

/* Weights come when they are needed, and are gone when they are not any more:
 * the same numbers. */
static int64_t had; /* gradient[had, P) is complete */

static void need(void *user, int64_t end)
{
    (void)user;
    memcpy(weights, kept, (size_t)end * sizeof *weights);
}

static void have(void *user, int64_t first)
{
    const float *want = user;
    ck_assert_int_le(first, had);
    had = first;
    for (int64_t i = first; i < model->parameters; i++) {
        ck_assert_float_eq(gradient[i], want[i]);
        weights[i] = NAN;
    }
}

START_TEST(the_watch_hears_of_weights_and_gradients_in_time)
{
    float want[ROOM];
    const coh_watch watch = { want, need, have };
    const coh_step_sums plain = train(NULL);

    memcpy(want, gradient, sizeof want);
    for (int i = 0; i < ROOM; i++)
        weights[i] = gradient[i] = NAN;
    had = model->parameters;
    ck_assert_double_eq(train(&watch).loss, plain.loss);
    ck_assert_int_eq(had, 0);
    ck_assert_mem_eq(gradient, want, (size_t)model->parameters * sizeof *want);
}
END_TEST

static Suite *timed_suite(void)
{
    Suite *suite = suite_create("timed");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, the_loss_and_its_gradient_are_those_of_the_header);
    tcase_add_test(core, the_time_is_that_of_the_models_flop_for_all_rows);
    tcase_add_test(core, the_watch_hears_of_weights_and_gradients_in_time);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(timed_suite)
