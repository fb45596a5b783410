/* finite.h - is every number of a vector finite?
 *
 * Pure.   Threads: any.   MPI: none.
 */
#ifndef COH_COMMON_FINITE_H
#define COH_COMMON_FINITE_H

#include <stdbool.h>
#include <stdint.h>

/* False if a number of x[n] is a NaN or infinite. */
bool coh_is_finite(const float *x, int64_t n);

#endif
