/* nn_winograd.c - passes of conv2d and deconv2d that are done by winograd.h.
 *
 * Weights and their gradient are used where they are, in the flat vectors; all
 * values are blocked.
 */
#include <stdlib.h>

#include "worker/nn/graph.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/winograd.h"

typedef struct pass {
    coh_winograd shape;
    coh_winograd_pass kind;
    const coh_tensor *fine, *coarse, *weights, *work;
    const coh_tensor *bias; /* NULL: none */
    float slope;
} pass;

static bool is_conv(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_CONV2D;
}

static void run_values(void *thing, const coh_run *run)
{
    const pass *self = thing;
    const coh_winograd_end end = { .bias = self->bias != NULL
                                               ? coh_tensor_data(self->bias)
                                               : NULL,
                                   .slope = self->slope };

    (void)run;
    if (self->kind == COH_WINOGRAD_COARSE)
        coh_winograd_to_coarse(&self->shape, coh_tensor_data(self->fine),
                               coh_tensor_data(self->weights), end,
                               coh_tensor_data(self->work),
                               coh_tensor_data(self->coarse));
    else
        coh_winograd_to_fine(&self->shape, coh_tensor_data(self->coarse),
                             coh_tensor_data(self->weights), end,
                             coh_tensor_data(self->work),
                             coh_tensor_data(self->fine));
}

static void run_weights(void *thing, const coh_run *run)
{
    const pass *self = thing;

    (void)run;
    coh_winograd_to_weights(&self->shape, coh_tensor_data(self->fine),
                            coh_tensor_data(self->coarse),
                            coh_tensor_data(self->work),
                            coh_tensor_data(self->weights));
}

/* The bias's gradient, from `fine`: that of the layer's output. */
static void run_bias(void *thing, const coh_run *run)
{
    const pass *self = thing;
    const coh_dims dims = coh_tensor_dims(self->fine);

    (void)run;
    coh_winograd_sum(coh_tensor_data(self->fine), dims.size[0], dims.size[1],
                     dims.size[2] * dims.size[3], coh_tensor_data(self->bias));
}

/* --- building ------------------------------------------------------------ */

static coh_status new_pass(coh_graph *graph, const coh_layer *layer,
                           coh_winograd_pass kind, pass **out, coh_err *err)
{
    coh_value *work = NULL;
    pass *self = calloc(1, sizeof *self);

    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);
    COH_TRY(coh_graph_keep(graph, self, err));
    self->shape = coh_winograd_of(layer, graph->batch);
    self->kind = kind;
    self->slope = 1;
    const coh_dims room = { 1,
                            { coh_winograd_work_count(&self->shape, kind) } };
    COH_TRY(coh_graph_plain(graph, room, COH_SLOT_SCRATCHPAD, 0, &work, err));
    self->work = work->tensor;
    *out = self;
    return COH_OK;
}

static coh_status append(coh_tape *tape, pass *self,
                         void (*run)(void *self, const coh_run *run),
                         coh_err *err)
{
    COH_TRY(coh_graph_append(tape, run, self, err));
    coh_graph_describe(tape, "cohort:winograd",
                       coh_winograd_saving(&self->shape, self->kind));
    return COH_OK;
}

/* *value, a copy of `original` or that itself, is blocked afterwards. */
static coh_status block(coh_graph *graph, coh_tape *tape, const coh_node *node,
                        int slot, coh_value *original, coh_value **value,
                        coh_err *err)
{
    coh_value *wanted = NULL; /* in place, if it is blocked */

    COH_TRY(coh_graph_in(graph, coh_tensor_dims((*value)->tensor),
                         COH_FORMAT_BLOCKED, (*value)->slot, &wanted, err));
    const coh_layout *layout = coh_tensor_layout(wanted->tensor);
    if (coh_layout_equal(layout, coh_tensor_layout((*value)->tensor)))
        return COH_OK;
    *value = original;
    return coh_graph_convert(graph, tape, node->layer->spec.name, layout, slot,
                             value, err);
}

coh_status coh_winograd_build_forward(coh_graph *graph, coh_node *node,
                                      coh_err *err)
{
    const coh_layer *layer = node->layer;
    const bool conv = is_conv(layer);
    pass *self = NULL;

    COH_TRY(new_pass(graph, layer,
                     conv ? COH_WINOGRAD_COARSE : COH_WINOGRAD_FINE, &self,
                     err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_PARAMETERS, layer->weight_first,
                           layer->weight_count, &self->weights, err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_PARAMETERS, layer->bias_first,
                           layer->bias_count, &self->bias, err));
    if (node->then_relu)
        self->slope = node->slope;
    node->backup = node->src;
    COH_TRY(block(graph, &graph->forward, node,
                  graph->training ? COH_SLOT_OWN : COH_SLOT_SRC, node->src,
                  &node->backup, err));
    COH_TRY(coh_graph_in(
        graph, coh_dims_of(graph->batch, layer->out), COH_FORMAT_BLOCKED,
        node->only_pooled ? COH_SLOT_SHARED
                          : coh_graph_forward_slot(graph, node->src),
        &node->dst, err));
    self->fine = conv ? node->backup->tensor : node->dst->tensor;
    self->coarse = conv ? node->dst->tensor : node->backup->tensor;
    return append(&graph->forward, self, run_values, err);
}

static coh_status append_sum(coh_graph *graph, const coh_layer *layer,
                             const coh_value *diff, coh_err *err)
{
    pass *self = calloc(1, sizeof *self);

    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);
    COH_TRY(coh_graph_keep(graph, self, err));
    self->fine = diff->tensor;
    COH_TRY(coh_graph_view(graph, COH_SLOT_GRADIENT, layer->bias_first,
                           layer->bias_count, &self->bias, err));
    return coh_graph_append(&graph->backward, run_bias, self, err);
}

coh_status coh_winograd_build_weights(coh_graph *graph, coh_node *node,
                                      coh_value **diff, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const bool conv = is_conv(layer);
    coh_tape *tape = &graph->backward;
    coh_value *src = node->backup;
    pass *self = NULL;

    COH_TRY(new_pass(graph, layer, COH_WINOGRAD_WEIGHTS, &self, err));
    COH_TRY(block(graph, tape, node, COH_SLOT_SRC, node->src, &src, err));
    COH_TRY(block(graph, tape, node, COH_SLOT_DIFF_DST, node->diff, diff, err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_GRADIENT, layer->weight_first,
                           layer->weight_count, &self->weights, err));
    self->fine = conv ? src->tensor : (*diff)->tensor;
    self->coarse = conv ? (*diff)->tensor : src->tensor;
    if (layer->bias_count > 0)
        COH_TRY(append_sum(graph, layer, *diff, err));
    return append(tape, self, run_weights, err);
}

coh_status coh_winograd_build_data(coh_graph *graph, coh_node *node,
                                   coh_value *diff, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const bool conv = is_conv(layer);
    const int slot = coh_graph_other_slot(node->diff);
    coh_tape *tape = &graph->backward;
    pass *self = NULL;

    COH_TRY(new_pass(graph, layer,
                     conv ? COH_WINOGRAD_FINE : COH_WINOGRAD_COARSE, &self,
                     err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_PARAMETERS, layer->weight_first,
                           layer->weight_count, &self->weights, err));
    COH_TRY(
        block(graph, tape, node, COH_SLOT_DIFF_DST, node->diff, &diff, err));
    COH_TRY(coh_graph_in(graph, coh_dims_of(graph->batch, layer->in),
                         COH_FORMAT_BLOCKED, slot, &node->diff, err));
    self->fine = conv ? node->diff->tensor : diff->tensor;
    self->coarse = conv ? diff->tensor : node->diff->tensor;
    return append(tape, self, run_values, err);
}
