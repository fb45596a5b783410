/* squares.h - the squared L2 norm of vectors, and of a gradient, a block
 * at a time.
 *
 * Running statistics (statistics.h) are no gradient: they are left out, but
 * must be finite too.
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_OPTIM_SQUARES_H
#define COH_COMMON_OPTIM_SQUARES_H

#include <stdbool.h>

#include "common/plan.h"
#include "common/statistics.h"

/* The sum of x[n] squared, always in the same order; not finite if an element
 * is not. */
double coh_square_sum(const float *x, int64_t n);

/* Add the squares of gradient[range.count], of these parameters, to *squares,
 * always in the same order. False if an element is not finite: nor is *squares.
 */
bool coh_squares_add(const coh_statistics *statistics, coh_range range,
                     const float *gradient, double *squares);

#endif
