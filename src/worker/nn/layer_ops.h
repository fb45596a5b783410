/* layer_ops.h - the ops of layers: what the graph builds, and what is measured
 * to choose between the ways to do it. For this room only. */
#ifndef COH_WORKER_NN_LAYER_OPS_H
#define COH_WORKER_NN_LAYER_OPS_H

#include "worker/nn/choice.h"
#include "worker/nn/dnn.h"

/* One pass of a layer with ways, done in that way: dims, window, formats;
 * direct if the way is none for this layer. A src of dense is [B, C, H, W], or
 * [B, I] if it is flat; done directly it may be in any layout, and is blocked
 * here. Bias is row-major, and there if the pass has one. */
coh_op_spec coh_linear_spec(const coh_layer *layer, int64_t batch,
                            coh_pass pass, coh_way way);

/* Is `way` an op for this layer? */
bool coh_linear_has_way(const coh_layer *layer, coh_way way);

/* Can its passes be done by winograd.h, here? */
bool coh_linear_can_winograd(const coh_layer *layer);

/* One pass of a pool, but for the layouts of src and dst. */
coh_op_spec coh_pool_spec(const coh_layer *layer, int64_t batch, coh_pass pass);

static inline bool coh_layer_is_relu(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_RELU ||
           layer->spec.kind == COH_LAYER_LEAKY_RELU;
}

static inline bool coh_layer_is_pool(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_MAXPOOL ||
           layer->spec.kind == COH_LAYER_AVGPOOL ||
           layer->spec.kind == COH_LAYER_GLOBAL_AVGPOOL;
}

#endif
