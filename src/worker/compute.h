/* compute.h - what one step of a worker calculates, behind one interface:
 * oneDNN (nn/net.h) or a timed model of it.
 *
 * Letters: B = batch capacity, P = model parameters, K = classes.
 */
#ifndef COH_WORKER_COMPUTE_H
#define COH_WORKER_COMPUTE_H

#include "worker/batch.h"

typedef struct coh_step_sums {
    double loss;   /* sum over rows of loss_weight x cross entropy (nats) */
    double weight; /* sum over rows of loss_weight */
} coh_step_sums;

typedef struct coh_compute {
    void *self;

    /* Forward and backward in training mode. gradient[P] is overwritten with
     * the SUM over rows of loss_weight x d(cross entropy)/d(weight): divide by
     * the summed weight of all members to have the mean. weights[P] is read. */
    void (*train)(void *self, const coh_batch *batch, const float *weights,
                  float *gradient, coh_step_sums *sums);

    /* Forward in inference mode: log_probs[B, K], log softmax, in nats. */
    void (*infer)(void *self, const coh_batch *batch, const float *weights,
                  float *log_probs);

    /* Free self; NULL afterwards. */
    void (*destroy)(void **self);
} coh_compute;

#endif
