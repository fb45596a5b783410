/* nn_loss.c - the losses: in training with their gradients, which is where a
 * backward pass begins; in inference their sums, and the classifier's log
 * probabilities.
 *
 * Rows are cut into pieces, the same for any number of threads; sums are
 * double, pieces in order. A row of weight 0 adds 0, whatever is in it.
 */
#include "worker/nn/graph.h"
#include "worker/nn/loss.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 8192 }; /* positions or values */

typedef struct loss {
    coh_layer layer;              /* a copy: the model may go */
    int64_t batch, count, pieces; /* B; positions or values of a row; pieces */
    const coh_tensor *values;     /* [B, C, H, W] row-major */
    const coh_tensor *diff;       /* the same, or NULL */
    double *scales;               /* [B] */
    double sums[];                /* [B, pieces]; scales lie behind */
} loss;

/* Everything about row b but its scale. */
static coh_loss_row row_of(const loss *self, const coh_batch *batch, int64_t b)
{
    const int64_t size = coh_shape_count(self->layer.in);
    const float *targets = batch->targets + b * batch->target_count;
    coh_loss_row row = {
        .kind = self->layer.spec.kind,
        .channels = self->layer.in.c,
        .positions = self->layer.in.h * self->layer.in.w,
        .ignore = self->layer.spec.ignore,
        .x = (const float *)coh_tensor_data(self->values) + b * size,
        .label = batch->labels[b],
        .mask_channels = self->layer.mask_channels,
    };

    if (self->layer.target == COH_TARGET_INPUT)
        row.target = batch->images + b * size;
    else if (self->layer.target != COH_TARGET_LABEL)
        row.target = targets + self->layer.target_first;
    if (self->layer.mask != COH_TARGET_NONE)
        row.mask = targets + self->layer.mask_first;
    if (self->diff != NULL)
        row.diff = (float *)coh_tensor_data(self->diff) + b * size;
    return row;
}

/* Does the row count at all? */
static bool counts(const loss *self, const coh_batch *batch, int64_t b)
{
    return batch->loss_weights[b] != 0 &&
           (batch->is_labelled[b] || self->layer.spec.unlabelled);
}

static void range_of(const loss *self, int64_t piece, int64_t *first,
                     int64_t *end)
{
    *first = piece * PIECE;
    *end = *first + PIECE < self->count ? *first + PIECE : self->count;
}

/* sums[B, pieces] = how much each piece counts. */
static void count_pieces(loss *self, const coh_batch *batch)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->batch * self->pieces; i++) {
        const int64_t b = i / self->pieces;
        const coh_loss_row row = row_of(self, batch, b);
        int64_t first, end;
        range_of(self, i % self->pieces, &first, &end);
        self->sums[i] =
            counts(self, batch, b) ? coh_loss_count(&row, first, end) : 0;
    }
}

/* scales[B]: what a row's sum is multiplied by; 0: it does not count. */
static void find_scales(loss *self, const coh_batch *batch)
{
    const bool mean = self->layer.spec.mean;

    if (mean)
        count_pieces(self, batch);
    for (int64_t b = 0; b < self->batch; b++) {
        double all = 0;
        for (int64_t p = 0; p < self->pieces && mean; p++)
            all += self->sums[b * self->pieces + p];
        if (!mean)
            all = counts(self, batch, b) ? 1 : 0;
        self->scales[b] = all > 0 ? (double)batch->loss_weights[b] *
                                        self->layer.spec.weight / all
                                  : 0;
    }
}

/* sums[B, pieces] = the loss of each piece; gradients. */
static void step_pieces(loss *self, const coh_batch *batch)
{
    const int64_t size = coh_shape_count(self->layer.in);

#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->batch * self->pieces; i++) {
        const int64_t b = i / self->pieces, piece = i % self->pieces;
        coh_loss_row row = row_of(self, batch, b);
        int64_t first, end;
        range_of(self, piece, &first, &end);
        row.scale = self->scales[b];
        self->sums[i] = row.scale == 0 ? 0 : coh_loss_piece(&row, first, end);
        if (row.scale == 0 && row.diff != NULL && piece == 0)
            memset(row.diff, 0, (size_t)size * sizeof *row.diff);
    }
}

static void write_log_probs(const loss *self, float *out)
{
    const float *x = coh_tensor_data(self->values);
    const int64_t classes = self->layer.in.c;

#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < self->batch; b++) {
        const float *row = x + b * classes;
        const double all = coh_log_sum_exp(row, classes, 1);
        for (int64_t k = 0; k < classes; k++)
            out[b * classes + k] = (float)((double)row[k] - all);
    }
}

static void run_loss(void *thing, const coh_run *run)
{
    loss *self = thing;
    double sum = 0;

    find_scales(self, run->batch);
    step_pieces(self, run->batch);
    for (int64_t i = 0; i < self->batch * self->pieces; i++)
        sum += self->sums[i];
    run->sums->terms[self->layer.term] = sum;
    if (self->layer.is_classifier && run->log_probs != NULL)
        write_log_probs(self, run->log_probs);
}

/* The state with what follows it in memory; kept by the graph. */
static coh_status make_state(coh_graph *graph, coh_node *node, loss **out,
                             coh_err *err)
{
    const coh_layer *layer = node->layer;
    const bool labels = layer->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY;
    const int64_t count =
        labels ? layer->in.h * layer->in.w : coh_shape_count(layer->in);
    const int64_t pieces = (count + PIECE - 1) / PIECE;
    const size_t sums = (size_t)(graph->batch * pieces);

    loss *self = calloc(1, sizeof *self +
                               (sums + (size_t)graph->batch) * sizeof(double));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory",
                        layer->spec.name);
    self->layer = *layer;
    self->batch = graph->batch;
    self->count = count;
    self->pieces = pieces;
    self->scales = self->sums + sums;
    node->own = *out = self;
    return coh_graph_keep(graph, self, err);
}

coh_status coh_loss_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    loss *self = NULL;

    COH_TRY(make_state(graph, node, &self, err));
    COH_TRY(coh_graph_unblock(graph, &graph->forward, node->layer->spec.name,
                              coh_graph_forward_slot(graph, node->src),
                              &node->src, err));
    self->values = node->src->tensor;
    node->dst = node->src;
    if (graph->training) /* all is done in backward */
        return COH_OK;
    return coh_graph_append(&graph->forward, run_loss, self, err);
}

coh_status coh_loss_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    loss *self = node->own;

    COH_TRY(coh_graph_plain(graph, coh_tensor_dims(self->values),
                            COH_SLOT_SHARED, 0, &node->diff, err));
    self->diff = node->diff->tensor;
    return coh_graph_append(&graph->backward, run_loss, self, err);
}
