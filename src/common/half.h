/* half.h - float32 to IEEE 754 binary16 and back, times a factor.
 *
 * Rounded to nearest, ties to even; infinities and NaN are kept, a NaN made
 * quiet. Two ways, by the processor's own instructions (F16C) or without: the
 * bits are the same, also where denormals are flushed, if no product is a
 * denormal float32 that would not become 0 anyway.
 *
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_HALF_H
#define COH_COMMON_HALF_H

#include <stdint.h>

/* out[n] = x[n] x factor; no finite product may reach 65520. Returns how many
 * became 0 that were not. */
int64_t coh_half_pack(float factor, const float *restrict x, int n,
                      uint16_t *restrict out);

/* x[n] = in[n] x factor. */
void coh_half_unpack(float factor, const uint16_t *restrict in, int n,
                     float *restrict x);

#endif
