/* test_gather.c - policy sync: pushes that wait for each other
 * (src/server/gather.h). No MPI. */
#include "server/gather.h"

#include <string.h>

#include "support/check_run.h"

enum { GROUPS = 4, BLOCKS = 3, COUNT = 40001 };

static coh_gather *gather;
static coh_push pushes[BLOCKS][GROUPS];
static float gradients[BLOCKS][GROUPS][COUNT];

/* Numbers whose sum depends on the order. */
static void setup(void)
{
    gather = coh_gather_new(BLOCKS, GROUPS);
    ck_assert_ptr_nonnull(gather);
    for (int b = 0; b < BLOCKS; b++) {
        for (int g = 0; g < GROUPS; g++) {
            pushes[b][g] = (coh_push){ .group = g,
                                       .block = b,
                                       .step = 7,
                                       .groups = GROUPS,
                                       .weight = 1 + g };
            for (int i = 0; i < COUNT; i++)
                gradients[b][g][i] =
                    (float)(i + 1) / (float)(3 + b) * (g == 2 ? -1e5f : 1.1f);
        }
    }
}

static void teardown(void)
{
    coh_gather_destroy(&gather);
    ck_assert_ptr_null(gather);
    coh_gather_destroy(&gather);
}

static const coh_gathered *add(int block, int group)
{
    const coh_gathered item = { &pushes[block][group], gradients[block][group],
                                NULL };
    return coh_gather_add(gather, block, item);
}

static const int orders[][GROUPS] = {
    { 0, 1, 2, 3 }, { 3, 2, 1, 0 }, { 2, 0, 3, 1 }, { 1, 3, 0, 2 }
};

START_TEST(the_sum_does_not_depend_on_who_came_first)
{
    const coh_gathered *items = NULL;
    double weight;

    for (int i = 0; i < GROUPS; i++) {
        ck_assert_ptr_null(items);
        items = add(0, orders[_i][i]);
    }
    ck_assert_ptr_nonnull(items);
    const float *sum = coh_gather_sum(items, GROUPS, COUNT, 2, &weight);
    ck_assert_double_eq(weight, 1 + 2 + 3 + 4);
    for (int i = 0; i < COUNT; i++) {
        const float g = (float)(i + 1) / 3;
        const float want = g * 1.1f + g * 1.1f + g * -1e5f + g * 1.1f;
        ck_assert(memcmp(&sum[i], &want, sizeof want) == 0);
    }
}
END_TEST

/* Each group pushes the blocks in an order of its own. */
START_TEST(blocks_wait_apart_and_step_after_step)
{
    for (int step = 0; step < 5; step++) {
        int whole = 0;
        for (int i = 0; i < BLOCKS; i++) {
            for (int g = 0; g < GROUPS; g++) {
                const int b = (i + g) % BLOCKS;
                pushes[b][g].step = step;
                whole += add(b, g) != NULL;
            }
        }
        ck_assert_int_eq(whole, BLOCKS);
    }
}
END_TEST

START_TEST(a_push_without_samples_adds_nothing)
{
    const coh_gathered *items = NULL;
    double weight;

    pushes[0][0].weight = pushes[0][3].weight = 0;
    gradients[0][0][5] = gradients[0][3][5] = 1e30f;
    for (int g = 0; g < GROUPS; g++)
        items = add(0, g);
    const float want = gradients[0][1][5] + gradients[0][2][5];
    const float *sum = coh_gather_sum(items, GROUPS, COUNT, 2, &weight);
    ck_assert_double_eq(weight, 2 + 3);
    ck_assert(sum[5] == want);

    for (int g = 0; g < GROUPS; g++) {
        pushes[1][g].weight = 0;
        items = add(1, g);
    }
    ck_assert_ptr_null(coh_gather_sum(items, GROUPS, COUNT, 2, &weight));
    ck_assert_double_eq(weight, 0);
}
END_TEST

START_TEST(only_as_many_as_take_the_step_are_waited_for)
{
    const coh_gathered *items = NULL;

    for (int g = 1; g < GROUPS; g++) {
        ck_assert_ptr_null(items);
        pushes[2][g].groups = GROUPS - 1;
        items = add(2, g);
    }
    ck_assert_ptr_nonnull(items);
    ck_assert_ptr_null(items[0].push);
    ck_assert_int_eq(items[3].push->group, 3);
}
END_TEST

static Suite *gather_suite(void)
{
    Suite *suite = suite_create("gather");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_loop_test(core, the_sum_does_not_depend_on_who_came_first, 0, 4);
    tcase_add_test(core, blocks_wait_apart_and_step_after_step);
    tcase_add_test(core, a_push_without_samples_adds_nothing);
    tcase_add_test(core, only_as_many_as_take_the_step_are_waited_for);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(gather_suite)
