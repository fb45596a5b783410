/* test_schedule.c - the rate over the samples seen
 * (src/common/optim/schedule.h). No MPI. */
#include "common/optim/schedule.h"

#include <math.h>

#include "support/config_text.h"

enum { EPOCH = 1000, STEP = 10 };

static coh_schedule schedule_of(const char *optimizer)
{
    char text[512];

    snprintf(text, sizeof text,
             DATA MODEL "train: {epochs: 8}\n"
                        "optimizer: {rate: 0.5, %s}\n",
             optimizer);
    coh_config *config = config_of(text);
    const coh_schedule schedule = coh_schedule_of(config, EPOCH, STEP);
    coh_config_destroy(&config);
    return schedule;
}

static void expect(const coh_schedule *schedule, int64_t samples, double want)
{
    ck_assert_double_eq_tol((double)coh_schedule_rate(schedule, samples), want,
                            1e-7);
}

START_TEST(a_constant_rate_stays)
{
    const coh_schedule schedule = schedule_of("schedule: constant");

    expect(&schedule, 0, 0.5);
    expect(&schedule, 8 * EPOCH, 0.5);
}
END_TEST

START_TEST(steps_multiply_the_rate_when_their_samples_have_been_seen)
{
    const coh_schedule schedule =
        schedule_of("schedule: step, step_every: 2, step_factor: 0.1");

    expect(&schedule, 0, 0.5);
    expect(&schedule, 2 * EPOCH - 1, 0.5);
    expect(&schedule, 2 * EPOCH, 0.05);
    expect(&schedule, 4 * EPOCH, 0.005);
}
END_TEST

/* 5e9 samples, beyond what 32 bits count, to the sample. */
START_TEST(the_clock_goes_beyond_32_bits)
{
    const coh_schedule schedule =
        schedule_of("schedule: step, step_every: 5e6, step_factor: 0.1");

    expect(&schedule, 4999999999, 0.5);
    expect(&schedule, 5000000000, 0.05);
    expect(&schedule, 10000000000, 0.005);
}
END_TEST

START_TEST(a_cosine_falls_from_the_rate_to_the_final_rate)
{
    const coh_schedule schedule =
        schedule_of("schedule: cosine, final_rate: 0.1");

    expect(&schedule, 0, 0.5);
    expect(&schedule, 2 * EPOCH, 0.1 + 0.2 * (1 + sqrt(0.5)));
    expect(&schedule, 4 * EPOCH, 0.3);
    expect(&schedule, 8 * EPOCH, 0.1);
    expect(&schedule, 9 * EPOCH, 0.1);
}
END_TEST

START_TEST(a_cosine_begins_when_the_warmup_ends)
{
    const coh_schedule schedule = schedule_of("schedule: cosine, warmup: 2");

    expect(&schedule, 0, 0.5 * STEP / (2 * EPOCH));
    expect(&schedule, 2 * EPOCH, 0.5);
    expect(&schedule, 5 * EPOCH, 0.25);
    expect(&schedule, 8 * EPOCH, 0);
}
END_TEST

START_TEST(the_warmup_rises_from_the_first_step_on)
{
    const coh_schedule schedule = schedule_of("schedule: constant, warmup: 1");

    expect(&schedule, 0, 0.5 * 0.01);
    expect(&schedule, 490, 0.25);
    expect(&schedule, EPOCH - STEP, 0.5);
    expect(&schedule, EPOCH, 0.5);
}
END_TEST

START_TEST(a_warmup_shorter_than_a_step_never_exceeds_the_rate)
{
    const coh_schedule schedule =
        schedule_of("schedule: constant, warmup: 0.001");

    expect(&schedule, 0, 0.5);
}
END_TEST

/* The clock is in samples: larger steps see the same rates. */
START_TEST(the_number_of_groups_does_not_change_the_schedule)
{
    coh_config *config =
        config_of(DATA MODEL "optimizer: {schedule: cosine}\n");
    const coh_schedule small = coh_schedule_of(config, EPOCH, 10);
    const coh_schedule large = coh_schedule_of(config, EPOCH, 80);

    for (int64_t samples = 0; samples <= 10 * EPOCH; samples += 80)
        expect(&small, samples, (double)coh_schedule_rate(&large, samples));
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    double epochs;
    int64_t steps, epoch_samples, step_samples, want;
} totals[] = {
    { 3, 0, 1000, 10, 3000 },
    { 2.5, 0, 1001, 10, 2503 }, /* 2502.5 */
    { 0.55, 0, 100, 10, 55 },   /* 55.00000000000001 as a double */
    { 1e-9, 0, 1000, 10, 1 },   /* never nothing */
    { 0, 7, 1000, 10, 70 },     /* steps alone */
    { 3, 7, 1000, 10, 70 },     /* whichever ends sooner */
    { 3, 700, 1000, 10, 3000 }, /* whichever ends sooner */
    { 0, 7, 25, 10, 60 },       /* 10 10 5, 10 10 5, 10 */
    { 0, 7, 4, 10, 28 },        /* 4 a step */
    { 0, INT64_MAX, 1000, 10, INT64_MAX },
    { 2, INT64_MAX, 1000, 10, 2000 },
};
enum { TOTALS = sizeof totals / sizeof totals[0] };

START_TEST(the_total_is_what_epochs_and_steps_train_on)
{
    coh_config *config = config_of(DATA MODEL);

    config->train.epochs = totals[_i].epochs;
    config->train.steps = totals[_i].steps;
    ck_assert_int_eq(coh_schedule_total(config, totals[_i].epoch_samples,
                                        totals[_i].step_samples),
                     totals[_i].want);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(a_late_gradient_has_the_rate_divided_by_its_staleness)
{
    const coh_schedule schedule =
        schedule_of("staleness: inverse, schedule: step, step_every: 2");

    ck_assert_float_eq(coh_schedule_late_rate(&schedule, 0, 0), 0.5f);
    ck_assert_float_eq(coh_schedule_late_rate(&schedule, 0, 1), 0.5f);
    ck_assert_float_eq(coh_schedule_late_rate(&schedule, 0, 2), 0.25f);
    ck_assert_float_eq(coh_schedule_late_rate(&schedule, 0, 8), 0.0625f);
    ck_assert_float_eq_tol(coh_schedule_late_rate(&schedule, 2 * EPOCH, 5),
                           0.01f, 1e-8f);
}
END_TEST

START_TEST(staleness_does_not_matter_unless_asked_for)
{
    const coh_schedule schedule = schedule_of("schedule: constant");

    ck_assert_float_eq(coh_schedule_late_rate(&schedule, 0, 8), 0.5f);
}
END_TEST

/* groups: 4 with momentum 0.75 is no momentum, and the rate x 4. */
START_TEST(momentum_auto_raises_the_whole_schedule)
{
    const char *set[] = { "groups=4", "servers=1" };
    coh_config *config = config_of_sets(
        DATA MODEL "train: {epochs: 8}\n"
                   "optimizer: {rate: 0.5, momentum: 0.75, momentum_auto: "
                   "true, schedule: cosine, final_rate: 0.25, warmup: 1}\n",
        set, 2);
    const coh_schedule schedule = coh_schedule_of(config, EPOCH, STEP);

    expect(&schedule, 0, 2.0 * STEP / EPOCH);
    expect(&schedule, EPOCH, 2);
    expect(&schedule, 8 * EPOCH, 1);
    coh_config_destroy(&config);
}
END_TEST

static Suite *schedule_suite(void)
{
    Suite *suite = suite_create("schedule");
    TCase *core = tcase_create("core");
    tcase_add_test(core, a_constant_rate_stays);
    tcase_add_test(core,
                   steps_multiply_the_rate_when_their_samples_have_been_seen);
    tcase_add_test(core, the_clock_goes_beyond_32_bits);
    tcase_add_test(core, a_cosine_falls_from_the_rate_to_the_final_rate);
    tcase_add_test(core, a_cosine_begins_when_the_warmup_ends);
    tcase_add_test(core, the_warmup_rises_from_the_first_step_on);
    tcase_add_test(core, a_warmup_shorter_than_a_step_never_exceeds_the_rate);
    tcase_add_test(core, the_number_of_groups_does_not_change_the_schedule);
    tcase_add_loop_test(core, the_total_is_what_epochs_and_steps_train_on, 0,
                        TOTALS);
    tcase_add_test(core, a_late_gradient_has_the_rate_divided_by_its_staleness);
    tcase_add_test(core, staleness_does_not_matter_unless_asked_for);
    tcase_add_test(core, momentum_auto_raises_the_whole_schedule);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(schedule_suite)
