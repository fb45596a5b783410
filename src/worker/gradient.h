/* gradient.h - the gradient of a step, summed up over its batches.
 *
 *     new -> { begin -> add* }* -> destroy
 *
 * With train.accumulate: k, a worker's step is k batches of which each
 * overwrites a vector: those before the last are kept in a second one, and
 * added to what the last calculates part by part, as it says that a part is
 * complete. So an exchange begins as early as with one batch.
 *
 * Letters: P = model parameters.   Threads: one caller, and OpenMP's.
 * MPI: none.
 */
#ifndef COH_WORKER_GRADIENT_H
#define COH_WORKER_GRADIENT_H

#include "worker/compute.h"

typedef struct coh_gradient coh_gradient;

/* Of so many parameters; `accumulates`: of several batches a step. Fails with
 * COH_E_NOMEM. */
coh_status coh_gradient_new(int64_t parameters, bool accumulates,
                            coh_gradient **out, coh_err *err);
void coh_gradient_destroy(coh_gradient **self);

/* The vectors there are, of P floats each: for the memory plan. */
int coh_gradient_vectors(bool accumulates);

/* Another step. */
void coh_gradient_begin(coh_gradient *self);

/* Forward and backward on one batch, weights[P]; *sums: those of the step so
 * far, which the first batch begins. The watch is told need() in all of them,
 * and have() in the last only, of the sum of all: before, where have() would
 * come, need() of nothing. */
void coh_gradient_add(coh_gradient *self, const coh_compute *compute,
                      const coh_batch *batch, bool is_last,
                      const float *weights, coh_step_sums *sums,
                      const coh_watch *watch);

/* [P], borrowed: the sum over the batches of the step, complete where the watch
 * was told so, until the next begin(). */
float *coh_gradient_values(coh_gradient *self);

#endif
