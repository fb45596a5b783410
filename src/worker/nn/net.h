/* net.h - the network by oneDNN: the coh_compute of real training.
 *
 *     coh_net_new -> { train | infer }* -> destroy      (compute.h)
 *
 * All primitives and all memory are made in coh_net_new(): once for training
 * and once for inference, which share the memory. A step allocates nothing.
 * The caller's vectors are plain (model.h); layouts of oneDNN's own never
 * leave this room.
 *
 * Results: the same bits for the same input, choices, threads, and kind of
 * machine.
 * Gradients of layers before the first with weights are not calculated.
 * Dropout is a pure function of seed, layer, epoch, sample and position.
 * A parameter that is not finite shows: the loss is not finite, or in training
 * the gradient. Images must be finite (dataset.h sees to it): a NaN among them
 * may vanish in a relu or maxpool of the library.
 * Denormal numbers count as 0 in every OpenMP thread from the first step on,
 * also in what the caller calculates there afterwards (x86; elsewhere not).
 *
 * Threads  one caller, which may be any; the OpenMP threads are used inside.
 * MPI      none.
 */
#ifndef COH_WORKER_NN_NET_H
#define COH_WORKER_NN_NET_H

#include "common/model.h"
#include "worker/compute.h"
#include "worker/nn/choice.h"
#include "worker/nn/profile.h"

/* Make the steps of `model`, for training batches of capacity train_batch and
 * inference batches of infer_batch; 0: that step is never called. `threads` is
 * set for all OpenMP of the calling thread; 0 leaves it as it is. `model` is
 * borrowed during the call. So is `choices`, of this model: how each pass is
 * calculated; NULL: direct convolutions in oneDNN's layouts. A way that oneDNN
 * refuses becomes direct.
 * On COH_OK *out is the caller's, to end with out->destroy(&out->self).
 * Fails with COH_E_NOMEM, or COH_E_FAILED: the layer that oneDNN refused. */
coh_status coh_net_new(const coh_model *model, int64_t train_batch,
                       int64_t infer_batch, uint64_t seed, int threads,
                       const coh_choices *choices, coh_compute *out,
                       coh_err *err);

/* The memory that coh_net_new() would take for values: that of the training
 * step and that of the inference step, of which it takes the larger. All is
 * built for it but that memory. And what the largest op needs by itself, as it
 * does when it is timed (probe.h). Fails as coh_net_new(). */
typedef struct coh_net_bytes {
    int64_t train, infer, op;
} coh_net_bytes;
coh_status coh_net_predict(const coh_model *model, int64_t train_batch,
                           int64_t infer_batch, int threads,
                           const coh_choices *choices, coh_net_bytes *out,
                           coh_err *err);

/* How many parts a training step of this net has; described in parts[] unless
 * that is NULL. `compute` is one of coh_net_new(), with a training batch. */
int coh_net_parts(const coh_compute *compute, coh_step_part *parts);

/* compute->train(), with a look at the clock after each part: the time of the
 * whole, and parts[] where it is less than what stands there. */
void coh_net_time(const coh_compute *compute, const coh_batch *batch,
                  const float *weights, float *gradient, coh_step_part *parts,
                  double *seconds);

#endif
