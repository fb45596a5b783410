/* test_half.c - float32 to binary16 and back (src/common/half.h), against
 * arithmetic in double. No MPI.
 *
 * Everything is converted twice: eight times in a row, by the processor's own
 * instructions where it has them, and alone, without.
 */
#include "common/half.h"

#include <math.h>

#include "common/float_bits.h"
#include "common/rng.h"
#include "support/check_run.h"

enum { PATTERNS = 1 << 16, EIGHT = 8 };

/* The value of a half, by its definition. */
static double value_of(uint16_t half)
{
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    const double sign = half & 0x8000 ? -1 : 1;

    if (exponent == 31)
        return fraction == 0 ? sign * INFINITY : NAN;
    return exponent == 0 ? sign * ldexp(fraction, -24)
                         : sign * ldexp(1024 + fraction, exponent - 25);
}

/* The half nearest to a finite x: a multiple of the unit of its exponent. */
static uint16_t nearest(double x)
{
    const double size = fabs(x);
    const int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    const int units = (int)nearbyint(ldexp(size, 10 - exponent));

    return (uint16_t)((signbit(x) ? 0x8000 : 0) + ((exponent + 14) << 10) +
                      units);
}

/* What is wrong of many values is counted, and asserted once: Check writes a
 * note for each assertion. */
static int wrong;

static void expect(bool is_right, const char *what, double x, uint32_t got,
                   uint32_t want)
{
    if (!is_right && wrong++ < 5)
        printf("%s %a: %08x, wanted %08x\n", what, x, got, want);
}

static uint16_t pack(float factor, float x, int64_t *zeroed)
{
    float in[EIGHT];
    uint16_t out[EIGHT], alone;

    for (int i = 0; i < EIGHT; i++)
        in[i] = x;
    *zeroed = coh_half_pack(factor, &x, 1, &alone);
    const int64_t all = coh_half_pack(factor, in, EIGHT, out);
    expect(all == EIGHT * *zeroed, "zeroed", (double)x, (uint32_t)all,
           (uint32_t)(EIGHT * *zeroed));
    for (int i = 0; i < EIGHT; i++)
        expect(out[i] == alone, "eight", (double)x, out[i], alone);
    return alone;
}

static float unpack(float factor, uint16_t half)
{
    uint16_t in[EIGHT];
    float out[EIGHT], alone;

    for (int i = 0; i < EIGHT; i++)
        in[i] = half;
    coh_half_unpack(factor, &half, 1, &alone);
    coh_half_unpack(factor, in, EIGHT, out);
    for (int i = 0; i < EIGHT; i++)
        expect(coh_bits_of(out[i]) == coh_bits_of(alone), "eight", half,
               coh_bits_of(out[i]), coh_bits_of(alone));
    return alone;
}

START_TEST(every_half_has_its_value_and_comes_back)
{
    for (uint32_t h = 0; h < PATTERNS; h++) {
        const double value = value_of((uint16_t)h);
        const uint32_t quiet = isnan(value) ? 0x200 : 0;
        const float got = unpack(1, (uint16_t)h);
        const float want = isnan(value)
                               ? coh_float_of((h & 0x8000) << 16 | 0x7fc00000 |
                                              (h & 0x3ff) << 13)
                               : (float)value;
        int64_t zeroed;

        expect(coh_bits_of(got) == coh_bits_of(want), "half", h,
               coh_bits_of(got), coh_bits_of(want));
        const uint16_t back = pack(1, got, &zeroed);
        expect(back == (h | quiet) && zeroed == 0, "back", h, back, h | quiet);
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static void expect_nearest(float factor, float x)
{
    const double product = (double)x * factor;
    int64_t zeroed;
    const uint16_t got = pack(factor, x, &zeroed), want = nearest(product);

    const bool vanishes = x != 0 && (want & 0x7fff) == 0;

    expect(got == want, "nearest", product, got, want);
    expect(zeroed == vanishes, "zeroed", product, (uint32_t)zeroed, vanishes);
}

/* Halfway between two halves, and one float32 to each side of there. */
START_TEST(ties_go_to_even)
{
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const float low = unpack(1, (uint16_t)h);
        const float high = unpack(1, (uint16_t)(h + 1));
        const float half = low + (high - low) / 2;

        for (int sign = -1; sign <= 1; sign += 2) {
            expect_nearest(1, (float)sign * half);
            expect_nearest(1, (float)sign * nextafterf(half, 0));
            expect_nearest(1, (float)sign * nextafterf(half, INFINITY));
        }
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Of all magnitudes that a factor may bring to less than 2^15. */
START_TEST(whatever_a_factor_makes_of_a_value_is_rounded_once)
{
    static const int powers[] = { -113, -50, -1, 0, 1, 20, 101 };
    const int power = powers[_i];
    const coh_rng_key key = coh_rng_key_of(1, COH_RNG_INIT);

    for (uint32_t n = 0; n < 100000; n++) {
        uint32_t words[4];
        coh_rng_words(key, 0, n, (uint32_t)_i, words);
        const float x = coh_float_of(words[0]);
        if (isnormal(x) && fabs((double)x) < ldexp(1, 15 - power))
            expect_nearest(ldexpf(1, power), x);
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(what_comes_back_is_divided_by_the_factor)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const float want = (float)ldexp(value_of((uint16_t)h), -101);
        const float got = unpack(0x1p-101f, (uint16_t)h);
        expect(got == want, "half", h, coh_bits_of(got), coh_bits_of(want));
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(infinities_and_nan_stay)
{
    int64_t zeroed;

    ck_assert_uint_eq(pack(0x1p-20f, INFINITY, &zeroed), 0x7c00);
    ck_assert_uint_eq(pack(0x1p20f, -INFINITY, &zeroed), 0xfc00);
    ck_assert_uint_eq(pack(1, coh_float_of(0xffc02000), &zeroed), 0xfe01);
    /* a quiet bit keeps what would else be the bits of infinity */
    ck_assert_uint_eq(pack(1, coh_float_of(0x7f800001), &zeroed), 0x7e00);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

static Suite *half_suite(void)
{
    Suite *suite = suite_create("half");
    TCase *core = tcase_create("core");

    tcase_add_test(core, every_half_has_its_value_and_comes_back);
    tcase_add_test(core, ties_go_to_even);
    tcase_add_loop_test(
        core, whatever_a_factor_makes_of_a_value_is_rounded_once, 0, 7);
    tcase_add_test(core, what_comes_back_is_divided_by_the_factor);
    tcase_add_test(core, infinities_and_nan_stay);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(half_suite)
