/* test_updates.c - updates by several threads (src/server/updates.h). No MPI.
 */
#include "server/updates.h"

#include <string.h>

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
                        (coh_update){ &pushes[g][b], gradient, NULL, 0 });
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
    coh_updates_add(updates, (coh_update){ &pushes[2][1], NULL, items[0], 0 });
    coh_updates_add(updates, (coh_update){ &pushes[0][2], NULL, items[1], 0 });
    coh_updates_run(updates);
    expect_twins();
}
END_TEST

static Suite *updates_suite(void)
{
    Suite *suite = suite_create("updates");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, updates_of_many_blocks_are_those_made_one_by_one);
    tcase_add_test(core, the_pushes_of_all_groups_make_one_update);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(updates_suite)
