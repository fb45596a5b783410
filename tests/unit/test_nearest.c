/* test_nearest.c - what nearest.h promises. */
#include "common/nearest.h"

#include <string.h>

#include "support/check_run.h"

static const struct {
    const char *a, *b;
    int distance;
} pairs[] = {
    { "rate", "rate", 0 },    { "Rate", "rATE", 0 },
    { "", "abc", 3 },         { "rat", "brat", 1 },
    { "batch", "bathc", 1 },  { "kitten", "sitting", 3 },
    { "padd", "padding", 1 }, /* a word cut short */
    { "pa", "padding", 5 },   { "servers", "server", 1 },
};

START_TEST(the_distance_counts_letters_to_change)
{
    ck_assert_int_eq(coh_nearest_distance(pairs[_i].a, pairs[_i].b),
                     pairs[_i].distance);
}
END_TEST

START_TEST(a_very_long_word_is_near_nothing)
{
    char word[5000];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';

    ck_assert_int_eq(coh_nearest_distance(word, word), 1000);
    ck_assert_int_eq(coh_nearest_distance("x", word), 1000);
}
END_TEST

START_TEST(closeness_grows_with_the_word)
{
    ck_assert(coh_nearest_is_close("lr", 1));
    ck_assert(!coh_nearest_is_close("lr", 2));
    ck_assert(coh_nearest_is_close("weight_decya", 4));
    ck_assert(!coh_nearest_is_close("weight_decya", 5));
}
END_TEST

static Suite *nearest_suite(void)
{
    Suite *suite = suite_create("nearest");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, the_distance_counts_letters_to_change, 0,
                        sizeof pairs / sizeof pairs[0]);
    tcase_add_test(core, a_very_long_word_is_near_nothing);
    tcase_add_test(core, closeness_grows_with_the_word);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nearest_suite)
