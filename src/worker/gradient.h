/* gradient.h - the gradient of a step, summed up over its batches.
 *
 *     new -> { begin -> add* }* -> destroy
 *
 * With train.accumulate: k, a worker's step is k batches of which each
 * overwrites a vector: those before the last are kept in a second one, and
 * added to what the last calculates part by part, as it says that a part is
 * complete. So an exchange begins as early as with one batch.
 * With exchange.lag: 1 the exchange of a step still has its sum while the next
 * is calculated: they lie in two vectors by turns.
 *
 * Letters: P = model parameters.   Threads: one caller, and OpenMP's.
 * MPI: none.
 */
#ifndef COH_WORKER_GRADIENT_H
#define COH_WORKER_GRADIENT_H

#include "worker/compute.h"

typedef struct coh_gradient coh_gradient;

/* Of so many parameters, by train.accumulate and exchange.lag. Fails with
 * COH_E_NOMEM. */
coh_status coh_gradient_new(const coh_config *config, int64_t parameters,
                            coh_gradient **out, coh_err *err);
void coh_gradient_destroy(coh_gradient **self);

/* The vectors there are, of P floats each: for the memory plan. */
int coh_gradient_vectors(const coh_config *config);

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
 * was told so. With a lag it stays until the begin() after the next, else until
 * that. */
float *coh_gradient_values(coh_gradient *self);

#endif
