/* finite.c - see finite.h. */
#include "common/finite.h"

#include <string.h>

#include "common/simd.h"

/* The exponent of a float that is not finite is all ones. Integers, so that
 * the loop vectorises. */
COH_SIMD bool coh_is_finite(const float *x, int64_t n)
{
    uint32_t bad = 0;

    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return bad == 0;
}
