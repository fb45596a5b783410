/* config_number.c - numbers as text, see config_option.h.
 *
 * By hand, because strtoll takes 0x10 and stops at 1_000 without a word,
 * strtod takes nan and a comma where the user's language has one, and
 * neither takes 1e6 for an integer.
 */
#include "common/config_option.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char not_a_number[] = "is not a number";

/* A number as written: (-) digits, of which `whole` stand before the point,
 * times 10^power. */
typedef struct decimal {
    bool is_negative;
    const char *digits; /* may hold the point */
    int64_t whole, count, power;
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* [sign] digits [. digits] [e [sign] digits], digits before or after the
 * point; nothing else. */
static bool split(const char *text, decimal *out)
{
    const char *at = text;
    *out = (decimal){ .is_negative = *at == '-' };
    at += *at == '-' || *at == '+';

    for (out->digits = at; is_digit(*at); at++)
        out->whole++;
    out->count = out->whole;
    if (*at == '.')
        for (at++; is_digit(*at); at++)
            out->count++;
    if (out->count == 0)
        return false;

    if (*at == 'e' || *at == 'E') {
        const bool is_small = *++at == '-';
        at += *at == '-' || *at == '+';
        if (!is_digit(*at))
            return false;
        for (; is_digit(*at); at++)
            if (out->power < 100000000)
                out->power = 10 * out->power + (*at - '0');
        if (is_small)
            out->power = -out->power;
    }
    return *at == '\0';
}

static int digit_at(const decimal *self, int64_t i)
{
    if (i >= self->count)
        return 0;
    return self->digits[i < self->whole ? i : i + 1] - '0';
}

const char *coh_number_int(const char *text, int64_t *out)
{
    decimal d;
    if (!split(text, &d))
        return "is not an integer";

    const int64_t places = d.whole + d.power; /* digits before the point */
    for (int64_t i = places > 0 ? places : 0; i < d.count; i++)
        if (digit_at(&d, i) != 0)
            return "is not whole";

    int64_t value = 0; /* negative: there is one more of them */
    for (int64_t i = 0; i < places; i++) {
        if (value == 0 && i >= d.count)
            break; /* 0e99 */
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, digit_at(&d, i), &value))
            return "does not fit into 64 bits";
    }
    if (!d.is_negative && value == INT64_MIN)
        return "does not fit into 64 bits";
    *out = d.is_negative ? value : -value;
    return NULL;
}

const char *coh_number_real(const char *text, double *out)
{
    decimal d;
    if (!split(text, &d))
        return not_a_number;

    /* glibc makes the C locale without memory: this cannot fail. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = strtod_l(text, NULL, c);
    freelocale(c);

    bool is_zero = true;
    for (int64_t i = 0; i < d.count && is_zero; i++)
        is_zero = digit_at(&d, i) == 0;
    if (isinf(value))
        return "is too large for a double";
    if (value == 0.0 && !is_zero)
        return "is too small for a double";
    *out = value;
    return NULL;
}

void coh_number_text(double value, char out[COH_REAL_MAX])
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before = uselocale(c);

    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, COH_REAL_MAX, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    uselocale(before);
    freelocale(c);
}
