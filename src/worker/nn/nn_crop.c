/* nn_crop.c - crop: a part of height and width, row-major. */
#include "worker/nn/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct crop {
    int64_t planes; /* B C */
    coh_shape in, out;
    int64_t first; /* where the part begins in a plane */
    const coh_tensor *src, *dst, *diff_src, *diff_dst;
} crop;

static void run_forward(void *thing, const coh_run *run)
{
    const crop *self = thing;
    const float *src = coh_tensor_data(self->src);
    float *dst = coh_tensor_data(self->dst);
    const int64_t h = self->out.h, w = self->out.w;

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < self->planes; p++)
        for (int64_t y = 0; y < h; y++)
            memcpy(dst + (p * h + y) * w,
                   src + (p * self->in.h + y) * self->in.w + self->first,
                   (size_t)w * sizeof *dst);
}

/* What was cut off has no gradient. */
static void run_backward(void *thing, const coh_run *run)
{
    const crop *self = thing;
    float *src = coh_tensor_data(self->diff_src);
    const float *dst = coh_tensor_data(self->diff_dst);
    const int64_t h = self->out.h, w = self->out.w;
    const int64_t plane = self->in.h * self->in.w;

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t p = 0; p < self->planes; p++) {
        memset(src + p * plane, 0, (size_t)plane * sizeof *src);
        for (int64_t y = 0; y < h; y++)
            memcpy(src + p * plane + y * self->in.w + self->first,
                   dst + (p * h + y) * w, (size_t)w * sizeof *src);
    }
}

coh_status coh_crop_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const int64_t *offset = layer->spec.offset;

    crop *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);
    *self = (crop){ .planes = graph->batch * layer->in.c,
                    .in = layer->in,
                    .out = layer->out,
                    .first = offset[0] * layer->in.w + offset[1] };
    node->own = self;
    COH_TRY(coh_graph_keep(graph, self, err));
    COH_TRY(coh_graph_flatten(graph, &graph->forward, layer->spec.name,
                              coh_dims_of(graph->batch, layer->in),
                              COH_SLOT_SHARED, &node->src, err));
    COH_TRY(coh_graph_plain(graph, coh_dims_of(graph->batch, layer->out),
                            coh_graph_forward_slot(graph, node->src), 0,
                            &node->dst, err));
    self->src = node->src->tensor;
    self->dst = node->dst->tensor;
    return coh_graph_append(&graph->forward, run_forward, self, err);
}

coh_status coh_crop_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    crop *self = node->own;

    COH_TRY(coh_graph_unblock(graph, &graph->backward, layer->spec.name,
                              COH_SLOT_SHARED, &node->diff, err));
    self->diff_dst = node->diff->tensor;
    COH_TRY(coh_graph_plain(graph, coh_dims_of(graph->batch, layer->in),
                            COH_SLOT_SHARED, 0, &node->diff, err));
    self->diff_src = node->diff->tensor;
    return coh_graph_append(&graph->backward, run_backward, self, err);
}
