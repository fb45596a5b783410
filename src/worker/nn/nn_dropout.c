/* nn_dropout.c - dropout; nothing at all in inference.
 *
 * Value e of a sample, in [C, H, W] order, is kept if word e % 4 of block e / 4
 * of the layer's random sequence for (epoch, sample) is at least `rate`: the
 * mask does not depend on layout, threads, or where in a batch a sample stands.
 * It is made row-major, and brought into the layout of the values.
 */
#include "worker/nn/graph.h"

#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "common/simd.h"

typedef struct dropout {
    double rate;
    coh_rng_key key;
    int64_t batch, row_count; /* B, values in a row */
    int64_t count; /* floats in memory: also the zeros that fill up a blocked
                      layout, in src as in mask */
    coh_tensor *plain, *mask; /* the same if src is row-major */
    coh_tensor *src, *dst, *diff;
} dropout;

static void fill_row(const dropout *self, uint32_t epoch, uint64_t sample,
                     float *row)
{
    const float kept = (float)(1.0 / (1.0 - self->rate));
    uint32_t word[4];

    for (int64_t e = 0; e < self->row_count; e++) {
        if (e % 4 == 0)
            coh_rng_words(self->key, epoch, sample, (uint32_t)(e / 4), word);
        row[e] = coh_rng_uniform(word[e % 4]) >= self->rate ? kept : 0.0f;
    }
}

static void make_mask(void *thing, const coh_run *run)
{
    const dropout *self = thing;
    const coh_batch *batch = run->batch;
    float *mask = coh_tensor_data(self->plain);

#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        float *row = mask + b * self->row_count;
        if (b < batch->count)
            fill_row(self, batch->epoch, (uint64_t)batch->samples[b], row);
        else
            memset(row, 0, (size_t)self->row_count * sizeof *row);
    }
}

/* out may be in. */
COH_SIMD
static void multiply(const float *in, const float *mask, int64_t count,
                     float *out)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = in[i] * mask[i];
}

static void multiply_all(const dropout *self, const coh_tensor *from,
                         const coh_tensor *to)
{
    enum { PIECE = 16384 };
    const float *in = coh_tensor_data(from),
                *mask = coh_tensor_data(self->mask);
    float *out = coh_tensor_data(to);

#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->count; i += PIECE) {
        const int64_t left = self->count - i;
        multiply(in + i, mask + i, left < PIECE ? left : PIECE, out + i);
    }
}

static void run_forward(void *thing, const coh_run *run)
{
    const dropout *self = thing;

    (void)run;
    multiply_all(self, self->src, self->dst);
}

static void run_backward(void *thing, const coh_run *run)
{
    const dropout *self = thing;

    (void)run;
    multiply_all(self, self->diff, self->diff);
}

/* The layer's own state, kept by the graph. */
static coh_status make_state(coh_graph *graph, coh_node *node, coh_err *err)
{
    dropout *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        node->layer->spec.name);

    self->rate = node->layer->spec.rate;
    self->key =
        coh_rng_key_of(graph->seed, COH_RNG_LAYER + (uint32_t)node->index);
    self->batch = graph->batch;
    self->row_count = coh_shape_count(node->layer->in);
    self->count =
        (int64_t)(coh_layout_bytes(coh_tensor_layout(node->src->tensor)) /
                  sizeof(float));
    self->src = node->src->tensor;
    node->own = self;
    return coh_graph_keep(graph, self, err);
}

coh_status coh_dropout_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layout *layout = coh_tensor_layout(node->src->tensor);
    coh_tape *tape = &graph->forward;
    coh_value *mask = NULL;

    node->dst = node->src;
    if (!graph->training)
        return COH_OK;
    COH_TRY(make_state(graph, node, err));
    dropout *self = node->own;

    COH_TRY(coh_graph_plain(graph, coh_tensor_dims(self->src), COH_SLOT_SRC, 0,
                            &mask, err));
    self->plain = mask->tensor;
    if (coh_layout_equal(layout, coh_tensor_layout(self->plain)))
        mask->slot = graph->nslots++; /* it is what backward needs */
    COH_TRY(coh_graph_append(tape, make_mask, self, err));
    COH_TRY(coh_graph_convert(graph, tape, node->layer->spec.name, layout,
                              COH_SLOT_OWN, &mask, err));
    self->mask = mask->tensor;
    COH_TRY(coh_graph_value(graph, layout, COH_SLOT_OWN, &node->dst, err));
    self->dst = node->dst->tensor;
    return coh_graph_append(tape, run_forward, self, err);
}

coh_status coh_dropout_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    dropout *self = node->own;

    COH_TRY(coh_graph_convert(graph, &graph->backward, node->layer->spec.name,
                              coh_tensor_layout(self->mask),
                              coh_graph_other_slot(node->diff), &node->diff,
                              err));
    self->diff = node->diff->tensor;
    return coh_graph_append(&graph->backward, run_backward, self, err);
}
