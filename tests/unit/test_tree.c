/* test_tree.c - who hands on to whom (src/common/tree.h). */
#include "common/tree.h"

#include <limits.h>

#include "support/check_run.h"

/* How many hang under it, itself included; 0 if anything is wrong. (No
 * assertion for each of so many.) */
static int members_under(coh_tree tree, int member, int depth)
{
    int count = 1;

    for (int k = 0; k < coh_tree_children(tree, member); k++) {
        const int child = coh_tree_child(tree, member, k);
        if (depth == 0 || child < 0 || child >= tree.size ||
            coh_tree_parent(tree, child) != member)
            return 0;
        const int under = members_under(tree, child, depth - 1);
        if (under == 0)
            return 0;
        count += under;
    }
    return count;
}

/* Each hangs from one parent, all but the root, and all are found from it. */
START_TEST(every_member_hangs_once_from_any_root)
{
    static const int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 33, 64, 1000 };
    const int size = sizes[_i];

    for (int root = 0; root < size; root += 1 + size / 50) {
        const coh_tree tree = { size, root };
        ck_assert_int_eq(coh_tree_parent(tree, root), -1);
        ck_assert_int_eq(members_under(tree, root, coh_tree_depth(size)), size);
    }
}
END_TEST

START_TEST(the_depth_is_the_logarithm)
{
    ck_assert_int_eq(coh_tree_depth(1), 0);
    ck_assert_int_eq(coh_tree_depth(2), 1);
    ck_assert_int_eq(coh_tree_depth(3), 2);
    ck_assert_int_eq(coh_tree_depth(4), 2);
    ck_assert_int_eq(coh_tree_depth(1000), 10);
    ck_assert_int_eq(coh_tree_depth(INT_MAX), 31);
}
END_TEST

START_TEST(subtrees_grow_and_numbers_go_round_the_ring)
{
    const coh_tree tree = { 8, 6 };

    ck_assert_int_eq(coh_tree_children(tree, 6), 3);
    ck_assert_int_eq(coh_tree_child(tree, 6, 0), 7);
    ck_assert_int_eq(coh_tree_child(tree, 6, 1), 0);
    ck_assert_int_eq(coh_tree_child(tree, 6, 2), 2);
    ck_assert_int_eq(coh_tree_children(tree, 0), 1);
    ck_assert_int_eq(coh_tree_child(tree, 0, 0), 1);
    ck_assert_int_eq(coh_tree_children(tree, 1), 0);
    ck_assert_int_eq(coh_tree_parent(tree, 5), 4);
}
END_TEST

START_TEST(the_largest_group_does_not_overflow)
{
    const coh_tree tree = { INT_MAX, INT_MAX - 1 };

    ck_assert_int_eq(coh_tree_child(tree, INT_MAX - 1, 30), (1 << 30) - 1);
    ck_assert_int_eq(coh_tree_parent(tree, (1 << 30) - 1), INT_MAX - 1);
    ck_assert_int_eq(coh_tree_children(tree, (1 << 30) - 1), 30);
}
END_TEST

static Suite *tree_suite(void)
{
    Suite *suite = suite_create("tree");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, every_member_hangs_once_from_any_root, 0, 10);
    tcase_add_test(core, the_depth_is_the_logarithm);
    tcase_add_test(core, subtrees_grow_and_numbers_go_round_the_ring);
    tcase_add_test(core, the_largest_group_does_not_overflow);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(tree_suite)
