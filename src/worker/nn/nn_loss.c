/* nn_loss.c - softmax_cross_entropy, in training its gradient too.
 *
 * Row b with logits x, label y and loss weight v:
 *     loss = v (log sum exp x - x_y)
 *     d loss / d x_k = v (softmax_k - [k = y])
 * The largest logit is taken off first, so that nothing overflows. A row of
 * weight 0 adds 0, whatever is in it. Sums are double, rows in order: the
 * number of threads does not show.
 */
#include "worker/nn/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct loss {
    int64_t batch, classes;   /* B, K */
    const coh_tensor *logits; /* [B, K] */
    const coh_tensor *diff;   /* [B, K] */
    double rows[];            /* [B] */
} loss;

/* log sum exp of x[count]. Not finite if a logit is not. */
static double log_sum_exp(const float *x, int64_t count)
{
    float most = x[0];

    for (int64_t k = 1; k < count; k++)
        most = x[k] > most ? x[k] : most;
    double sum = (double)expf(x[0] - most);
    for (int64_t k = 1; k < count; k++)
        sum += (double)expf(x[k] - most);
    return (double)most + log(sum);
}

/* The row's loss; its gradient in diff[count]. */
static double step_row(const float *x, int64_t count, int32_t label,
                       float weight, float *diff)
{
    COH_ASSERT(label >= 0 && label < count);
    if (weight == 0.0f) {
        memset(diff, 0, (size_t)count * sizeof *diff);
        return 0.0;
    }
    const double all = log_sum_exp(x, count);
    for (int64_t k = 0; k < count; k++)
        diff[k] = weight * expf((float)((double)x[k] - all));
    /* softmax - 1 would lose all digits of a label that is nearly sure */
    diff[label] = weight * (float)expm1((double)x[label] - all);
    return (double)weight * (all - (double)x[label]);
}

static void run_train(void *thing, const coh_run *run)
{
    loss *self = thing;
    const coh_batch *batch = run->batch;
    const float *x = coh_tensor_data(self->logits);
    float *diff = coh_tensor_data(self->diff);

#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++)
        self->rows[b] =
            step_row(x + b * self->classes, self->classes, batch->labels[b],
                     batch->loss_weights[b], diff + b * self->classes);

    *run->sums = (coh_step_sums){ 0 };
    for (int64_t b = 0; b < self->batch; b++) {
        run->sums->loss += self->rows[b];
        run->sums->weight += (double)batch->loss_weights[b];
    }
}

static void run_infer(void *thing, const coh_run *run)
{
    const loss *self = thing;
    const float *x = coh_tensor_data(self->logits);

#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        const int64_t first = b * self->classes;
        const double all = log_sum_exp(x + first, self->classes);
        for (int64_t k = 0; k < self->classes; k++)
            run->log_probs[first + k] = (float)((double)x[first + k] - all);
    }
}

coh_status coh_loss_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const char *name = node->layer->spec.name;
    const int64_t batch = graph->batch;
    const int64_t classes = coh_shape_count(node->layer->in);

    loss *self = calloc(1, sizeof *self + (size_t)batch * sizeof(double));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory", name);
    self->batch = batch;
    self->classes = classes;
    node->own = self;
    COH_TRY(coh_graph_keep(graph, self, err));
    COH_TRY(coh_graph_flatten(
        graph, &graph->forward, name, (coh_dims){ 2, { batch, classes } },
        coh_graph_forward_slot(graph, node->src), &node->src, err));
    self->logits = node->src->tensor;
    node->dst = node->src;
    if (graph->training) /* all is done in backward */
        return COH_OK;
    return coh_graph_append(&graph->forward, run_infer, self, err);
}

coh_status coh_loss_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    loss *self = node->own;

    COH_TRY(coh_graph_plain(graph, coh_tensor_dims(self->logits),
                            COH_SLOT_SHARED, 0, &node->diff, err));
    self->diff = node->diff->tensor;
    return coh_graph_append(&graph->backward, run_train, self, err);
}
