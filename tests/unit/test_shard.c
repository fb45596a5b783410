/* test_shard.c - parameters with their state and versions
 * (src/common/optim/shard.h). No MPI. */
#include "common/optim/shard.h"

#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "support/check_run.h"

/* 4 blocks of 16 and one of 3. */
enum { PARAMETERS = 67, BLOCK = 16, NBLOCKS = 5 };

static coh_plan plan_of(int servers)
{
    return (coh_plan){ .groups = 1,
                       .group_size = 1,
                       .servers = servers,
                       .owners = servers,
                       .parameters = PARAMETERS,
                       .nblocks = NBLOCKS,
                       .block_count = BLOCK };
}

static const coh_rule rules[] = {
    { .kind = COH_RULE_SGD, .momentum = 0.9f, .weight_decay = 0.01f },
    { .kind = COH_RULE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f },
    { .kind = COH_RULE_LARS, .momentum = 0.5f, .trust = 0.5f },
    { .kind = COH_RULE_LAMB, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f },
};
static const coh_rule late = { .kind = COH_RULE_DCASGD_A,
                               .compensation = 2,
                               .momentum = 0.5f,
                               .beta2 = 0.75f,
                               .epsilon = 1e-4f };

static const coh_statistics no_statistics;
static float values[PARAMETERS], gradient[PARAMETERS];
static coh_err err;

static void setup(void)
{
    err = COH_ERR_INIT;
    for (int i = 0; i < PARAMETERS; i++) {
        values[i] = (float)i;
        gradient[i] = 0.25f * (float)(i % 7) - 1;
    }
}

static coh_shard *shard_of(const coh_plan *plan, int server,
                           const coh_rule *rule)
{
    coh_shard *shard = NULL;

    ck_assert_int_eq(
        coh_shard_new(plan, server, rule, &no_statistics, &shard, &err),
        COH_OK);
    return shard;
}

START_TEST(a_new_shard_is_zero_at_version_0)
{
    const coh_plan plan = plan_of(2);
    coh_shard *shard = shard_of(&plan, 1, &rules[1]);

    ck_assert_int_eq(coh_shard_count(shard), 2 * BLOCK);
    ck_assert_int_eq(coh_shard_nblocks(shard), 2);
    ck_assert_int_eq(coh_shard_nslots(shard), 2);
    for (int i = 0; i < 2 * BLOCK; i++) {
        ck_assert_float_eq(coh_shard_values(shard)[i], 0);
        ck_assert_float_eq(coh_shard_slot(shard, 0)[i], 0);
        ck_assert_float_eq(coh_shard_slot(shard, 1)[i], 0);
    }
    ck_assert_int_eq(coh_shard_version(shard, 1), 0);
    ck_assert_int_eq(coh_shard_version(shard, 3), 0);
    coh_shard_destroy(&shard);
    coh_shard_destroy(&shard); /* twice is once */
    ck_assert_ptr_null(shard);
}
END_TEST

START_TEST(load_takes_the_owned_blocks)
{
    const coh_plan plan = plan_of(2);
    coh_shard *shard = shard_of(&plan, 0, &rules[0]);

    coh_shard_load(shard, values);
    ck_assert_int_eq(coh_shard_count(shard), 2 * BLOCK + 3);
    ck_assert_mem_eq(coh_shard_block(shard, 0), values, BLOCK * 4);
    ck_assert_mem_eq(coh_shard_block(shard, 2), values + 32, BLOCK * 4);
    ck_assert_mem_eq(coh_shard_block(shard, 4), values + 64, 3 * 4);
    ck_assert_ptr_eq(coh_shard_block(shard, 2),
                     coh_shard_values(shard) + BLOCK);
    coh_shard_destroy(&shard);
}
END_TEST

START_TEST(load_forgets_state_and_versions)
{
    const coh_plan plan = plan_of(0);
    coh_shard *shard = shard_of(&plan, -1, &rules[0]);

    coh_shard_load(shard, values);
    coh_shard_apply(shard, 1, gradient, 1, 0.5f);
    coh_shard_load(shard, values);
    ck_assert_int_eq(coh_shard_version(shard, 1), 0);
    ck_assert_float_eq(coh_shard_slot(shard, 0)[BLOCK], 0);
    ck_assert_mem_eq(coh_shard_values(shard), values, sizeof values);
    coh_shard_destroy(&shard);
}
END_TEST

START_TEST(apply_changes_only_the_block_named)
{
    const coh_plan plan = plan_of(0);
    coh_shard *shard = shard_of(&plan, -1, &rules[_i]);

    coh_shard_load(shard, values);
    coh_shard_apply(shard, 3, gradient, 2, 0.5f);
    for (int b = 0; b < NBLOCKS; b++)
        ck_assert_int_eq(coh_shard_version(shard, b), b == 3);
    for (int i = 0; i < PARAMETERS; i++) {
        const bool inside = i >= 3 * BLOCK && i < 4 * BLOCK;
        ck_assert(inside || coh_shard_values(shard)[i] == values[i]);
        ck_assert(inside || coh_shard_slot(shard, 0)[i] == 0);
    }
    ck_assert_float_ne(coh_shard_values(shard)[3 * BLOCK], values[3 * BLOCK]);
    coh_shard_destroy(&shard);
}
END_TEST

START_TEST(the_short_last_block_ends_where_the_vector_ends)
{
    const coh_plan plan = plan_of(0);
    coh_shard *shard = shard_of(&plan, -1, &rules[1]);

    coh_shard_apply(shard, 4, gradient, 1, 0.5f); /* under ASan: no overrun */
    ck_assert_int_eq(coh_shard_version(shard, 4), 1);
    coh_shard_destroy(&shard);
}
END_TEST

/* Exact in float32: 8 - 0.5 x (6 / 3). */
START_TEST(the_gradient_is_a_sum_over_the_weight)
{
    const coh_plan plan = plan_of(0);
    const coh_rule plain = { .kind = COH_RULE_SGD };
    coh_shard *shard = shard_of(&plan, -1, &plain);
    float sum[BLOCK] = { 8 };

    coh_shard_load(shard, values);
    coh_shard_apply(shard, 1, sum, 4, 0.5f);
    ck_assert_float_eq(coh_shard_block(shard, 1)[0], BLOCK - 0.5f * 2);
    coh_shard_destroy(&shard);
}
END_TEST

/* The first update of Adam, t = 1, is the rate against the sign. */
START_TEST(the_first_update_of_a_block_is_its_first)
{
    const coh_plan plan = plan_of(0);
    coh_shard *shard = shard_of(&plan, -1, &rules[1]);
    float sum[BLOCK] = { 8 };

    coh_shard_apply(shard, 0, sum, 4, 0.5f);
    coh_shard_apply(shard, 2, sum, 4, 0.5f);
    ck_assert_float_eq_tol(coh_shard_block(shard, 0)[0], -0.5f, 1e-6f);
    ck_assert_float_eq_tol(coh_shard_block(shard, 2)[0], -0.5f, 1e-6f);
    coh_shard_destroy(&shard);
}
END_TEST

/* The servers' parts together are what one owner of all would have. */
START_TEST(two_servers_update_as_one_does)
{
    const coh_plan one = plan_of(0), two = plan_of(2);
    coh_shard *whole = shard_of(&one, -1, &rules[_i]);
    coh_shard *parts[2] = { shard_of(&two, 0, &rules[_i]),
                            shard_of(&two, 1, &rules[_i]) };

    coh_shard_load(whole, values);
    coh_shard_load(parts[0], values);
    coh_shard_load(parts[1], values);
    for (int t = 0; t < 5; t++) {
        for (int b = NBLOCKS - 1; b >= 0; b--) {
            const coh_range range = coh_plan_block(&one, b);
            coh_shard_apply(whole, b, gradient + range.first, 3, 0.1f);
            coh_shard_apply(parts[b % 2], b, gradient + range.first, 3, 0.1f);
        }
    }
    for (int b = 0; b < NBLOCKS; b++) {
        const size_t bytes = (size_t)coh_plan_block(&one, b).count * 4;
        ck_assert_mem_eq(coh_shard_block(whole, b),
                         coh_shard_block(parts[b % 2], b), bytes);
        ck_assert_int_eq(coh_shard_version(parts[b % 2], b), 5);
    }
    coh_shard_destroy(&whole);
    coh_shard_destroy(&parts[0]);
    coh_shard_destroy(&parts[1]);
}
END_TEST

/* Parts of blocks 0 to 2, and of 2 and 3. */
static coh_statistic averages[] = { { 10, 25, 0.75 }, { 40, 9, 0.5 } };
static const coh_statistics some = { 2, averages };

static const coh_statistic *average_of(int i)
{
    for (int k = 0; k < some.count; k++)
        if (i >= averages[k].first && i < averages[k].first + averages[k].count)
            return &averages[k];
    return NULL;
}

/* w = momentum w + (1 - momentum) mean, whatever the rule, its rate, state and
 * weight decay; the others as if there were no statistics. */
START_TEST(running_statistics_are_averages_whatever_the_rule)
{
    const coh_plan plan = plan_of(0);
    coh_shard *shard = NULL, *plain = shard_of(&plan, -1, &rules[_i]);

    ck_assert_int_eq(coh_shard_new(&plan, -1, &rules[_i], &some, &shard, &err),
                     COH_OK);
    coh_shard_load(shard, values);
    coh_shard_load(plain, values);
    for (int t = 0; t < 3; t++)
        for (int b = 0; b < NBLOCKS; b++) {
            const float *g = gradient + coh_plan_block(&plan, b).first;
            coh_shard_apply(shard, b, g, 4, 0.1f);
            coh_shard_apply(plain, b, g, 4, 0.1f);
        }
    for (int i = 0; i < PARAMETERS; i++) {
        const coh_statistic *it = average_of(i);
        const float got = coh_shard_values(shard)[i];
        double want = (double)values[i];
        if (it == NULL) {
            ck_assert(got == coh_shard_values(plain)[i]);
            continue;
        }
        for (int t = 0; t < 3; t++)
            want = it->momentum * want +
                   (1 - it->momentum) * (double)gradient[i] / 4;
        ck_assert_double_eq_tol((double)got, want, 1e-5);
        ck_assert(coh_shard_slot(shard, 0)[i] == 0);
    }
    coh_shard_destroy(&shard);
    coh_shard_destroy(&plain);
}
END_TEST

/* Statistics are what was measured, however long ago; the others are those of a
 * call for all parameters of a block. */
START_TEST(a_late_gradient_is_corrected_and_late_statistics_are_not)
{
    const coh_plan plan = plan_of(0);
    const coh_range range = coh_plan_block(&plan, 1);
    coh_shard *shard = NULL, *timely = NULL;
    float w[BLOCK], seen[BLOCK], slots[2][BLOCK] = { 0 };
    float *const both[COH_SLOTS_MAX] = { slots[0], slots[1] };

    ck_assert_int_eq(coh_shard_new(&plan, -1, &late, &some, &shard, &err),
                     COH_OK);
    ck_assert_int_eq(coh_shard_new(&plan, -1, &late, &some, &timely, &err),
                     COH_OK);
    coh_shard_load(shard, values);
    coh_shard_load(timely, values);
    for (int i = 0; i < BLOCK; i++) {
        w[i] = values[range.first + i];
        seen[i] = 0.5f * w[i];
    }
    for (int t = 1; t <= 3; t++) {
        coh_shard_apply_late(shard, 1, gradient, seen, 4, 0.1f);
        coh_shard_apply(timely, 1, gradient, 4, 0.1f);
        coh_rule_apply_late(&late, 0.1f, t, BLOCK, gradient, 0.25f, seen, w,
                            both);
    }
    for (int i = 0; i < BLOCK; i++) {
        const float got = coh_shard_block(shard, 1)[i];
        const bool is_average = average_of((int)range.first + i) != NULL;
        const float other = coh_shard_block(timely, 1)[i];
        ck_assert(got == (is_average ? other : w[i]));
        ck_assert(is_average || gradient[i] == 0 || got != other);
    }
    ck_assert_int_eq(coh_shard_version(shard, 1), 3);
    coh_shard_destroy(&shard);
    coh_shard_destroy(&timely);
}
END_TEST

/* Layers of 40, 10 and 17 parameters, the second with 4 statistics at its end,
 * and the plans that have them whole. */
static coh_statistic last_four[] = { { 46, 4, 0.75 } };
static const coh_statistics of_second = { 1, last_four };
static coh_layer three[] = {
    { .weight_count = 30, .bias_count = 10 },
    { .weight_count = 3, .bias_count = 3, .statistic_count = 4 },
    { .weight_count = 17 },
};

static coh_plan plan_of_layers(int servers)
{
    const coh_model model = { .nlayers = 3,
                              .layers = three,
                              .parameters = PARAMETERS };
    coh_config config = { .groups = 1, .group_size = 1, .servers = servers };
    coh_plan plan;

    config.train.batch = config.train.accumulate = 1;
    config.exchange.block = 65536;
    config.exchange.placement = COH_PLACEMENT_LAYER;
    ck_assert_int_eq(coh_plan_make(&config, &model, 0, &plan, &err), COH_OK);
    return plan;
}

/* What one call for the layer's weights and bias does, and the average. */
static void expect_layer(const coh_rule *rule, const float *got,
                         coh_range range, int64_t statistics)
{
    const int64_t n = range.count - statistics;
    float w[PARAMETERS], m[PARAMETERS] = { 0 }, v[PARAMETERS] = { 0 };
    float *const slots[COH_SLOTS_MAX] = { m, v };

    memcpy(w, values + range.first, (size_t)range.count * sizeof *w);
    for (int t = 1; t <= 3; t++) {
        coh_rule_apply(rule, 0.1f, t, n, gradient + range.first, 0.25f, w,
                       slots);
        coh_rule_average(0.75f, statistics, gradient + range.first + n, 0.25f,
                         w + n);
    }
    ck_assert_mem_eq(got, w, (size_t)range.count * sizeof *w);
}

START_TEST(a_layer_is_updated_as_one_wherever_it_lies)
{
    const int64_t statistics[] = { 0, 4, 0 };

    for (int servers = 0; servers <= 3; servers++) {
        coh_plan plan = plan_of_layers(servers);
        for (int b = 0; b < 3; b++) {
            const int owner = servers > 0 ? coh_plan_owner(&plan, b) : -1;
            const coh_range range = coh_plan_block(&plan, b);
            coh_shard *shard = NULL;
            ck_assert_int_eq(coh_shard_new(&plan, owner, &rules[_i], &of_second,
                                           &shard, &err),
                             COH_OK);
            coh_shard_load(shard, values);
            for (int t = 0; t < 3; t++)
                coh_shard_apply(shard, b, gradient + range.first, 4, 0.1f);
            expect_layer(&rules[_i], coh_shard_block(shard, b), range,
                         statistics[b]);
            coh_shard_destroy(&shard);
        }
        coh_plan_fini(&plan);
    }
}
END_TEST

/* Two layers of one server lie one behind the other, with nothing between. */
START_TEST(blocks_of_any_size_fill_the_vectors)
{
    coh_plan plan = plan_of_layers(2); /* 40; 17 and 10 */
    coh_shard *shard = shard_of(&plan, 1, &rules[1]);

    coh_shard_load(shard, values);
    ck_assert_int_eq(coh_shard_count(shard), 27);
    ck_assert_mem_eq(coh_shard_values(shard), values + 40, 27 * 4);
    ck_assert_ptr_eq(coh_shard_block(shard, 2), coh_shard_values(shard) + 10);
    coh_shard_destroy(&shard);
    coh_plan_fini(&plan);
}
END_TEST

START_TEST(a_server_may_own_nothing)
{
    const coh_plan plan = plan_of(9);
    coh_shard *empty = shard_of(&plan, 7, &rules[1]);

    coh_shard_load(empty, values);
    ck_assert_int_eq(coh_shard_count(empty), 0);
    ck_assert_int_eq(coh_shard_nblocks(empty), 0);
    coh_shard_destroy(&empty);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* which ends the process instead */
START_TEST(memory_that_is_not_there_is_a_failure)
{
    coh_plan plan = plan_of(0);
    coh_shard *none = NULL;
    plan.parameters = plan.block_count = (int64_t)1 << 45;
    plan.nblocks = 1;

    ck_assert_int_eq(
        coh_shard_new(&plan, -1, &rules[0], &no_statistics, &none, &err),
        COH_E_NOMEM);
    ck_assert_ptr_null(none);
}
END_TEST
#endif

static Suite *shard_suite(void)
{
    Suite *suite = suite_create("shard");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, a_new_shard_is_zero_at_version_0);
    tcase_add_test(core, load_takes_the_owned_blocks);
    tcase_add_test(core, load_forgets_state_and_versions);
    tcase_add_loop_test(core, apply_changes_only_the_block_named, 0, 2);
    tcase_add_test(core, the_gradient_is_a_sum_over_the_weight);
    tcase_add_test(core, the_first_update_of_a_block_is_its_first);
    tcase_add_loop_test(core, two_servers_update_as_one_does, 0, 2);
    tcase_add_loop_test(core, running_statistics_are_averages_whatever_the_rule,
                        0, 2);
    tcase_add_test(core,
                   a_late_gradient_is_corrected_and_late_statistics_are_not);
    tcase_add_loop_test(core, a_layer_is_updated_as_one_wherever_it_lies, 0, 4);
    tcase_add_test(core, blocks_of_any_size_fill_the_vectors);
    suite_add_tcase(suite, core);

    TCase *edges = tcase_create("edges");
    tcase_add_checked_fixture(edges, setup, NULL);
    tcase_add_test(edges, the_short_last_block_ends_where_the_vector_ends);
    tcase_add_test(edges, a_server_may_own_nothing);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(edges, memory_that_is_not_there_is_a_failure);
#endif
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(shard_suite)
