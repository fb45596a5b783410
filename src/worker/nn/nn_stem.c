/* nn_stem.c - a convolution done by stem.h, with the relu and the pool behind
 * it; in training only. */
#include "worker/nn/graph.h"
#include "worker/nn/stem.h"

#include <stdlib.h>

typedef struct stem {
    coh_stem stem;
    const coh_tensor *images, *weights, *bias, *diff_weights, *diff_bias;
    const coh_tensor *padded, *work, *pooled, *places, *gradient;
} stem;

/* NULL if the layer has no bias. */
static float *floats(const coh_tensor *tensor)
{
    return tensor != NULL ? coh_tensor_data(tensor) : NULL;
}

static void run_forward(void *thing, const coh_run *run)
{
    const stem *self = thing;

    (void)run;
    coh_stem_forward(&self->stem, floats(self->images), floats(self->weights),
                     floats(self->bias), floats(self->padded),
                     floats(self->work), floats(self->pooled),
                     coh_tensor_data(self->places));
}

static void run_backward(void *thing, const coh_run *run)
{
    const stem *self = thing;

    (void)run;
    coh_stem_backward(&self->stem, floats(self->padded),
                      coh_tensor_data(self->places), floats(self->gradient),
                      floats(self->work), floats(self->diff_weights),
                      floats(self->diff_bias));
}

static coh_status add_memory(coh_graph *graph, stem *self, coh_err *err)
{
    const coh_stem *it = &self->stem;
    const int64_t pooled = it->batch * it->filters * it->rows * it->columns;

    COH_TRY(coh_graph_view(graph, COH_SLOT_OWN, 0, coh_stem_padded_count(it),
                           &self->padded, err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_OWN, 0,
                           pooled / (int64_t)sizeof(float), &self->places,
                           err)); /* a byte each */
    return coh_graph_view(graph, COH_SLOT_SCRATCHPAD, 0,
                          coh_stem_work_count(it), &self->work, err);
}

coh_status coh_stem_build_forward(coh_graph *graph, coh_node *node,
                                  coh_err *err)
{
    const coh_layer *layer = node->layer;
    stem *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);

    self->stem = coh_stem_of(layer, graph->batch);
    node->own = self;
    COH_TRY(coh_graph_keep(graph, self, err));
    COH_TRY(coh_graph_flatten(graph, &graph->forward, layer->spec.name,
                              coh_dims_of(graph->batch, layer->in),
                              COH_SLOT_OWN, &node->src, err));
    self->images = node->src->tensor;
    COH_TRY(coh_graph_view(graph, COH_SLOT_PARAMETERS, layer->weight_first,
                           layer->weight_count, &self->weights, err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_PARAMETERS, layer->bias_first,
                           layer->bias_count, &self->bias, err));
    COH_TRY(add_memory(graph, self, err));
    const coh_shape out = { self->stem.filters, self->stem.rows,
                            self->stem.columns };
    COH_TRY(coh_graph_in(graph, coh_dims_of(graph->batch, out),
                         COH_FORMAT_BLOCKED, COH_SLOT_OWN, &node->dst, err));
    self->pooled = node->dst->tensor;
    COH_TRY(coh_graph_append(&graph->forward, run_forward, self, err));
    coh_graph_describe(&graph->forward, "cohort:stem", 1);
    return COH_OK;
}

coh_status coh_stem_build_backward(coh_graph *graph, coh_node *node,
                                   coh_err *err)
{
    const coh_layer *layer = node->layer;
    stem *self = node->own;

    COH_TRY(coh_graph_convert(graph, &graph->backward, layer->spec.name,
                              coh_tensor_layout(self->pooled),
                              coh_graph_other_slot(node->diff), &node->diff,
                              err));
    self->gradient = node->diff->tensor;
    COH_TRY(coh_graph_view(graph, COH_SLOT_GRADIENT, layer->weight_first,
                           layer->weight_count, &self->diff_weights, err));
    COH_TRY(coh_graph_view(graph, COH_SLOT_GRADIENT, layer->bias_first,
                           layer->bias_count, &self->diff_bias, err));
    COH_TRY(coh_graph_append(&graph->backward, run_backward, self, err));
    coh_graph_describe(&graph->backward, "cohort:stem", 4);
    return COH_OK;
}
