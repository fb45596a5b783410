/* narrow.h - float32 vectors in 16 bits, for their way between ranks.
 *
 * bfloat16   the upper half of a float32: 8 bits of precision, and nearly as
 *            far: from (2 - 2^-8) 2^127 on, values become infinite.
 * float16    IEEE 754 binary16: 11 bits of precision, from 2^-24 to 65504. So
 *            a vector is multiplied by a power of two, its scale, that brings
 *            the largest finite magnitude into [2^14, 2^15): what is down to
 *            2^-28 of the largest has all bits, what is less than 2^-40 of it
 *            becomes 0. The scale is at most 2^101: below 2^-126 all is 0; and
 *            values from (2 - 2^-11) 2^127 on become infinite.
 *
 * Rounded to nearest, ties to even; signs, infinities and NaN are kept. The
 * bits are the same on all ranks, whether or not a thread flushes denormals.
 *
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_NARROW_H
#define COH_COMMON_NARROW_H

#include "common/config.h"

/* What became of values on their way; sums. */
typedef struct coh_narrowed {
    int64_t values;   /* made narrow */
    int64_t infinite; /* of them: finite before */
    int64_t zeroed;   /* of them: not 0 before */
} coh_narrowed;

void coh_narrowed_add(coh_narrowed *sum, const coh_narrowed *more);

/* As exchange.push and exchange.reply call it. */
const char *coh_narrow_name(coh_wire_kind format);

/* Of n values. */
int64_t coh_narrow_bytes(coh_wire_kind format, int64_t n);

/* x[n] as `format` into out, which may be x itself. Returns the scale, 1 but
 * for float16. *counts is added to; float32 is copied, and not counted. */
float coh_narrow_pack(coh_wire_kind format, const float *x, int64_t n,
                      void *out, coh_narrowed *counts);

/* And back into x. `in` may lie in x: at coh_narrow_place(), of n or more. */
void coh_narrow_unpack(coh_wire_kind format, float scale, const void *in,
                       int64_t n, float *x);

/* Where in x[room] up to `room` values can arrive, to be unpacked into x. */
void *coh_narrow_place(coh_wire_kind format, float *x, int64_t room);

#endif
