/* statistics.h - the parameters that are measured instead of trained.
 *
 * The running statistics of batch_norm are part of the model: they lie in the
 * flat vector, and are exchanged, saved and evaluated as weights are. In a
 * gradient, the statistic of the batch stands at their place, times the batch's
 * weight: so the mean over a group is that of its members' statistics, weighted
 * as their gradients are. Who owns the block applies, whatever the optimizer's
 * rule,
 *     w = momentum w + (1 - momentum) mean
 * without rate, schedule, weight decay or clipping; the norm of a gradient
 * leaves them out.
 *
 * Asynchronous groups: each update stands for itself, whatever version of the
 * weights it was calculated from. A true gradient, w - mean at that version,
 * would not do: applied s updates late with momentum 0.9 it swings, and makes
 * variances negative, from s = 4 on, and grows without end from s = 16 on.
 * Nor would the sum of what groups changed in steps of their own
 * (exchange.every): those send their values instead, which replace the old ones.
 *
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_STATISTICS_H
#define COH_COMMON_STATISTICS_H

#include <stdint.h>

/* Parameters [first, first + count) of the flat vector. */
typedef struct coh_statistic {
    int64_t first, count;
    double momentum; /* what an update leaves of the old value, in [0, 1) */
} coh_statistic;

/* In the order of the vector, apart from each other. All zero: there are none.
 */
typedef struct coh_statistics {
    int count;
    coh_statistic *items; /* [count] */
} coh_statistics;

/* How many of the parameters [first, end), not none, are alike from the first
 * on: of *statistic, or trained, and *statistic is NULL. */
int64_t coh_statistics_run(const coh_statistics *self, int64_t first,
                           int64_t end, const coh_statistic **statistic);

#endif
