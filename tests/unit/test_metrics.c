/* test_metrics.c - accuracy, loss, area under the ROC curve
 * (src/common/metrics.h). No MPI. */
#include "common/metrics.h"

#include <math.h>
#include <stdbool.h>

#include "common/rng.h"
#include "support/check_run.h"

enum { N = 400 };

/* The definition: every pair of a one and a zero. */
static double plain_auc(const coh_score *s, int n)
{
    double won = 0, all = 0;

    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (!(s[i].label > 0.5f) || s[j].label > 0.5f)
                continue;
            const double w = (double)s[i].weight * (double)s[j].weight;
            all += w;
            won += w * (s[i].score > s[j].score    ? 1
                        : s[i].score == s[j].score ? 0.5
                                                   : 0);
        }
    }
    return won / all;
}

/* `levels` different scores: few make many ties. */
static void make_scores(coh_score *out, int n, int levels, bool has_weights)
{
    const coh_rng_key key = coh_rng_key_of(11, 0);

    for (int i = 0; i < n; i++) {
        uint32_t word[4];
        coh_rng_words(key, (uint32_t)levels, (uint64_t)i, 0, word);
        out[i].label = word[0] % 3 == 0;
        out[i].score =
            (float)(word[1] % (uint32_t)levels) + 0.5f * out[i].label;
        out[i].weight = has_weights ? coh_rng_uniform(word[2]) : 1;
    }
}

static const struct {
    int levels;
    bool has_weights;
} cases[] = { { 1000000, false }, { 1000000, true }, { 5, false },
              { 5, true },        { 1, false },      { 1, true } };
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(the_auc_is_the_share_of_pairs_in_order)
{
    coh_score scores[N];

    make_scores(scores, N, cases[_i].levels, cases[_i].has_weights);
    const double want = plain_auc(scores, N);
    ck_assert_double_eq_tol(coh_auc(scores, N), want, 1e-12);
}
END_TEST

START_TEST(the_auc_of_perfect_and_of_inverted_scores_is_1_and_0)
{
    coh_score good[] = { { 3, 1, 1 }, { -1, 0, 1 }, { 2, 1, 1 }, { 0, 0, 1 } };
    coh_score bad[] = { { -3, 1, 1 }, { 1, 0, 1 }, { -2, 1, 1 }, { 0, 0, 1 } };

    ck_assert_double_eq(coh_auc(good, 4), 1);
    ck_assert_double_eq(coh_auc(bad, 4), 0);
}
END_TEST

START_TEST(without_one_of_the_classes_there_is_no_auc)
{
    coh_score ones[] = { { 1, 1, 1 }, { 2, 1, 1 } };
    coh_score weightless[] = { { 1, 1, 1 }, { 2, 0, 0 } };

    ck_assert_double_eq(coh_auc(ones, 2), -1);
    ck_assert_double_eq(coh_auc(weightless, 2), -1);
    ck_assert_double_eq(coh_auc(ones, 0), -1);
}
END_TEST

START_TEST(negative_weights_count_as_in_the_definition)
{
    coh_score scores[] = {
        { 1, 1, 2 }, { 2, 1, -0.5f }, { 0, 0, 1 }, { 1.5f, 0, 3 }, { 3, 0, -1 }
    };

    const double want = plain_auc(scores, 5);
    ck_assert_double_eq_tol(coh_auc(scores, 5), want, 1e-12);
}
END_TEST

START_TEST(scores_that_are_no_numbers_rank_lowest_and_do_not_hang)
{
    coh_score mixed[] = {
        { NAN, 0, 1 }, { 1, 1, 1 }, { NAN, 0, 1 }, { -INFINITY, 1, 1 }
    };
    coh_score none[] = { { NAN, 0, 1 }, { NAN, 1, 1 } };

    ck_assert_double_eq(coh_auc(mixed, 4), 1);
    ck_assert_double_eq(coh_auc(none, 2), 0.5);
}
END_TEST

START_TEST(sums_count_the_right_ones_by_weight)
{
    const float first[3] = { -2, -0.25f, -4 };
    const float second[3] = { -0.5f, -1, -8 };
    coh_sums sums = { 0 };

    coh_sums_add(&sums, first, 3, 1, 2);
    coh_sums_add(&sums, second, 3, 2, 4);
    ck_assert_double_eq(sums.correct, 2);
    ck_assert_double_eq(sums.weight, 6);
}
END_TEST

START_TEST(the_best_is_chosen_by_the_auc_where_there_is_one)
{
    ck_assert_double_eq(coh_metrics_score(0.9, 0.6, 3), 0.6);
    ck_assert_double_eq(coh_metrics_score(0.9, -1, 3), 0.9);
    ck_assert_double_eq(coh_metrics_score(-1, -1, 3), 0.25);
}
END_TEST

static Suite *metrics_suite(void)
{
    Suite *suite = suite_create("metrics");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, the_auc_is_the_share_of_pairs_in_order, 0, CASES);
    tcase_add_test(core, the_auc_of_perfect_and_of_inverted_scores_is_1_and_0);
    tcase_add_test(core, sums_count_the_right_ones_by_weight);
    tcase_add_test(core, the_best_is_chosen_by_the_auc_where_there_is_one);
    suite_add_tcase(suite, core);

    TCase *edges = tcase_create("edges");
    tcase_add_test(edges, without_one_of_the_classes_there_is_no_auc);
    tcase_add_test(edges, negative_weights_count_as_in_the_definition);
    tcase_add_test(edges,
                   scores_that_are_no_numbers_rank_lowest_and_do_not_hang);
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(metrics_suite)
