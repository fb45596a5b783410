/* add.h - vectors added up.
 *
 * Pure.   Threads: any.   MPI: none.
 */
#ifndef COH_COMMON_ADD_H
#define COH_COMMON_ADD_H

#include <stdint.h>

/* sum[n] += more[n], which must not overlap. */
void coh_add(int64_t n, float *sum, const float *more);

#endif
