/* nn_norm.c - layer_norm (Ba, Kiros, Hinton, arXiv 1607.06450).
 *
 * Row b of I values x, with weights g and bias h:
 *     u_i = (x_i - mean) / sqrt(variance + epsilon)        y_i = g_i u_i + h_i
 *     d x_i = (g_i d y_i - mean(g dy) - u_i mean(g dy u)) / sqrt(...)
 *     d g_i = sum over rows of d y_i u_i                   d h_i = ... d y_i
 * Row-major. Means are sums in double in the order of i, sums over rows in the
 * order of b: the number of threads does not show.
 */
#include "worker/nn/graph.h"

#include <math.h>
#include <stdlib.h>

/* Of a row, kept for backward. */
typedef struct moments {
    double mean, scale; /* 1 / sqrt(variance + epsilon) */
} moments;

typedef struct norm {
    int64_t batch, count; /* B, I */
    double epsilon;
    const coh_tensor *src, *dst, *weights, *bias; /* forward */
    const coh_tensor *diff_src, *diff_dst, *diff_weights, *diff_bias;
    moments rows[]; /* [B] */
} norm;

static moments measure(const float *x, int64_t count, double epsilon)
{
    double sum = 0, squares = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) {
        const double d = (double)x[i] - mean;
        squares += d * d;
    }
    return (moments){ mean, 1 / sqrt(squares / (double)count + epsilon) };
}

static void run_forward(void *thing, const coh_run *run)
{
    norm *self = thing;
    const int64_t n = self->count;
    const float *src = coh_tensor_data(self->src);
    const float *g = coh_tensor_data(self->weights);
    const float *h = coh_tensor_data(self->bias);
    float *dst = coh_tensor_data(self->dst);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        const float *x = src + b * n;
        const moments m = measure(x, n, self->epsilon);
        for (int64_t i = 0; i < n; i++)
            dst[b * n + i] =
                (float)(((double)x[i] - m.mean) * m.scale) * g[i] + h[i];
        self->rows[b] = m;
    }
}

/* dx of one row; dx may be dy. */
static void step_row(const norm *self, moments m, const float *x,
                     const float *g, const float *dy, float *dx)
{
    const int64_t n = self->count;
    double sum = 0, product = 0;

    for (int64_t i = 0; i < n; i++) {
        const double d = (double)g[i] * (double)dy[i];
        sum += d;
        product += d * ((double)x[i] - m.mean) * m.scale;
    }
    sum /= (double)n;
    product /= (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double u = ((double)x[i] - m.mean) * m.scale;
        dx[i] = (float)(((double)g[i] * (double)dy[i] - sum - u * product) *
                        m.scale);
    }
}

static void run_weights(void *thing, const coh_run *run)
{
    const norm *self = thing;
    const int64_t n = self->count;
    const float *src = coh_tensor_data(self->src);
    const float *diff = coh_tensor_data(self->diff_dst);
    float *dg = coh_tensor_data(self->diff_weights);
    float *dh = coh_tensor_data(self->diff_bias);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        double g = 0, h = 0;
        for (int64_t b = 0; b < self->batch; b++) {
            const moments m = self->rows[b];
            const double d = (double)diff[b * n + i];
            g += d * ((double)src[b * n + i] - m.mean) * m.scale;
            h += d;
        }
        dg[i] = (float)g;
        dh[i] = (float)h;
    }
}

static void run_data(void *thing, const coh_run *run)
{
    const norm *self = thing;
    const int64_t n = self->count;
    const float *src = coh_tensor_data(self->src);
    const float *g = coh_tensor_data(self->weights);
    const float *dy = coh_tensor_data(self->diff_dst);
    float *dx = coh_tensor_data(self->diff_src);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++)
        step_row(self, self->rows[b], src + b * n, g, dy + b * n, dx + b * n);
}

/* Weights and bias in one of the two flat vectors. */
static coh_status view(coh_graph *graph, const coh_layer *layer, int slot,
                       const coh_tensor **weights, const coh_tensor **bias,
                       coh_err *err)
{
    const coh_dims dims = { 1, { layer->weight_count } };
    coh_value *value = NULL;

    COH_TRY(
        coh_graph_plain(graph, dims, slot, layer->weight_first, &value, err));
    *weights = value->tensor;
    COH_TRY(coh_graph_plain(graph, dims, slot, layer->bias_first, &value, err));
    *bias = value->tensor;
    return COH_OK;
}

coh_status coh_norm_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const int64_t batch = graph->batch;

    norm *self = calloc(1, sizeof *self + (size_t)batch * sizeof(moments));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);
    self->batch = batch;
    self->count = coh_shape_count(layer->in);
    self->epsilon = layer->spec.epsilon;
    node->own = self;
    COH_TRY(coh_graph_keep(graph, self, err));
    COH_TRY(view(graph, layer, COH_SLOT_PARAMETERS, &self->weights, &self->bias,
                 err));
    COH_TRY(coh_graph_unblock(graph, &graph->forward, layer->spec.name,
                              coh_graph_forward_slot(graph, node->src),
                              &node->src, err));
    COH_TRY(coh_graph_plain(graph, coh_tensor_dims(node->src->tensor),
                            coh_graph_forward_slot(graph, node->src), 0,
                            &node->dst, err));
    self->src = node->src->tensor;
    self->dst = node->dst->tensor;
    return coh_graph_append(&graph->forward, run_forward, self, err);
}

coh_status coh_norm_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    norm *self = node->own;

    COH_TRY(view(graph, node->layer, COH_SLOT_GRADIENT, &self->diff_weights,
                 &self->diff_bias, err));
    COH_TRY(coh_graph_unblock(graph, &graph->backward, node->layer->spec.name,
                              COH_SLOT_SHARED, &node->diff, err));
    self->diff_dst = self->diff_src = node->diff->tensor;
    COH_TRY(coh_graph_append(&graph->backward, run_weights, self, err));
    if (!node->needs_diff_src)
        return COH_OK;
    return coh_graph_append(&graph->backward, run_data, self, err);
}
