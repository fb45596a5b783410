/* test_batch_norm.c - the loops of batch normalisation, in every order of the
 * values (src/worker/nn/batch_norm.h). What they calculate is checked in
 * test_nn_batch_norm.c. */
#include "worker/nn/batch_norm.h"

#include <math.h>
#include <stdlib.h>

#include "support/check_run.h"

enum { B = 5, ROWS = 3, C = 19, P = 21, SIZE = B * 32 * P };

/* Row-major; channels last; blocks of 16 and of 8, the last one filled up. */
static const coh_channels orders[] = {
    { B, C, P, 1, C, C *P, P },
    { B, C, P, C, 1, C *P, C },
    { B, C, P, 16, 2, 32 * P, 16 * P },
    { B, C, P, 8, 3, 24 * P, 8 * P },
};
enum { ORDERS = sizeof orders / sizeof orders[0] };

static float plain[2][B * C * P]; /* x, dy */
static float x[SIZE], dy[SIZE], y[SIZE], g[C], h[C];

static int64_t place(const coh_channels *at, int b, int c, int p)
{
    return b * at->row_stride + c / at->lanes * at->block_stride +
           p * at->lanes + c % at->lanes;
}

/* Values in that order, zeros that fill up, and NaN in rows that do not count.
 */
static void lay_out(const coh_channels *at, const float *from, float *to)
{
    memset(to, 0, SIZE * sizeof *to);
    for (int b = 0; b < B; b++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < P; p++)
                to[place(at, b, c, p)] =
                    b < ROWS ? from[(b * C + c) * P + p] : NAN;
}

static void setup(void)
{
    for (int i = 0; i < B * C * P; i++) {
        plain[0][i] = (float)(i * 37 % 101) / 50 - 1;
        plain[1][i] = (float)(i * 61 % 89) / 40 - 1;
    }
    for (int c = 0; c < C; c++) {
        g[c] = 1 + 0.1f * (float)c;
        h[c] = 0.5f - 0.1f * (float)c;
    }
    memset(y, 0xff, sizeof y);
}

/* y and dy become what they become; dg[C] and dh[C]. */
static void step(const coh_channels *at, float *dg, float *dh)
{
    coh_batch_norm *self = coh_batch_norm_new(at, 1e-5, 0.25f);

    ck_assert_ptr_nonnull(self);
    lay_out(at, plain[0], x);
    lay_out(at, plain[1], dy);
    coh_batch_norm_measure(self, ROWS, x);
    coh_batch_norm_forward(self, ROWS, x, g, h, y);
    coh_batch_norm_weights(self, ROWS, x, dy, dg, dh);
    coh_batch_norm_data(self, ROWS, x, g, dy);
    free(self);
}

/* Sums are added up in another order. */
START_TEST(every_order_gives_the_same)
{
    float want[2][B * C * P], sums[2][2][C];

    step(&orders[0], sums[0][0], sums[0][1]);
    memcpy(want[0], y, sizeof want[0]);
    memcpy(want[1], dy, sizeof want[1]);
    step(&orders[_i], sums[1][0], sums[1][1]);
    for (int c = 0; c < C; c++) {
        ck_assert_float_eq_tol(sums[1][0][c], sums[0][0][c], 1e-4f);
        ck_assert_float_eq_tol(sums[1][1][c], sums[0][1][c], 1e-4f);
        for (int i = 0; i < ROWS * P; i++) {
            const int64_t at = place(&orders[_i], i / P, c, i % P);
            const int from = (i / P * C + c) * P + i % P;
            ck_assert_float_eq_tol(y[at], want[0][from], 1e-5f);
            ck_assert_float_eq_tol(dy[at], want[1][from], 1e-5f);
        }
    }
}
END_TEST

START_TEST(padding_and_what_fills_up_become_0)
{
    const coh_channels *at = &orders[_i];
    float dg[C], dh[C];

    step(at, dg, dh);
    for (int64_t i = ROWS * at->row_stride; i < B * at->row_stride; i++)
        ck_assert(y[i] == 0 && dy[i] == 0);
    for (int b = 0; b < ROWS; b++)
        for (int c = C; c < at->nblocks * at->lanes; c++)
            for (int p = 0; p < P; p++)
                ck_assert(y[place(at, b, c, p)] == 0 &&
                          dy[place(at, b, c, p)] == 0);
}
END_TEST

/* A channel of one value: nothing is left of it, and no variance is negative. */
START_TEST(a_constant_channel_becomes_its_bias)
{
    const coh_channels *at = &orders[_i];
    float mean[C], variance[C];
    coh_batch_norm *self = coh_batch_norm_new(at, 1e-5, 1);

    for (int i = 0; i < B * C * P; i++)
        plain[0][i] = 1000.1f;
    lay_out(at, plain[0], x);
    coh_batch_norm_measure(self, ROWS, x);
    coh_batch_norm_forward(self, ROWS, x, g, h, y);
    ck_assert(coh_batch_norm_tell(self, ROWS, 2, mean, variance));
    for (int c = 0; c < C; c++) {
        ck_assert_float_eq(mean[c], 2 * 1000.1f);
        ck_assert(variance[c] >= 0 && variance[c] < 1e-6f);
        ck_assert_float_eq_tol(y[place(at, 1, c, 2)], h[c], 1e-5f);
    }
    free(self);
}
END_TEST

START_TEST(two_values_have_a_variance_and_one_has_none)
{
    const coh_channels one = { 2, 1, 1, 1, 1, 1, 1 };
    const float values[] = { 3, 5 };
    float mean = -1, variance = -1;
    coh_batch_norm *self = coh_batch_norm_new(&one, 1e-5, 1);

    coh_batch_norm_measure(self, 1, values);
    ck_assert(!coh_batch_norm_tell(self, 1, 4, &mean, &variance));
    ck_assert(mean == -1 && variance == -1);
    coh_batch_norm_measure(self, 2, values);
    ck_assert(coh_batch_norm_tell(self, 2, 4, &mean, &variance));
    ck_assert(mean == 4 * 4 && variance == 4 * 2);
    free(self);
}
END_TEST

static Suite *batch_norm_suite(void)
{
    Suite *suite = suite_create("batch_norm");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_loop_test(core, every_order_gives_the_same, 0, ORDERS);
    tcase_add_loop_test(core, padding_and_what_fills_up_become_0, 0, ORDERS);
    tcase_add_loop_test(core, a_constant_channel_becomes_its_bias, 0, ORDERS);
    tcase_add_test(core, two_values_have_a_variance_and_one_has_none);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(batch_norm_suite)
