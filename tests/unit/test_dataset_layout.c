/* test_dataset_layout.c - halves and lzf, bit by bit
 * (src/worker/dataset_layout.h, src/worker/lzf.h). No MPI. */
#include "worker/dataset_layout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/lzf.h"
#include "support/check_run.h"

/* The definition: (-1)^s 2^(e-15) (1 + m/1024), 2^-14 m/1024 for e = 0. */
static double half_by_definition(int half)
{
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    double size = ldexp(1 + mantissa / 1024.0, exponent - 15);

    if (exponent == 0)
        size = ldexp(mantissa / 1024.0, -14);
    if (exponent == 31)
        size = mantissa == 0 ? INFINITY : NAN;
    return half & 0x8000 ? -size : size;
}

START_TEST(every_half_is_its_float)
{
    for (int i = 0; i < 65536; i++) {
        const uint16_t half = (uint16_t)i;
        const double want = half_by_definition(i);
        float got;
        coh_layout_from_half(&half, 1, &got);
        if (isnan(want))
            ck_assert(isnan(got));
        else
            ck_assert(got == (float)want &&
                      (signbit(got) != 0) == (i >= 0x8000));
    }
}
END_TEST

START_TEST(names_are_put_within)
{
    static const char *const rows[][3] = {
        { "", "a/b", "a/b" },      { "train", "data", "train/data" },
        { "*_val", "x", "x_val" }, { "g/*", "x", "g/x" },
        { "p*s", "x", "pxs" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *name = coh_layout_name(rows[i][0], rows[i][1]);
        ck_assert_str_eq(name, rows[i][2]);
        free(name);
    }
}
END_TEST

START_TEST(axes_that_are_no_image_are_refused)
{
    const coh_layout flat = { 2, { 10, 784 } }, four = { 4, { 10, 1, 2, 3 } };
    int64_t count;
    coh_shape shape;
    coh_err err = COH_ERR_INIT;
    ck_assert_int_eq(
        coh_layout_shape(&flat, 1, COH_AXES_NCHW, &count, &shape, &err),
        COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "has 2 axes"));
    ck_assert_int_eq(
        coh_layout_shape(&four, 2, COH_AXES_NCHW, &count, &shape, &err),
        COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "each must be [N,H,W]"));
}
END_TEST

START_TEST(lzf_copies_near_and_far)
{
    static const unsigned char
        in[] = { 2,    'a', 'b',  'c', /* abc */
                 0x20, 2,              /* 3 from 3 back: abc */
                 0,    'd', 0x40, 6 /* 4 from 7 back */ };
    unsigned char out[11] = { 0 };
    ck_assert_uint_eq(coh_lzf_unpack(in, sizeof in, out, sizeof out), 11);
    ck_assert_mem_eq(out, "abcabcdabca", 11);
    ck_assert_uint_eq(coh_lzf_unpack(in, sizeof in, out, 10), 0); /* no room */
}
END_TEST

/* Whatever the bytes: the sanitizers see that nothing outside is touched. */
START_TEST(lzf_of_any_bytes_stays_inside)
{
    unsigned state = 1;
    for (int round = 0; round < 20000; round++) {
        const size_t in_size = (size_t)(round % 12), out_size = 40;
        unsigned char *in = malloc(in_size + 1), *out = malloc(out_size);
        for (size_t i = 0; i < in_size; i++) {
            state = state * 1103515245u + 12345u;
            in[i] = (unsigned char)(state >> 16);
        }
        unsigned char *exact = realloc(in, in_size > 0 ? in_size : 1);
        ck_assert_uint_le(coh_lzf_unpack(exact, in_size, out, out_size),
                          out_size);
        free(exact);
        free(out);
    }
}
END_TEST

static Suite *dataset_layout_suite(void)
{
    Suite *suite = suite_create("dataset_layout");
    TCase *core = tcase_create("core");
    tcase_add_test(core, every_half_is_its_float);
    tcase_add_test(core, names_are_put_within);
    tcase_add_test(core, axes_that_are_no_image_are_refused);
    tcase_add_test(core, lzf_copies_near_and_far);
    tcase_add_test(core, lzf_of_any_bytes_stays_inside);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(dataset_layout_suite)
