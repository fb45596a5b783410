/* test_clip.c - clipping by the norm (src/common/optim/clip.h). No MPI. */
#include "common/optim/clip.h"

#include <math.h>
#include <string.h>

#include "common/optim/squares.h"
#include "support/check_run.h"

/* Parameters 100 to 174; 105 to 108 are statistics. */
enum { COUNT = 75, FIRST = 100, SPLIT = 33 };
static coh_statistic item = { 105, 4, 0.9 };
static const coh_statistics one = { 1, &item };
static float gradient[COUNT], before[COUNT];

static void setup(void)
{
    for (int i = 0; i < COUNT; i++)
        before[i] = gradient[i] = (float)(i % 9) - 3.7f;
}

static bool is_measured(int i)
{
    return i >= 5 && i < 9;
}

/* As slow and plain as can be. */
static double plain_norm(const float *x)
{
    double sum = 0;

    for (int i = 0; i < COUNT; i++)
        sum += is_measured(i) ? 0 : (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* In two blocks, as it would be sent. */
static void clip(double most)
{
    const coh_range low = { FIRST, SPLIT };
    const coh_range high = { FIRST + SPLIT, COUNT - SPLIT };
    double squares = 0;

    ck_assert(coh_squares_add(&one, high, gradient + SPLIT, &squares));
    ck_assert(coh_squares_add(&one, low, gradient, &squares));
    const double factor = coh_clip_factor(most, sqrt(squares));
    coh_clip(&one, high, factor, gradient + SPLIT);
    coh_clip(&one, low, factor, gradient);
}

START_TEST(a_long_gradient_becomes_as_long_as_allowed_and_keeps_its_direction)
{
    const double norm = plain_norm(before);

    clip(2.5);
    ck_assert_double_eq_tol(plain_norm(gradient), 2.5, 1e-6);
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq_tol(
            (double)gradient[i],
            (double)before[i] * (is_measured(i) ? 1 : 2.5 / norm), 1e-6);
}
END_TEST

START_TEST(statistics_keep_their_bits)
{
    clip(1e-3);
    ck_assert_mem_eq(gradient + 5, before + 5, 4 * sizeof *before);
}
END_TEST

START_TEST(a_short_gradient_keeps_its_bits)
{
    clip(1.0001 * plain_norm(before));
    ck_assert_mem_eq(gradient, before, sizeof before);
}
END_TEST

START_TEST(nothing_is_as_short_as_it_can_be)
{
    ck_assert(coh_clip_factor(1e-300, 0) == 1);
    ck_assert(coh_clip_factor(3, 3) == 1);
    ck_assert(coh_clip_factor(3, 6) == 0.5);
}
END_TEST

static Suite *clip_suite(void)
{
    Suite *suite = suite_create("clip");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(
        core,
        a_long_gradient_becomes_as_long_as_allowed_and_keeps_its_direction);
    tcase_add_test(core, statistics_keep_their_bits);
    tcase_add_test(core, a_short_gradient_keeps_its_bits);
    tcase_add_test(core, nothing_is_as_short_as_it_can_be);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(clip_suite)
