/* narrow.c - see narrow.h. */
#include "common/narrow.h"

#include <math.h>
#include <string.h>

#include "common/float_bits.h"
#include "common/half.h"
#include "common/simd.h"

/* Values converted at a time, by way of a copy that stays in the first cache:
 * so a vector can be converted where it lies. */
enum { PART = 2048 };

/* float16: the exponent of the largest value, and that of the largest scale. */
enum { TOP = 14, SCALE_MOST = 101 };

void coh_narrowed_add(coh_narrowed *sum, const coh_narrowed *more)
{
    sum->values += more->values;
    sum->infinite += more->infinite;
    sum->zeroed += more->zeroed;
}

const char *coh_narrow_name(coh_wire_kind format)
{
    static const char *const names[] = { "float32", "bfloat16", "float16" };

    return names[format];
}

int64_t coh_narrow_bytes(coh_wire_kind format, int64_t n)
{
    return n * (int64_t)(format == COH_WIRE_FLOAT32 ? sizeof(float)
                                                    : sizeof(uint16_t));
}

void *coh_narrow_place(coh_wire_kind format, float *x, int64_t room)
{
    return (char *)x + (coh_narrow_bytes(COH_WIRE_FLOAT32, room) -
                        coh_narrow_bytes(format, room));
}

/* --- bfloat16 ------------------------------------------------------------ */

COH_SIMD static void to_bfloat16(const float *restrict x, int n,
                                 uint16_t *restrict out,
                                 coh_narrowed *restrict counts)
{
    const uint32_t overflows = 0x7f7f8000u, vanishes = 0x8000u;
    uint32_t infinite = 0, zeroed = 0;

    for (int i = 0; i < n; i++) {
        const uint32_t u = coh_bits_of(x[i]), size = u & COH_MAGNITUDE;
        const uint32_t near = (u + 0x7fff + (u >> 16 & 1)) >> 16;
        out[i] = (uint16_t)(size > COH_INFINITE ? u >> 16 | 0x40 : near);
        infinite += size >= overflows && size < COH_INFINITE;
        zeroed += size > 0 && size <= vanishes;
    }
    counts->infinite += infinite;
    counts->zeroed += zeroed;
}

COH_SIMD static void from_bfloat16(const uint16_t *restrict in, int n,
                                   float *restrict x)
{
    for (int i = 0; i < n; i++)
        x[i] = coh_float_of((uint32_t)in[i] << 16);
}

/* --- float16 ------------------------------------------------------------- */

/* The bits of the largest finite magnitude. */
COH_SIMD static uint32_t largest_of(const float *x, int64_t n)
{
    uint32_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        const uint32_t size = coh_bits_of(x[i]) & COH_MAGNITUDE;
        const uint32_t finite = coh_choose(size < COH_INFINITE, size, 0);
        most = most > finite ? most : finite;
    }
    return most;
}

static float scale_of(const float *x, int64_t n)
{
    const int exponent = (int)(largest_of(x, n) >> COH_EXPONENT);
    const int scale = TOP + COH_BIAS - exponent;

    if (exponent == 0)
        return 1;
    return ldexpf(1, scale < SCALE_MOST ? scale : SCALE_MOST);
}

/* Of values from 2^127 on some are rounded up to 2^128, which float32 does not
 * have. */
static int64_t count_infinite(float scale, const uint16_t *halves, int n)
{
    const uint16_t top = 0x7800; /* 2^15 */
    int64_t count = 0;

    for (int i = 0; scale <= 0x1p-113f && i < n; i++)
        count += (halves[i] & 0x7fff) == top;
    return count;
}

static void to_float16(float scale, const float *restrict x, int n,
                       uint16_t *restrict out, coh_narrowed *restrict counts)
{
    counts->zeroed += coh_half_pack(scale, x, n, out);
    counts->infinite += count_infinite(scale, out, n);
}

/* --- any ----------------------------------------------------------------- */

float coh_narrow_pack(coh_wire_kind format, const float *x, int64_t n,
                      void *out, coh_narrowed *counts)
{
    const float scale = format == COH_WIRE_FLOAT16 ? scale_of(x, n) : 1;
    uint16_t part[PART];

    if (format == COH_WIRE_FLOAT32) {
        if (out != x)
            memcpy(out, x, (size_t)coh_narrow_bytes(format, n));
        return 1;
    }
    for (int64_t at = 0; at < n; at += PART) {
        const int count = (int)(n - at < PART ? n - at : PART);
        if (format == COH_WIRE_FLOAT16)
            to_float16(scale, x + at, count, part, counts);
        else
            to_bfloat16(x + at, count, part, counts);
        memcpy((uint16_t *)out + at, part, (size_t)count * sizeof *part);
    }
    counts->values += n;
    return scale;
}

void coh_narrow_unpack(coh_wire_kind format, float scale, const void *in,
                       int64_t n, float *x)
{
    uint16_t part[PART];

    if (format == COH_WIRE_FLOAT32) {
        if (in != x)
            memcpy(x, in, (size_t)coh_narrow_bytes(format, n));
        return;
    }
    for (int64_t at = 0; at < n; at += PART) {
        const int count = (int)(n - at < PART ? n - at : PART);
        memcpy(part, (const uint16_t *)in + at, (size_t)count * sizeof *part);
        if (format == COH_WIRE_FLOAT16)
            coh_half_unpack(1 / scale, part, count, x + at);
        else
            from_bfloat16(part, count, x + at);
    }
}
