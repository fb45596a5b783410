/* test_gradient.c - the gradient over the batches of a step
 * (src/worker/gradient.h). No MPI. */
#include "worker/gradient.h"

#include "support/check_run.h"

/* More than a thread adds at once, and no multiple of it. */
enum { COUNT = 40001, PARTS = 5, MOST = 4 };

static coh_err err;
static float weights[COUNT];
static const coh_batch batch = { 0 };

/* Small integers: sums of them are exact. */
static float value_of(int64_t number, int64_t i)
{
    return (float)((number * 31 + i * 7) % 101) - 50;
}

static float sum_of(int64_t batches, int64_t i)
{
    float sum = 0;

    for (int64_t n = 0; n < batches; n++)
        sum += value_of(n, i);
    return sum;
}

/* A network of PARTS layers. */
typedef struct fake {
    int64_t number; /* of the batch */
} fake;

static int64_t begin_of(int part)
{
    return (int64_t)part * COUNT / PARTS;
}

static void fake_train(void *user, const coh_batch *of, const float *with,
                       float *gradient, coh_step_sums *sums,
                       const coh_watch *watch)
{
    fake *self = user;

    ck_assert(of == &batch && with == weights);
    for (int part = 0; part < PARTS; part++)
        watch->need(watch->user, begin_of(part + 1));
    for (int part = PARTS - 1; part >= 0; part--) {
        for (int64_t i = begin_of(part); i < begin_of(part + 1); i++)
            gradient[i] = value_of(self->number, i);
        watch->have(watch->user, begin_of(part));
    }
    *sums = (coh_step_sums){ .loss = (double)self->number, .weight = 2 };
    sums->terms[1] = 3;
    self->number++;
}

/* What the exchange is told. */
typedef struct watcher {
    coh_gradient *gradient;
    int64_t batches; /* of a step */
    int64_t needs, haves;
} watcher;

static void see_need(void *user, int64_t end)
{
    watcher *self = user;

    ck_assert(end >= 0 && end <= COUNT);
    self->needs += end > 0;
}

/* What is complete is the sum of all batches. */
static void see_have(void *user, int64_t first)
{
    watcher *self = user;
    const float *values = coh_gradient_values(self->gradient);
    int wrong = 0;

    self->haves++;
    ck_assert_int_eq(first, begin_of(PARTS - (int)self->haves));
    for (int64_t i = first; i < COUNT; i++)
        wrong += values[i] != sum_of(self->batches, i);
    ck_assert_int_eq(wrong, 0);
}

static void run_step(coh_gradient *gradient, int64_t batches)
{
    watcher it = { .gradient = gradient, .batches = batches };
    const coh_watch watch = { &it, see_need, see_have };
    fake net = { 0 };
    const coh_compute compute = { &net, fake_train, NULL, NULL };
    coh_step_sums sums;

    coh_gradient_begin(gradient);
    for (int64_t n = 0; n < batches; n++) {
        ck_assert_int_eq(it.haves, 0);
        coh_gradient_add(gradient, &compute, &batch, n == batches - 1, weights,
                         &sums, &watch);
    }
    ck_assert_int_eq(it.haves, PARTS);
    ck_assert_int_eq(it.needs, batches * PARTS);
    ck_assert(sums.loss == (double)(batches * (batches - 1) / 2));
    ck_assert(sums.weight == 2 * (double)batches);
    ck_assert(sums.terms[1] == 3 * (double)batches);
}

static coh_config config_for(int64_t accumulate, int64_t lag)
{
    return (coh_config){ .train.accumulate = accumulate, .exchange.lag = lag };
}

/* Steps of different lengths one after the other, as at the end of an epoch. */
START_TEST(a_step_is_told_of_the_sum_of_its_batches_part_by_part)
{
    const coh_config config = config_for(MOST, _i);
    coh_gradient *gradient = NULL;

    ck_assert_int_eq(coh_gradient_new(&config, COUNT, &gradient, &err), COH_OK);
    for (int64_t batches = MOST; batches > 0; batches--)
        run_step(gradient, batches);
    run_step(gradient, MOST);
    coh_gradient_destroy(&gradient);
}
END_TEST

START_TEST(a_single_batch_needs_no_second_vector)
{
    const coh_config config = config_for(1, 0);
    coh_gradient *gradient = NULL;

    ck_assert_int_eq(coh_gradient_vectors(&config), 1);
    ck_assert_int_eq(coh_gradient_new(&config, COUNT, &gradient, &err), COH_OK);
    run_step(gradient, 1);
    run_step(gradient, 1);
    coh_gradient_destroy(&gradient);
}
END_TEST

/* The exchange of a step reads its sum while the next is calculated. */
START_TEST(with_a_lag_a_sum_outlives_the_next_step)
{
    const coh_config config = config_for(1, 1);
    coh_gradient *gradient = NULL;

    ck_assert_int_eq(coh_gradient_vectors(&config), 2);
    ck_assert_int_eq(coh_gradient_new(&config, COUNT, &gradient, &err), COH_OK);
    run_step(gradient, 1);
    float *sum = coh_gradient_values(gradient);
    sum[0] = 12345;
    run_step(gradient, 1);
    ck_assert(coh_gradient_values(gradient) != sum && sum[0] == 12345);
    run_step(gradient, 1);
    ck_assert(coh_gradient_values(gradient) == sum);
    coh_gradient_destroy(&gradient);
}
END_TEST

static Suite *gradient_suite(void)
{
    Suite *suite = suite_create("gradient");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(
        core, a_step_is_told_of_the_sum_of_its_batches_part_by_part, 0, 2);
    tcase_add_test(core, with_a_lag_a_sum_outlives_the_next_step);
    tcase_add_test(core, a_single_batch_needs_no_second_vector);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(gradient_suite)
