/* test_rng.c - numbers that depend on nothing but their names
 * (src/common/rng.h). No MPI. */
#include "common/rng.h"

#include <math.h>
#include <stdlib.h>

#include "support/check_run.h"

/* The known answers of philox4x32-10 that come with Random123: counter, key,
 * result. */
static const struct {
    uint32_t counter[4], key[2], want[4];
} known[] = {
    { { 0, 0, 0, 0 },
      { 0, 0 },
      { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xa4093822, 0x299f31d0 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};
enum { KNOWN = sizeof known / sizeof known[0] };

START_TEST(words_are_those_of_philox)
{
    const uint32_t *c = known[_i].counter;
    const coh_rng_key key = { { known[_i].key[0], known[_i].key[1] } };
    uint32_t got[4];

    coh_rng_words(key, c[3], (uint64_t)c[2] << 32 | c[1], c[0], got);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(got[i], known[_i].want[i]);
}
END_TEST

START_TEST(seeds_and_streams_have_keys_of_their_own)
{
    enum { N = 64 };
    coh_rng_key keys[2 * N];

    for (uint32_t i = 0; i < N; i++) {
        keys[i] = coh_rng_key_of(i, 0);
        keys[N + i] = coh_rng_key_of(1, i + 1);
    }
    for (int i = 0; i < 2 * N; i++) {
        for (int j = 0; j < i; j++)
            ck_assert(keys[i].word[0] != keys[j].word[0] ||
                      keys[i].word[1] != keys[j].word[1]);
    }
}
END_TEST

START_TEST(uniform_numbers_lie_in_the_half_open_interval)
{
    ck_assert_float_eq(coh_rng_uniform(0), 0.0f);
    ck_assert_float_lt(coh_rng_uniform(UINT32_MAX), 1.0f);
    ck_assert_float_eq(coh_rng_uniform(0x80000000u), 0.5f);
}
END_TEST

/* 200,000 numbers: the mean lies within 5/sqrt(n) = 0.0112 of 0, the variance
 * within 5 sqrt(2/n) = 0.0158 of 1, the fourth moment within 5 sqrt(96/n) =
 * 0.11 of 3, or chance failed us once in two million. */
START_TEST(normals_have_mean_0_and_variance_1)
{
    enum { N = 200000 };
    const coh_rng_key key = coh_rng_key_of(7, COH_RNG_INIT);
    double sum[5] = { 0 };

    for (uint64_t s = 0; s < N / 4; s++) {
        float x[4];
        coh_rng_normals(key, 3, s, 0, x);
        for (int i = 0; i < 4; i++) {
            ck_assert(isfinite(x[i]));
            sum[1] += x[i];
            sum[2] += pow(x[i], 2);
            sum[4] += pow(x[i], 4);
        }
    }
    ck_assert_double_eq_tol(sum[1] / N, 0, 0.0112);
    ck_assert_double_eq_tol(sum[2] / N, 1, 0.0158);
    ck_assert_double_eq_tol(sum[4] / N, 3, 0.11);
}
END_TEST

static const int64_t counts[] = { 1, 2, 3, 7, 1000, 60000 };
enum { COUNTS = sizeof counts / sizeof counts[0] };

START_TEST(a_permutation_uses_every_element_once)
{
    const int64_t n = counts[_i];
    char *seen = calloc((size_t)n, 1);

    for (int64_t i = 0; i < n; i++) {
        const int64_t at = coh_rng_permute(42, 5, n, i);
        ck_assert_int_ge(at, 0);
        ck_assert_int_lt(at, n);
        ck_assert_int_eq(seen[at]++, 0);
    }
    free(seen);
}
END_TEST

static int by_number(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* Of a set that 32 bits do not count: places beyond, and elements beyond. */
START_TEST(a_permutation_of_5e9_elements_uses_none_twice)
{
    enum { SOME = 4000 };
    const int64_t n = 5000000000;
    static int64_t at[SOME];
    int64_t wrong = 0, beyond = 0;

    for (int64_t i = 0; i < SOME; i++) {
        at[i] = coh_rng_permute(42, 5, n, ((int64_t)1 << 32) - SOME / 2 + i);
        wrong += at[i] < 0 || at[i] >= n;
        beyond += at[i] >= (int64_t)1 << 32;
    }
    qsort(at, SOME, sizeof at[0], by_number);
    for (int64_t i = 1; i < SOME; i++)
        wrong += at[i] == at[i - 1];
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_gt(beyond, SOME / 10); /* 14 % of all are */
}
END_TEST

static int64_t agreements(uint64_t seed_a, uint32_t epoch_a, uint64_t seed_b,
                          uint32_t epoch_b, int64_t n)
{
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++)
        same += coh_rng_permute(seed_a, epoch_a, n, i) ==
                coh_rng_permute(seed_b, epoch_b, n, i);
    return same;
}

/* Two random permutations agree in 1 place on average, whatever their size. */
START_TEST(epochs_and_seeds_have_permutations_of_their_own)
{
    const int64_t n = 1000;

    ck_assert_int_eq(agreements(1, 0, 1, 0, n), n);
    ck_assert_int_lt(agreements(1, 0, 1, 1, n), 10);
    ck_assert_int_lt(agreements(1, 0, 2, 0, n), 10);
    ck_assert_int_lt(agreements(1, 7, 2, 8, n), 10);
}
END_TEST

/* Neighbours do not stay neighbours, and the order is not the identity. */
START_TEST(a_permutation_mixes)
{
    const int64_t n = 4096;
    int64_t near = 0, fixed = 0;

    for (int64_t i = 0; i + 1 < n; i++) {
        const int64_t a = coh_rng_permute(3, 0, n, i);
        near += llabs(a - coh_rng_permute(3, 0, n, i + 1)) <= 8;
        fixed += a == i;
    }
    ck_assert_int_lt(near, 48); /* 16 expected */
    ck_assert_int_lt(fixed, 10);
}
END_TEST

static Suite *rng_suite(void)
{
    Suite *suite = suite_create("rng");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, words_are_those_of_philox, 0, KNOWN);
    tcase_add_test(core, seeds_and_streams_have_keys_of_their_own);
    tcase_add_test(core, uniform_numbers_lie_in_the_half_open_interval);
    tcase_add_test(core, normals_have_mean_0_and_variance_1);
    tcase_add_loop_test(core, a_permutation_uses_every_element_once, 0, COUNTS);
    tcase_add_test(core, a_permutation_of_5e9_elements_uses_none_twice);
    tcase_add_test(core, epochs_and_seeds_have_permutations_of_their_own);
    tcase_add_test(core, a_permutation_mixes);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(rng_suite)
