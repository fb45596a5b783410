/* test_statistics.c - which parameters are running statistics
 * (src/common/statistics.h). No MPI. */
#include "common/statistics.h"

#include <stddef.h>

#include "support/check_run.h"

static coh_statistic items[] = { { 4, 2, 0.5 }, { 6, 1, 0.9 }, { 10, 5, 0 } };
static const coh_statistics three = { 3, items };

/* first and end of what is asked; how many are alike, and of which, -1: none. */
static const struct {
    int first, end, count, item;
} runs[] = {
    { 0, 20, 4, -1 },  { 3, 20, 1, -1 }, { 0, 2, 2, -1 },  { 4, 20, 2, 0 },
    { 5, 20, 1, 0 },   { 4, 5, 1, 0 },   { 6, 20, 1, 1 },  { 7, 20, 3, -1 },
    { 10, 20, 5, 2 },  { 12, 14, 2, 2 }, { 14, 20, 1, 2 }, { 15, 20, 5, -1 },
    { 19, 20, 1, -1 },
};

START_TEST(a_run_ends_where_the_kind_of_parameter_changes)
{
    const coh_statistic *statistic = &items[1];

    ck_assert_int_eq(
        coh_statistics_run(&three, runs[_i].first, runs[_i].end, &statistic),
        runs[_i].count);
    ck_assert_ptr_eq(statistic,
                     runs[_i].item < 0 ? NULL : &items[runs[_i].item]);
}
END_TEST

START_TEST(without_statistics_all_are_trained)
{
    const coh_statistics none = { 0 };
    const coh_statistic *statistic = &items[0];

    ck_assert_int_eq(coh_statistics_run(&none, 3, 20, &statistic), 17);
    ck_assert_ptr_null(statistic);
}
END_TEST

static Suite *statistics_suite(void)
{
    Suite *suite = suite_create("statistics");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, a_run_ends_where_the_kind_of_parameter_changes, 0,
                        sizeof runs / sizeof runs[0]);
    tcase_add_test(core, without_statistics_all_are_trained);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(statistics_suite)
