/* test_merge.c - the reports of one step as one (src/common/merge.h). */
#include "common/merge.h"

#include "support/check_run.h"

static coh_merge merge;

static void setup(void)
{
    merge = (coh_merge){ 0 };
}

static bool add(int64_t step, int64_t group, double weight, coh_report *out,
                int64_t *groups)
{
    const coh_report r = { .kind = COH_GRANT_TRAIN,
                           .group = group,
                           .step = step,
                           .samples = (int64_t)weight,
                           .loss = 3 * weight,
                           .losses = { weight, 2 * weight },
                           .weight = weight,
                           .gradient_norm = weight,
                           .compute_s = 1 + (double)group,
                           .wait_s = 2 };
    return coh_merge_add(&merge, &r, out, groups);
}

START_TEST(sums_are_added_and_times_averaged)
{
    coh_report all = { 0 };
    int64_t groups = 0;

    coh_merge_expect(&merge, 7, 3);
    coh_merge_expect(&merge, 7, 3);
    ck_assert(!add(7, 2, 4, &all, &groups));
    ck_assert(!add(7, 0, 8, &all, &groups));
    ck_assert(add(7, 1, 6, &all, &groups));
    ck_assert_int_eq(groups, 3);
    ck_assert_int_eq(all.step, 7);
    ck_assert_int_eq(all.samples, 18);
    ck_assert_double_eq(all.loss, 54);
    ck_assert_double_eq(all.weight, 18);
    ck_assert_double_eq(all.losses[1], 36);
    ck_assert_double_eq_tol(all.gradient_norm, 6, 1e-12);
    ck_assert_double_eq_tol(all.compute_s, 2, 1e-12);
    ck_assert_double_eq_tol(all.wait_s, 2, 1e-12);
}
END_TEST

START_TEST(steps_under_way_are_kept_apart)
{
    coh_report all = { 0 };
    int64_t groups = 0;

    for (int64_t step = 0; step < 100; step++) {
        coh_merge_expect(&merge, step, 2);
        ck_assert(!add(step, 0, 1, &all, &groups));
        if (step < 3)
            continue;
        ck_assert(add(step - 3, 1, 1, &all, &groups));
        ck_assert_int_eq(all.step, step - 3);
        ck_assert_int_eq(all.samples, 2);
    }
}
END_TEST

static Suite *merge_suite(void)
{
    Suite *suite = suite_create("merge");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, sums_are_added_and_times_averaged);
    tcase_add_test(core, steps_under_way_are_kept_apart);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(merge_suite)
