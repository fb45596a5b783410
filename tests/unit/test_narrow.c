/* test_narrow.c - vectors in 16 bits (src/common/narrow.h). No MPI. */
#include "common/narrow.h"

#include <float.h>
#include <math.h>
#include <string.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "common/float_bits.h"
#include "common/rng.h"
#include "support/check_run.h"

enum { COUNT = 5001 }; /* some parts and a rest */
static float x[COUNT], got[COUNT];
static uint16_t narrow[COUNT];
static coh_narrowed counts;

/* Magnitudes from 2^-20 to 2^20, both signs. */
static void setup(void)
{
    const coh_rng_key key = coh_rng_key_of(7, COH_RNG_INIT);

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t words[4];
        coh_rng_words(key, 0, i, 0, words);
        x[i] =
            ldexpf(coh_rng_uniform(words[0]) - 0.5f, (int)(words[1] % 41) - 20);
    }
    counts = (coh_narrowed){ 0 };
}

static float pack(coh_wire_kind format, int64_t n)
{
    return coh_narrow_pack(format, x, n, narrow, &counts);
}

static uint16_t bfloat16_of(float value)
{
    x[0] = value;
    pack(COH_WIRE_BFLOAT16, 1);
    return narrow[0];
}

/* The bfloat16 nearest to a finite value, in double. */
static uint16_t nearest(double value)
{
    const double size = fabs(value);
    const int exponent = size < 0x1p-126 ? -126 : ilogb(size);
    const int units = (int)nearbyint(ldexp(size, 7 - exponent));

    return (uint16_t)((signbit(value) ? 0x8000 : 0) + ((exponent + 126) << 7) +
                      units);
}

START_TEST(every_bfloat16_is_a_float32_and_comes_back)
{
    int wrong = 0;

    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint16_t in = (uint16_t)h;
        coh_narrow_unpack(COH_WIRE_BFLOAT16, 1, &in, 1, got);
        wrong += coh_bits_of(got[0]) != h << 16;
        wrong += bfloat16_of(got[0]) != (isnan(got[0]) ? h | 0x40 : h);
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(counts.values, 0x10000);
    ck_assert_int_eq(counts.infinite + counts.zeroed, 0);
}
END_TEST

/* Around the middle between two neighbours, the last one of them infinite. */
START_TEST(bfloat16_rounds_to_nearest_and_ties_to_even)
{
    int wrong = 0;

    for (uint32_t h = 0; h < 0x7f80; h++) {
        const uint32_t middle = h << 16 | 0x8000;
        for (uint32_t bits = middle - 1; bits <= middle + 1; bits++) {
            const float value = coh_float_of(bits);
            wrong += bfloat16_of(value) != nearest((double)value);
            wrong += bfloat16_of(-value) != nearest(-(double)value);
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(what_overflows_or_vanishes_is_counted)
{
    static const uint32_t bits[] = {
        0x7f7f7fff,             /* the largest that stays finite */
        0x7f7f8000, 0xff7fffff, /* infinite */
        0x7f800000, 0xffc00000, /* were before */
        0x00008000, 0x80000001, /* 0 */
        0x00008001, 0x80000000, /* not 0; was before */
    };

    memcpy(x, bits, sizeof bits);
    pack(COH_WIRE_BFLOAT16, 9);
    ck_assert_int_eq(counts.values, 9);
    ck_assert_int_eq(counts.infinite, 2);
    ck_assert_int_eq(counts.zeroed, 2);
    ck_assert_uint_eq(narrow[0], 0x7f7f);
    ck_assert_uint_eq(narrow[1], 0x7f80);
    ck_assert_uint_eq(narrow[2], 0xff80);
}
END_TEST

/* To half of the last of 11 bits. */
START_TEST(float16_is_as_good_far_below_its_largest)
{
    static const int powers[] = { -70, 0, 100 };
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        x[i] = ldexpf(i == 17 ? 0x1.8p20f : x[i], powers[_i]);
    const float scale = pack(COH_WIRE_FLOAT16, COUNT);
    const float largest = ldexpf(0x1.8p20f, powers[_i]);
    ck_assert(scale == ldexpf(1, 14 - 20 - powers[_i]));
    coh_narrow_unpack(COH_WIRE_FLOAT16, scale, narrow, COUNT, got);
    for (int i = 0; i < COUNT; i++) {
        const double error = fabs((double)got[i] - (double)x[i]);
        const double size = fabs((double)x[i]);
        wrong += error > fmax(0x1p-11 * size, 0x1p-39 * (double)largest);
        wrong += size >= 0x1p-28 * (double)largest && error > 0x1p-11 * size;
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(infinities_and_nan_do_not_count_for_the_scale)
{
    x[0] = 3;
    x[1] = -INFINITY;
    x[2] = NAN;
    ck_assert(pack(COH_WIRE_FLOAT16, 3) == 0x1p13f);
    coh_narrow_unpack(COH_WIRE_FLOAT16, 0x1p13f, narrow, 3, got);
    ck_assert(got[0] == 3 && got[1] == -INFINITY && isnan(got[2]));
    ck_assert_int_eq(counts.infinite + counts.zeroed, 0);
}
END_TEST

/* Only where float32 has no number to round to. */
START_TEST(float16_overflows_as_late_as_float32)
{
    static const uint32_t bits[] = { 0x7f7fefff, 0x7f7ff000, 0xff7fffff };

    memcpy(x, bits, sizeof bits);
    const float scale = pack(COH_WIRE_FLOAT16, 3);
    coh_narrow_unpack(COH_WIRE_FLOAT16, scale, narrow, 3, got);
    ck_assert(got[0] == 0x1.ffcp127f);
    ck_assert(got[1] == INFINITY && got[2] == -INFINITY);
    ck_assert_int_eq(counts.infinite, 2);

    x[0] = 0x1.ffffffp126f;
    pack(COH_WIRE_FLOAT16, 1);
    ck_assert_int_eq(counts.infinite, 2);
}
END_TEST

START_TEST(what_is_too_small_beside_the_largest_is_counted)
{
    x[0] = 1; /* becomes 2^14, and the least half is 2^-24 */
    x[1] = 0x1p-38f;
    x[2] = -0x1p-39f;
    x[3] = 0;
    pack(COH_WIRE_FLOAT16, 4);
    ck_assert_uint_eq(narrow[1], 1);
    ck_assert_uint_eq(narrow[2], 0x8000);
    ck_assert_int_eq(counts.zeroed, 1);
    ck_assert_int_eq(counts.values, 4);
}
END_TEST

START_TEST(nothing_but_zeros_comes_back_so)
{
    memset(x, 0, sizeof x);
    x[1] = -0.0f;
    ck_assert(pack(COH_WIRE_FLOAT16, COUNT) == 1);
    coh_narrow_unpack(COH_WIRE_FLOAT16, 1, narrow, COUNT, got);
    ck_assert_int_eq(memcmp(got, x, sizeof x), 0);
    ck_assert_int_eq(counts.zeroed, 0);
}
END_TEST

/* Threads of a network flush denormals, others do not. */
START_TEST(flushing_denormals_makes_no_difference)
{
#ifdef __SSE__
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
    const unsigned before = _mm_getcsr();
    static uint16_t flushed[COUNT];
    static float other[COUNT];
    coh_narrowed kept = { 0 };

    /* 10 _i: the largest; the others down to the least float32 there is. */
    for (int i = 0; i < COUNT; i++)
        x[i] = ldexpf(x[i], 10 * _i - 20 - i % (10 * _i + 149));
    const float scale = pack(COH_WIRE_FLOAT16, COUNT);
    coh_narrow_unpack(COH_WIRE_FLOAT16, scale, narrow, COUNT, got);
    _mm_setcsr(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    const float again =
        coh_narrow_pack(COH_WIRE_FLOAT16, x, COUNT, flushed, &kept);
    coh_narrow_unpack(COH_WIRE_FLOAT16, again, flushed, COUNT, other);
    _mm_setcsr(before);
    ck_assert(scale == again);
    ck_assert_int_eq(memcmp(narrow, flushed, sizeof narrow), 0);
    ck_assert_int_eq(memcmp(got, other, sizeof got), 0);
    ck_assert_int_eq(kept.zeroed, counts.zeroed);
#endif
}
END_TEST

/* Where a vector lies, and where a shorter one arrives. */
START_TEST(vectors_are_converted_in_place)
{
    const coh_wire_kind format = (coh_wire_kind)_i;
    static float data[COUNT + 1];
    const float scale = pack(format, COUNT);

    coh_narrow_unpack(format, scale, narrow, COUNT, got);
    memcpy(data, x, sizeof x);
    coh_narrow_pack(format, data, COUNT, data, &counts);
    void *place = coh_narrow_place(format, data, COUNT + 1);
    memmove(place, data, (size_t)coh_narrow_bytes(format, COUNT));
    coh_narrow_unpack(format, scale, place, COUNT, data);
    ck_assert_int_eq(memcmp(data, got, sizeof got), 0);
}
END_TEST

START_TEST(float32_is_a_copy)
{
    static float copy[COUNT];

    ck_assert(coh_narrow_pack(COH_WIRE_FLOAT32, x, COUNT, copy, &counts) == 1);
    ck_assert_int_eq(memcmp(copy, x, sizeof x), 0);
    ck_assert_int_eq(counts.values, 0);
    coh_narrow_unpack(COH_WIRE_FLOAT32, 1, copy, COUNT, got);
    ck_assert_int_eq(memcmp(got, x, sizeof x), 0);
    ck_assert_ptr_eq(coh_narrow_place(COH_WIRE_FLOAT32, x, COUNT), x);
}
END_TEST

static Suite *narrow_suite(void)
{
    Suite *suite = suite_create("narrow");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, every_bfloat16_is_a_float32_and_comes_back);
    tcase_add_test(core, bfloat16_rounds_to_nearest_and_ties_to_even);
    tcase_add_test(core, what_overflows_or_vanishes_is_counted);
    tcase_add_loop_test(core, float16_is_as_good_far_below_its_largest, 0, 3);
    tcase_add_test(core, infinities_and_nan_do_not_count_for_the_scale);
    tcase_add_test(core, float16_overflows_as_late_as_float32);
    tcase_add_test(core, what_is_too_small_beside_the_largest_is_counted);
    tcase_add_test(core, nothing_but_zeros_comes_back_so);
    tcase_add_loop_test(core, flushing_denormals_makes_no_difference, -12, 10);
    tcase_add_loop_test(core, vectors_are_converted_in_place, COH_WIRE_BFLOAT16,
                        COH_WIRE_FLOAT16 + 1);
    tcase_add_test(core, float32_is_a_copy);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(narrow_suite)
