/* compute.h - what one step of a worker calculates, behind one interface:
 * oneDNN (nn/net.h) or a timed model of it.
 *
 * Letters: B = batch capacity, P = model parameters, K = classes.
 */
#ifndef COH_WORKER_COMPUTE_H
#define COH_WORKER_COMPUTE_H

#include "worker/batch.h"

/* The loss of a row is the sum of the model's losses, each times its weight
 * (model.h), in nats where it is a cross entropy. */
typedef struct coh_step_sums {
    double loss;   /* sum over rows of loss_weight x loss */
    double weight; /* sum over rows of loss_weight, labelled or not */
    double terms[COH_LOSSES_MAX]; /* what each loss of the model is of `loss` */
} coh_step_sums;

/* Told how a training step gets on, so that an exchange can go on beside it. */
typedef struct coh_watch {
    void *user;

    /* Before forward reads weights[0, end) for the first time. */
    void (*need)(void *user, int64_t end);

    /* After each part of backward: gradient[first, P) is complete, and
     * weights[first, P) are not read any more. */
    void (*have)(void *user, int64_t first);
} coh_watch;

typedef struct coh_compute {
    void *self;

    /* Forward and backward in training mode. gradient[P] is overwritten with
     * the SUM over rows of loss_weight x d(loss)/d(weight): divide by
     * the summed weight of all members to have the mean. weights[P] is read.
     * At the place of a running statistic (statistics.h): the summed weight x
     * the statistic of these rows, padding not counted; variances are
     * unbiased, over N - 1. Rows too few to have a variance (N < 2) measure
     * nothing: they repeat weights[P]. `watch` may be NULL. */
    void (*train)(void *self, const coh_batch *batch, const float *weights,
                  float *gradient, coh_step_sums *sums, const coh_watch *watch);

    /* Forward in inference mode: log_probs[B, K], log softmax of the model's
     * classifier, in nats; not touched if it has none. */
    void (*infer)(void *self, const coh_batch *batch, const float *weights,
                  float *log_probs, coh_step_sums *sums);

    /* Free self; NULL afterwards. */
    void (*destroy)(void **self);
} coh_compute;

#endif
