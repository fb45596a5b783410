/* test_squares.c - the norm of a gradient (src/common/optim/squares.h). No MPI.
 */
#include "common/optim/squares.h"

#include <math.h>

#include "support/check_run.h"

/* A block that begins at parameter 100; 105 to 108 are statistics. Behind them
 * stand two rounds of partial sums and a rest. */
enum { COUNT = 75 };
static coh_statistic item = { 105, 4, 0.9 };
static const coh_statistics one = { 1, &item }, none = { 0 };
static const coh_range range = { 100, COUNT };
static float gradient[COUNT];

static void setup(void)
{
    for (int i = 0; i < COUNT; i++)
        gradient[i] = (float)(i - 7);
}

/* Small integers: exact. */
START_TEST(statistics_are_left_out)
{
    double all = 1, trained = 1, want = 1;

    ck_assert(coh_squares_add(&none, range, gradient, &all));
    ck_assert(coh_squares_add(&one, range, gradient, &trained));
    for (int i = 0; i < COUNT; i++)
        want += (i - 7) * (i - 7);
    ck_assert(all == want);
    ck_assert(trained == want - 2 * 2 - 1 - 0 - 1);
}
END_TEST

START_TEST(what_is_not_finite_is_told_wherever_it_is)
{
    double squares = 0;

    gradient[_i] = _i % 2 == 0 ? NAN : -INFINITY;
    ck_assert(!coh_squares_add(&one, range, gradient, &squares));
    ck_assert(!isfinite(squares));
}
END_TEST

static Suite *squares_suite(void)
{
    Suite *suite = suite_create("squares");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, statistics_are_left_out);
    tcase_add_loop_test(core, what_is_not_finite_is_told_wherever_it_is, 0,
                        COUNT);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(squares_suite)
