/* test_updates.c - updates by several threads, and what late ones are corrected
 * by (src/server/updates.h, sent.h). No MPI. */
#include "server/updates.h"

#include <string.h>

#include "server/sent.h"
#include "support/check_run.h"

/* 40 blocks of 100, the last of 1. */
enum { BLOCK = 100, NBLOCKS = 40, PARAMETERS = 39 * BLOCK + 1, GROUPS = 3 };

static const coh_plan plan = { .groups = GROUPS,
                               .group_size = 1,
                               .servers = 1,
                               .owners = 1,
                               .parameters = PARAMETERS,
                               .nblocks = NBLOCKS,
                               .block_count = BLOCK };
static const coh_rule rule = { .kind = COH_RULE_SGD, .momentum = 0.9f };
static const coh_schedule schedule = { .kind = COH_SCHEDULE_CONSTANT,
                                       .rate = 0.1 };
static const coh_statistics no_statistics;
static float values[PARAMETERS], gradients[GROUPS][PARAMETERS];
static coh_push pushes[GROUPS][NBLOCKS];
static coh_shard *shard, *twin; /* the twin is updated one by one */
static coh_updates *updates;

static coh_shard *shard_of(void)
{
    coh_err err = COH_ERR_INIT;
    coh_shard *out = NULL;

    ck_assert_int_eq(coh_shard_new(&plan, 0, &rule, &no_statistics, &out, &err),
                     COH_OK);
    coh_shard_load(out, values);
    return out;
}

static void setup(void)
{
    for (int i = 0; i < PARAMETERS; i++) {
        values[i] = (float)i / 7;
        for (int g = 0; g < GROUPS; g++)
            gradients[g][i] = (float)(i % (11 + g)) - 5;
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int b = 0; b < NBLOCKS; b++)
            pushes[g][b] =
                (coh_push){ .group = g, .block = b, .weight = 2 + g };
    }
    shard = shard_of();
    twin = shard_of();
    updates = coh_updates_new(&plan, &schedule, shard, 2);
    ck_assert_ptr_nonnull(updates);
}

static void teardown(void)
{
    coh_updates_destroy(&updates);
    coh_shard_destroy(&shard);
    coh_shard_destroy(&twin);
}

static void expect_twins(void)
{
    ck_assert_mem_eq(coh_shard_values(shard), coh_shard_values(twin),
                     sizeof values);
    ck_assert_mem_eq(coh_shard_versions(shard), coh_shard_versions(twin),
                     NBLOCKS * sizeof(int64_t));
}

/* More than fit at once, and a block again before the first was made. */
START_TEST(updates_of_many_blocks_are_those_made_one_by_one)
{
    for (int i = 0; i < 2 * NBLOCKS + 7; i++) {
        const int g = i % GROUPS,
                  b = i % 9 == 8 ? (i - 1) % NBLOCKS : i % NBLOCKS;
        const float *gradient = gradients[g] + (int64_t)b * BLOCK;
        coh_updates_add(updates,
                        (coh_update){ &pushes[g][b], gradient, NULL, 0, NULL });
        ck_assert(coh_updates_has(updates, b));
        coh_shard_apply(twin, b, gradient, 2 + g, 0.1f);
    }
    coh_updates_run(updates);
    ck_assert(!coh_updates_has(updates, 6));
    expect_twins();
    coh_updates_run(updates); /* of none */
    expect_twins();
}
END_TEST

/* What a group gives to a block, for sync; weight 0: nothing that counts. */
static void gather_block(int b, double weight, coh_gathered items[GROUPS])
{
    for (int g = 0; g < GROUPS; g++) {
        pushes[g][b].weight = weight;
        items[g] = (coh_gathered){ &pushes[g][b],
                                   gradients[g] + (int64_t)b * BLOCK, NULL };
    }
}

START_TEST(the_pushes_of_all_groups_make_one_update)
{
    coh_gathered items[2][GROUPS];
    float sum[BLOCK];

    for (int i = 0; i < BLOCK; i++)
        sum[i] = gradients[0][BLOCK + i] + gradients[1][BLOCK + i] +
                 gradients[2][BLOCK + i];
    coh_shard_apply(twin, 1, sum, 15, 0.1f);

    gather_block(1, 5, items[0]);
    gather_block(2, 0, items[1]);
    coh_updates_add(updates,
                    (coh_update){ &pushes[2][1], NULL, items[0], 0, NULL });
    coh_updates_add(updates,
                    (coh_update){ &pushes[0][2], NULL, items[1], 0, NULL });
    coh_updates_run(updates);
    expect_twins();
}
END_TEST

/* Each group's gradient is corrected for what the others did since it was
 * answered: a plain loop in double precision. */
START_TEST(a_late_push_is_corrected_by_what_its_group_was_sent)
{
    enum { FIRST = 3, STEPS = 20 }; /* of the block; late by two others */
    const coh_rule late = { .kind = COH_RULE_DCASGD, .compensation = 0.125f };
    static double w[BLOCK], seen[GROUPS][BLOCK];
    coh_err err = COH_ERR_INIT;
    coh_shard *own = NULL;

    ck_assert_int_eq(coh_shard_new(&plan, 0, &late, &no_statistics, &own, &err),
                     COH_OK);
    coh_shard_load(own, values);
    coh_sent *sent = coh_sent_new(&plan, 0, own);
    coh_updates *due = coh_updates_new(&plan, &schedule, own, 1);
    for (int i = 0; i < BLOCK; i++)
        w[i] = (double)values[FIRST * BLOCK + i];
    for (int g = 0; g < GROUPS; g++) {
        coh_sent_take(sent, g, FIRST);
        memcpy(seen[g], w, sizeof w);
    }
    for (int t = 0; t < STEPS; t++) {
        const int g = t % GROUPS;
        coh_updates_add(
            due, (coh_update){ &pushes[g][FIRST], gradients[g], NULL, 0,
                               coh_sent_of(sent, g, FIRST,
                                           t < GROUPS ? 0 : t - GROUPS + 1) });
        coh_updates_run(due);
        coh_sent_take(sent, g, FIRST);
        for (int i = 0; i < BLOCK; i++) {
            const double d = (double)gradients[g][i] / (2 + g);
            w[i] -= 0.1 * (d + 0.125 * d * d * (w[i] - seen[g][i]));
        }
        memcpy(seen[g], w, sizeof w);
    }
    for (int i = 0; i < BLOCK; i++)
        ck_assert_double_eq_tol((double)coh_shard_block(own, FIRST)[i], w[i],
                                1e-4);
    coh_updates_destroy(&due);
    coh_sent_destroy(&sent);
    coh_shard_destroy(&own);
}
END_TEST

START_TEST(groups_and_blocks_have_copies_of_their_own)
{
    coh_sent *sent = coh_sent_new(&plan, 0, shard), *none = NULL;
    const int last = NBLOCKS - 1; /* shorter */

    ck_assert_ptr_nonnull(sent);
    for (int b = 0; b < NBLOCKS; b++)
        coh_sent_take(sent, b % 2, b);
    coh_shard_block(shard, 6)[0] += 1;
    coh_sent_take(sent, 2, 6);
    ck_assert_mem_eq(coh_sent_of(sent, 0, 6, 0), values + 6 * BLOCK, BLOCK * 4);
    ck_assert_mem_eq(coh_sent_of(sent, 1, 7, 0), values + 7 * BLOCK, BLOCK * 4);
    ck_assert_float_eq(coh_sent_of(sent, 1, last, 0)[0],
                       values[PARAMETERS - 1]);
    ck_assert_float_eq(coh_sent_of(sent, 2, 6, 0)[0], values[6 * BLOCK] + 1);
    ck_assert_float_eq(coh_sent_of(sent, 2, 7, 0)[0], 0);
    coh_sent_take(none, 0, 0);
    ck_assert_ptr_null(coh_sent_of(none, 0, 0, 0));
    coh_sent_destroy(&sent);
    coh_sent_destroy(&none);
}
END_TEST

static Suite *updates_suite(void)
{
    Suite *suite = suite_create("updates");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, updates_of_many_blocks_are_those_made_one_by_one);
    tcase_add_test(core, the_pushes_of_all_groups_make_one_update);
    tcase_add_test(core, a_late_push_is_corrected_by_what_its_group_was_sent);
    tcase_add_test(core, groups_and_blocks_have_copies_of_their_own);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(updates_suite)
