/* nn_join.c - add and concat: layers of several inputs.
 *
 * add works in its first input's layout, and hands its gradient to one input,
 * a copy to the others: each may change its own. concat works row-major, where
 * the channels of an input are one piece of memory in each row.
 */
#include "worker/nn/graph.h"

#include <stdlib.h>
#include <string.h>

#include "common/simd.h"

/* The inputs, and their gradients where they are needed, else NULL. */
typedef struct join {
    int count;
    int64_t batch;
    const coh_tensor *src[COH_FROM_MAX], *diff_src[COH_FROM_MAX];
    int64_t sizes[COH_FROM_MAX]; /* concat: values in a row of each */
    const coh_tensor *dst, *diff;
    int64_t floats; /* add: in memory, with what fills a layout up; concat: in
                       a row of dst */
} join;

static coh_status make_state(coh_graph *graph, coh_node *node, join **out,
                             coh_err *err)
{
    join *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        node->layer->spec.name);
    self->count = node->layer->ninputs;
    self->batch = graph->batch;
    node->own = *out = self;
    return coh_graph_keep(graph, self, err);
}

/* Input k with four axes, for use in this layer only. */
static coh_status four_axes(coh_graph *graph, coh_node *node, int k,
                            coh_err *err)
{
    coh_dims dims = coh_tensor_dims(node->srcs[k]->tensor);

    if (dims.count == 4)
        return COH_OK;
    dims = (coh_dims){ 4, { dims.size[0], dims.size[1], 1, 1 } };
    return coh_graph_flatten(graph, &graph->forward, node->layer->spec.name,
                             dims, COH_SLOT_SHARED, &node->srcs[k], err);
}

/* --- add ---------------------------------------------------------------- */

COH_SIMD
static void add(const float *a, const float *b, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = a[i] + b[i];
}

static void run_add(void *thing, const coh_run *run)
{
    enum { PIECE = 16384 };
    const join *self = thing;
    float *dst = coh_tensor_data(self->dst);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->floats; i += PIECE) {
        const int64_t left = self->floats - i;
        const int64_t count = left < PIECE ? left : PIECE;
        const float *first = coh_tensor_data(self->src[0]);
        for (int k = 1; k < self->count; k++) {
            const float *more = coh_tensor_data(self->src[k]);
            add(first + i, more + i, count, dst + i);
            first = dst;
        }
    }
}

coh_status coh_add_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    join *self = NULL;

    COH_TRY(make_state(graph, node, &self, err));
    for (int k = 0; k < self->count; k++)
        COH_TRY(four_axes(graph, node, k, err));
    const coh_layout *layout = coh_tensor_layout(node->srcs[0]->tensor);
    for (int k = 0; k < self->count; k++) {
        COH_TRY(coh_graph_convert(graph, &graph->forward,
                                  node->layer->spec.name, layout,
                                  COH_SLOT_SHARED, &node->srcs[k], err));
        self->src[k] = node->srcs[k]->tensor;
    }
    COH_TRY(coh_graph_value(graph, layout,
                            coh_graph_forward_slot(graph, node->src),
                            &node->dst, err));
    self->dst = node->dst->tensor;
    self->floats = (int64_t)(coh_layout_bytes(layout) / sizeof(float));
    return coh_graph_append(&graph->forward, run_add, self, err);
}

coh_status coh_add_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    bool is_given = false;

    for (int k = 0; k < layer->ninputs; k++) {
        node->diffs[k] = node->diff;
        if (!layer->needs_diff[k])
            continue;
        if (is_given) {
            COH_TRY(coh_graph_value(graph,
                                    coh_tensor_layout(node->diff->tensor),
                                    COH_SLOT_SHARED, &node->diffs[k], err));
            COH_TRY(coh_graph_copy(graph, &graph->backward, layer->spec.name,
                                   node->diff, node->diffs[k], err));
        }
        is_given = true;
    }
    return COH_OK;
}

/* --- concat ------------------------------------------------------------- */

static void run_concat(void *thing, const coh_run *run)
{
    const join *self = thing;
    float *dst = coh_tensor_data(self->dst);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        float *row = dst + b * self->floats;
        for (int k = 0; k < self->count; row += self->sizes[k++])
            memcpy(row,
                   (const float *)coh_tensor_data(self->src[k]) +
                       b * self->sizes[k],
                   (size_t)self->sizes[k] * sizeof *row);
    }
}

static void run_split(void *thing, const coh_run *run)
{
    const join *self = thing;
    const float *diff = coh_tensor_data(self->diff);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        const float *row = diff + b * self->floats;
        for (int k = 0; k < self->count; row += self->sizes[k++])
            if (self->diff_src[k] != NULL)
                memcpy((float *)coh_tensor_data(self->diff_src[k]) +
                           b * self->sizes[k],
                       row, (size_t)self->sizes[k] * sizeof *row);
    }
}

coh_status coh_concat_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    join *self = NULL;

    COH_TRY(make_state(graph, node, &self, err));
    for (int k = 0; k < self->count; k++) {
        COH_TRY(four_axes(graph, node, k, err));
        COH_TRY(coh_graph_unblock(graph, &graph->forward, layer->spec.name,
                                  COH_SLOT_SHARED, &node->srcs[k], err));
        self->src[k] = node->srcs[k]->tensor;
        self->sizes[k] =
            coh_tensor_dims(self->src[k]).size[1] * layer->in.h * layer->in.w;
    }
    COH_TRY(coh_graph_plain(graph, coh_dims_of(graph->batch, layer->out),
                            coh_graph_forward_slot(graph, node->src), 0,
                            &node->dst, err));
    self->dst = node->dst->tensor;
    self->floats = coh_shape_count(layer->out);
    return coh_graph_append(&graph->forward, run_concat, self, err);
}

coh_status coh_concat_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    join *self = node->own;

    COH_TRY(coh_graph_unblock(graph, &graph->backward, layer->spec.name,
                              COH_SLOT_SHARED, &node->diff, err));
    self->diff = node->diff->tensor;
    for (int k = 0; k < layer->ninputs; k++) {
        if (!layer->needs_diff[k])
            continue;
        COH_TRY(coh_graph_plain(graph, coh_tensor_dims(self->src[k]),
                                COH_SLOT_SHARED, 0, &node->diffs[k], err));
        self->diff_src[k] = node->diffs[k]->tensor;
    }
    return coh_graph_append(&graph->backward, run_split, self, err);
}
