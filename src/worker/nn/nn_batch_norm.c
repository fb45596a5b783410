/* nn_batch_norm.c - batch_norm in a graph: by batch_norm.h, in the layout that
 * comes. A relu behind it is done in the same pass over the values.
 *
 * In training a worker normalises by its own batch, never another's; the
 * statistics it tells are for the running ones (statistics.h), by which it
 * normalises in inference.
 */
#include "worker/nn/batch_norm.h"
#include "worker/nn/graph.h"

#include <stdlib.h>

typedef struct norm {
    coh_batch_norm *by; /* kept by the graph */
    int64_t channels;
    bool training;
    const coh_tensor *src, *dst, *diff;
    const coh_tensor *parameters, *gradient; /* [4, C]: factors, biases, means,
                                                variances */
} norm;

static void run_forward(void *thing, const coh_run *run)
{
    const norm *self = thing;
    const int64_t rows = run->batch->count, C = self->channels;
    const float *x = coh_tensor_data(self->src);
    const float *g = coh_tensor_data(self->parameters);

    if (self->training)
        coh_batch_norm_measure(self->by, rows, x);
    else
        coh_batch_norm_take(self->by, g + 2 * C, g + 3 * C);
    coh_batch_norm_forward(self->by, rows, x, g, g + C,
                           coh_tensor_data(self->dst));
}

/* The weight times the old statistics: they stay as they are. */
static void repeat(const float *old, int64_t count, double weight, float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)(weight * (double)old[i]);
}

static void run_weights(void *thing, const coh_run *run)
{
    const norm *self = thing;
    const int64_t rows = run->batch->count, C = self->channels;
    const double weight = run->sums->weight;
    const float *old = coh_tensor_data(self->parameters);
    float *dg = coh_tensor_data(self->gradient);

    coh_batch_norm_weights(self->by, rows, coh_tensor_data(self->src),
                           coh_tensor_data(self->diff), dg, dg + C);
    if (!coh_batch_norm_tell(self->by, rows, weight, dg + 2 * C, dg + 3 * C))
        repeat(old + 2 * C, 2 * C, weight, dg + 2 * C);
}

static void run_data(void *thing, const coh_run *run)
{
    const norm *self = thing;

    coh_batch_norm_data(self->by, run->batch->count, coh_tensor_data(self->src),
                        coh_tensor_data(self->parameters),
                        coh_tensor_data(self->diff));
}

static coh_status no_memory(const coh_layer *layer, coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM, "layer %s: no memory", layer->spec.name);
}

/* All parameters of the layer, in one of the two flat vectors. */
static coh_status view(coh_graph *graph, const coh_layer *layer, int slot,
                       const coh_tensor **out, coh_err *err)
{
    const coh_dims dims = { 1, { coh_layer_parameters(layer) } };
    coh_value *value = NULL;

    COH_TRY(
        coh_graph_plain(graph, dims, slot, layer->weight_first, &value, err));
    *out = value->tensor;
    return COH_OK;
}

/* node->src as [B, C, H, W], or [B, C], in a layout of channels. */
static coh_status settle_src(coh_graph *graph, coh_node *node,
                             coh_channels *channels, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const int slot = coh_graph_forward_slot(graph, node->src);
    coh_dims dims = coh_tensor_dims(node->src->tensor);

    if (dims.count != 2 || coh_shape_count(layer->in) != layer->in.c)
        dims = coh_dims_of(graph->batch, layer->in);
    COH_TRY(coh_graph_reshape(graph, &graph->forward, layer->spec.name, dims,
                              slot, &node->src, err));
    if (coh_layout_channels(coh_tensor_layout(node->src->tensor), channels))
        return COH_OK;
    COH_TRY(coh_graph_unblock(graph, &graph->forward, layer->spec.name, slot,
                              &node->src, err));
    COH_ASSERT(
        coh_layout_channels(coh_tensor_layout(node->src->tensor), channels));
    return COH_OK;
}

coh_status coh_batch_norm_build_forward(coh_graph *graph, coh_node *node,
                                        coh_err *err)
{
    const coh_layer *layer = node->layer;
    coh_channels channels;

    norm *self = calloc(1, sizeof *self);
    if (self == NULL)
        return no_memory(layer, err);
    node->own = self;
    COH_TRY(coh_graph_keep(graph, self, err));
    COH_TRY(settle_src(graph, node, &channels, err));
    self->by = coh_batch_norm_new(&channels, layer->spec.epsilon,
                                  node->then_relu ? node->slope : 1.0f);
    if (self->by == NULL)
        return no_memory(layer, err);
    COH_TRY(coh_graph_keep(graph, self->by, err));
    self->channels = layer->in.c;
    self->training = graph->training;
    COH_TRY(view(graph, layer, COH_SLOT_PARAMETERS, &self->parameters, err));
    COH_TRY(coh_graph_value(graph, coh_tensor_layout(node->src->tensor),
                            node->only_pooled
                                ? COH_SLOT_SHARED
                                : coh_graph_forward_slot(graph, node->src),
                            &node->dst, err));
    self->src = node->src->tensor;
    self->dst = node->dst->tensor;
    return coh_graph_append(&graph->forward, run_forward, self, err);
}

coh_status coh_batch_norm_build_backward(coh_graph *graph, coh_node *node,
                                         coh_err *err)
{
    norm *self = node->own;

    COH_TRY(view(graph, node->layer, COH_SLOT_GRADIENT, &self->gradient, err));
    COH_TRY(coh_graph_convert(graph, &graph->backward, node->layer->spec.name,
                              coh_tensor_layout(node->src->tensor),
                              coh_graph_other_slot(node->diff), &node->diff,
                              err));
    self->diff = node->diff->tensor;
    COH_TRY(coh_graph_append(&graph->backward, run_weights, self, err));
    if (!node->needs_diff_src)
        return COH_OK;
    return coh_graph_append(&graph->backward, run_data, self, err);
}
