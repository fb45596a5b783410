/* timed.h - a network that takes its time instead of computing: the coh_compute
 * of a simulated run.
 *
 *     coh_timed_new -> { train | infer }* -> destroy      (compute.h)
 *
 * Time     is the caller's: `spend` lets pass what so many flop take. It is
 *          called for each pass of each layer that has flop (model.h), for all
 *          rows of the batch, padding too: forward, input gradient where that
 *          leads to weights, weight gradient. In between the watch is called as
 *          by a real network.
 * Numbers  are not the network's. Sample i pulls every trained parameter w
 *          towards c = i mod 2:
 *              loss = 1/2 sum_w (w - c)^2,    gradient = w - c
 *          so what a run makes of its gradients can be calculated beside it:
 *          with as many even samples as odd in a step, and no momentum, SGD of
 *          rate r multiplies each w - 1/2 by 1 - r. The loss counts as the
 *          model's first. Running statistics stay as they are; to infer(), all
 *          classes are alike.
 *
 * Threads: one caller.   MPI: none, but what `spend` does.
 */
#ifndef COH_WORKER_TIMED_H
#define COH_WORKER_TIMED_H

#include "common/model.h"
#include "worker/compute.h"

typedef void (*coh_timed_spend)(void *user, double flop);

/* model and user are borrowed until destroy. On COH_OK *out is the caller's, to
 * end with out->destroy(&out->self). Fails with COH_E_NOMEM. */
coh_status coh_timed_new(const coh_model *model, coh_timed_spend spend,
                         void *user, coh_compute *out, coh_err *err);

#endif
