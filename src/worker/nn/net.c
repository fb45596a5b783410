/* net.c - see net.h. */
#include "worker/nn/net.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "common/finite.h"
#include "common/plan.h"
#include "worker/nn/graph.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/pages.h"
#include "worker/nn/profile.h"
#include "worker/nn/stem.h"

typedef struct net {
    int threads;
    coh_dnn *dnn;
    coh_graph *train, *infer; /* NULL if never called */
    void *arena;              /* of both, owned */
    int64_t parameters;
    coh_range *quiet; /* [nquiet], owned: see note_quiet() */
    int nquiet;
} net;

/* The gradient passes as it is, and so do the values: dense knows [C, H, W],
 * and the others are reshaped to what they need. */
static coh_status pass_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    (void)graph;
    (void)err;
    node->dst = node->src;
    return COH_OK;
}

static coh_status pass_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    (void)graph;
    (void)node;
    (void)err;
    return COH_OK;
}

static const struct {
    coh_build *forward, *backward;
} kinds[] = {
    [COH_LAYER_CONV2D] = { coh_linear_forward, coh_linear_backward },
    [COH_LAYER_DECONV2D] = { coh_linear_forward, coh_linear_backward },
    [COH_LAYER_MAXPOOL] = { coh_pool_forward, coh_pool_backward },
    [COH_LAYER_AVGPOOL] = { coh_pool_forward, coh_pool_backward },
    [COH_LAYER_GLOBAL_AVGPOOL] = { coh_pool_forward, coh_pool_backward },
    [COH_LAYER_RELU] = { coh_eltwise_forward, coh_eltwise_backward },
    [COH_LAYER_LEAKY_RELU] = { coh_eltwise_forward, coh_eltwise_backward },
    [COH_LAYER_SIGMOID] = { coh_eltwise_forward, coh_eltwise_backward },
    [COH_LAYER_TANH] = { coh_eltwise_forward, coh_eltwise_backward },
    [COH_LAYER_SOFTMAX] = { coh_eltwise_forward, coh_eltwise_backward },
    [COH_LAYER_UPSAMPLE] = { coh_pool_forward, coh_pool_backward },
    [COH_LAYER_CROP] = { coh_crop_forward, coh_crop_backward },
    [COH_LAYER_LAYER_NORM] = { coh_norm_forward, coh_norm_backward },
    [COH_LAYER_BATCH_NORM] = { coh_batch_norm_build_forward,
                               coh_batch_norm_build_backward },
    [COH_LAYER_DENSE] = { coh_linear_forward, coh_linear_backward },
    [COH_LAYER_FLATTEN] = { pass_forward, pass_backward },
    [COH_LAYER_DROPOUT] = { coh_dropout_forward, coh_dropout_backward },
    [COH_LAYER_ADD] = { coh_add_forward, coh_add_backward },
    [COH_LAYER_CONCAT] = { coh_concat_forward, coh_concat_backward },
    [COH_LAYER_SIGMOID_CROSS_ENTROPY] = { coh_loss_forward, coh_loss_backward },
    [COH_LAYER_MEAN_SQUARED_ERROR] = { coh_loss_forward, coh_loss_backward },
    [COH_LAYER_SMOOTH_L1] = { coh_loss_forward, coh_loss_backward },
    [COH_LAYER_SOFTMAX_CROSS_ENTROPY] = { coh_loss_forward, coh_loss_backward },
};

/* --- building ----------------------------------------------------------- */

/* The only layer that takes the output of layer i; -1 if several do. */
static int only_user(const coh_model *model, int i)
{
    int user = -1;

    return coh_model_users(model, i, &user) == 1 ? user : -1;
}

/* A relu becomes part of the conv2d, dense or batch_norm before it, and its
 * backward pass part of a maxpool behind it. Of what is only pooled, backward
 * needs nothing but the places of the largest values. Only if nobody else takes
 * what is between. */
static void join_relu(const coh_model *model, coh_node *nodes, int i,
                      bool training)
{
    const coh_layer_kind kind = model->layers[i].spec.kind;
    int behind = only_user(model, i), relu = -1;

    if (kind != COH_LAYER_CONV2D && kind != COH_LAYER_DENSE &&
        kind != COH_LAYER_BATCH_NORM)
        return;
    if (behind >= 0 && coh_layer_is_relu(&model->layers[behind])) {
        relu = behind;
        nodes[i].then_relu = nodes[relu].done_before = true;
        if (model->layers[relu].spec.kind == COH_LAYER_LEAKY_RELU)
            nodes[i].slope = (float)model->layers[relu].spec.slope;
        behind = only_user(model, relu);
    }
    if (!training || behind < 0 ||
        model->layers[behind].spec.kind != COH_LAYER_MAXPOOL)
        return;
    nodes[i].only_pooled = true;
    if (relu >= 0) {
        nodes[relu].done_behind = true;
        nodes[behind].relu = &model->layers[relu];
    }
}

/* A first convolution, if that was chosen and can be: up to its pool each layer
 * has one user, the next. */
static void make_stem(const coh_graph *graph, const coh_model *model,
                      coh_node *nodes, int i)
{
    int pool = 0;

    if (coh_choices_way(graph->choices, i, COH_CHOSEN_WEIGHTS) !=
            COH_WAY_STEM ||
        !graph->training || nodes[i].needs_diff_src || coh_dnn_block() != 16 ||
        !coh_stem_can_run() || !coh_stem_fits(&model->layers[i], &pool))
        return;
    for (int k = i; k < i + pool; k++) {
        if (only_user(model, k) != k + 1)
            return;
    }
    nodes[i].is_stem = true;
    for (int k = i + 1; k <= i + pool; k++)
        nodes[k].done_before = nodes[k].done_behind = true;
}

/* nodes[nlayers], zeroed: which layer is what to its neighbours. */
static void plan_nodes(const coh_graph *graph, const coh_model *model,
                       coh_node *nodes)
{
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        nodes[i].layer = layer;
        nodes[i].index = i;
        nodes[i].needs_diff_src = layer->needs_diff[0];
        join_relu(model, nodes, i, graph->training);
        for (int k = 0; k < layer->ninputs; k++)
            if (layer->inputs[k] >= 0)
                nodes[layer->inputs[k]].last_use = i;
    }
    for (int i = 0; i < model->nlayers; i++)
        make_stem(graph, model, nodes, i);
}

static coh_status build_forward(coh_graph *graph, const coh_model *model,
                                coh_node *nodes, coh_err *err)
{
    coh_value *images = NULL;

    COH_TRY(coh_graph_plain(graph, coh_dims_of(graph->batch, model->input),
                            COH_SLOT_IMAGES, 0, &images, err));
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = nodes[i].layer;
        graph->forward.layer = i;
        graph->forward.pass = graph->training ? COH_PASS_TRAIN : COH_PASS_INFER;
        for (int k = 0; k < layer->ninputs; k++) {
            const int from = layer->inputs[k];
            nodes[i].srcs[k] = from < 0 ? images : nodes[from].dst;
        }
        nodes[i].src = nodes[i].srcs[0];
        COH_TRY(kinds[layer->spec.kind].forward(graph, &nodes[i], err));
        coh_graph_release(graph);
        for (int j = 0; j <= i; j++)
            if (nodes[j].last_use > i)
                coh_graph_hold(graph, nodes[j].dst);
    }
    return COH_OK;
}

/* Add the gradients of a layer's inputs to those of the layers they are from.
 */
static coh_status give_back(coh_graph *graph, coh_node *nodes, coh_node *node,
                            coh_err *err)
{
    const coh_layer *layer = node->layer;

    if (layer->ninputs == 1)
        node->diffs[0] = node->diff;
    for (int k = 0; k < layer->ninputs; k++)
        if (layer->needs_diff[k])
            COH_TRY(coh_graph_add_to(graph, &graph->backward, layer->spec.name,
                                     node->diffs[k],
                                     &nodes[layer->inputs[k]].diff, err));
    return COH_OK;
}

/* From the losses back to the first layers with weights, no further. */
static coh_status build_backward(coh_graph *graph, coh_node *nodes, int last,
                                 coh_err *err)
{
    for (int i = last; i >= 0; i--) {
        coh_node *node = &nodes[i];
        const coh_layer_spec *spec = &node->layer->spec;
        if (node->diff == NULL && !coh_layer_is_loss(spec->kind))
            continue; /* no weights behind it */
        graph->backward.layer = i;
        graph->backward.pass = COH_PASS_DATA;
        if (node->diff != NULL)
            COH_TRY(coh_graph_reshape(graph, &graph->backward, spec->name,
                                      coh_tensor_dims(node->dst->tensor),
                                      coh_graph_other_slot(node->diff),
                                      &node->diff, err));
        COH_TRY(kinds[spec->kind].backward(graph, node, err));
        COH_TRY(give_back(graph, nodes, node, err));
        coh_graph_release(graph);
        for (int j = 0; j < i; j++)
            if (nodes[j].diff != NULL)
                coh_graph_hold(graph, nodes[j].diff);
    }
    return COH_OK;
}

/* Tell each action which parameters it needs, and which gradients are complete
 * behind it (coh_watch). Backward goes from the last layer to the first. */
static void mark_parameters(coh_graph *graph, const coh_model *model)
{
    const coh_tape *back = &graph->backward;

    for (int i = 0; i < graph->forward.count; i++) {
        coh_action *it = &graph->forward.actions[i];
        const coh_layer *layer = &model->layers[it->layer];
        it->needs = layer->weight_first + coh_layer_parameters(layer);
    }
    for (int i = 0; i < back->count; i++) {
        coh_action *it = &back->actions[i];
        const coh_layer *layer = &model->layers[it->layer];
        const bool is_last = i + 1 == back->count;
        it->has = is_last ? 0
                  : it[1].layer != it->layer
                      ? layer->weight_first
                      : layer->weight_first + coh_layer_parameters(layer);
    }
}

static coh_status build(coh_graph *graph, const coh_model *model, coh_err *err)
{
    coh_node *nodes = calloc((size_t)model->nlayers, sizeof *nodes);
    if (nodes == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for %d layers",
                        model->nlayers);

    plan_nodes(graph, model, nodes);
    coh_status status = build_forward(graph, model, nodes, err);
    if (status == COH_OK && graph->training)
        status = build_backward(graph, nodes, model->nlayers - 1, err);
    free(nodes);
    if (status == COH_OK)
        mark_parameters(graph, model);
    return status;
}

/* *out stays NULL if batch is 0. */
static coh_status new_graph(coh_dnn *dnn, const coh_model *model, int64_t batch,
                            bool training, uint64_t seed,
                            const coh_choices *choices, coh_graph **out,
                            coh_err *err)
{
    COH_ASSERT(batch >= 0);
    if (batch == 0)
        return COH_OK;
    COH_TRY(coh_graph_new(dnn, batch, training, seed, out, err));
    (*out)->choices = choices;
    return build(*out, model, err);
}

static size_t bytes_of(const coh_graph *graph)
{
    return graph != NULL ? coh_graph_bytes(graph) : 0;
}

/* What is too much, and of whom. */
static coh_status no_room(const coh_model *model, size_t bytes, coh_err *err)
{
    const coh_layer *most = &model->layers[0];

    for (int i = 1; i < model->nlayers; i++)
        if (coh_shape_count(model->layers[i].out) > coh_shape_count(most->out))
            most = &model->layers[i];
    return coh_fail(err, COH_E_NOMEM,
                    "no memory for the network's values, %.3f GiB (layer %s "
                    "makes the most of them, %.3f MiB a sample): use a smaller "
                    "train.batch or eval.batch, or fewer ranks a node",
                    (double)bytes / (1 << 30), most->spec.name,
                    (double)coh_shape_count(most->out) * sizeof(float) /
                        (1 << 20));
}

/* One arena for both: they never run at the same time. */
static coh_status place(net *self, const coh_model *model, coh_err *err)
{
    const size_t train = bytes_of(self->train), infer = bytes_of(self->infer);
    const size_t bytes = train > infer ? train : infer;

    self->arena = coh_pages_new(bytes);
    if (self->arena == NULL)
        return no_room(model, bytes, err);
    if (self->train != NULL)
        coh_graph_place(self->train, self->arena);
    if (self->infer != NULL)
        coh_graph_place(self->infer, self->arena);
    return COH_OK;
}

/* --- numbers that are not finite ----------------------------------------- */

/* The library's relu turns a NaN into 0, and its maxpool passes one over: a
 * parameter that is not finite may leave no trace in the loss. In training it
 * shows in the gradient where its layer hands one on, for 0 x NaN is NaN. What
 * is quiet are the first layers with weights, and what is added: biases, and
 * norms, which are few. */
static coh_status note_quiet(net *self, const coh_model *model, coh_err *err)
{
    self->parameters = model->parameters;
    self->quiet = calloc((size_t)model->nlayers, sizeof *self->quiet);
    if (self->quiet == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the network");
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        const bool multiplies = layer->spec.kind == COH_LAYER_CONV2D ||
                                layer->spec.kind == COH_LAYER_DECONV2D ||
                                layer->spec.kind == COH_LAYER_DENSE;
        self->quiet[self->nquiet++] =
            multiplies && layer->needs_diff[0]
                ? (coh_range){ layer->bias_first, layer->bias_count }
                : (coh_range){ layer->weight_first,
                               coh_layer_parameters(layer) };
    }
    return COH_OK;
}

static bool quiet_is_finite(const net *self, const float *weights)
{
    for (int i = 0; i < self->nquiet; i++)
        if (!coh_is_finite(weights + self->quiet[i].first,
                           self->quiet[i].count))
            return false;
    return true;
}

/* --- running ------------------------------------------------------------ */

/* In every thread: a step of denormals takes many times longer, and they
 * carry nothing. */
static void set_up_threads(const net *self)
{
    if (self->threads > 0)
        omp_set_num_threads(self->threads);
#ifdef __SSE__
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
#pragma omp parallel
    _mm_setcsr(_mm_getcsr() | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
#endif
}

static void begin_sums(const coh_batch *batch, coh_step_sums *sums)
{
    *sums = (coh_step_sums){ .weight = coh_batch_weight(batch) };
}

static void end_sums(coh_step_sums *sums, bool is_finite)
{
    if (!is_finite)
        sums->loss = NAN;
    for (int i = 0; i < COH_LOSSES_MAX; i++)
        sums->loss += sums->terms[i];
}

static void train(void *thing, const coh_batch *batch, const float *weights,
                  float *gradient, coh_step_sums *sums, const coh_watch *watch)
{
    const net *self = thing;
    const coh_run run = { .batch = batch, .sums = sums, .watch = watch };

    COH_ASSERT(self->train != NULL && batch->capacity == self->train->batch);
    set_up_threads(self);
    coh_graph_point(self->train, batch->images, weights, gradient);
    begin_sums(batch, sums);
    coh_graph_run_forward(self->train, &run);
    /* all weights are here, and none is new yet (coh_watch) */
    const bool is_finite = quiet_is_finite(self, weights);
    coh_graph_run_backward(self->train, &run);
    end_sums(sums, is_finite);
}

static void infer(void *thing, const coh_batch *batch, const float *weights,
                  float *log_probs, coh_step_sums *sums)
{
    const net *self = thing;
    const coh_run run = { .batch = batch,
                          .sums = sums,
                          .log_probs = log_probs };

    COH_ASSERT(self->infer != NULL && batch->capacity == self->infer->batch);
    set_up_threads(self);
    coh_graph_point(self->infer, batch->images, weights, NULL);
    begin_sums(batch, sums);
    coh_graph_run_forward(self->infer, &run);
    end_sums(sums, coh_is_finite(weights, self->parameters));
}

static void destroy(void **thing)
{
    net *self = *thing;
    if (self == NULL)
        return;

    coh_graph_destroy(&self->train);
    coh_graph_destroy(&self->infer);
    coh_dnn_destroy(&self->dnn);
    free(self->arena);
    free(self->quiet);
    free(self);
    *thing = NULL;
}

/* --- timing ------------------------------------------------------------- */

static net *net_of(const coh_compute *compute)
{
    COH_ASSERT(compute->train == train);
    return compute->self;
}

int coh_net_parts(const coh_compute *compute, coh_step_part *parts)
{
    const net *self = net_of(compute);

    COH_ASSERT(self->train != NULL);
    return coh_profile_parts(self->train, parts);
}

void coh_net_time(const coh_compute *compute, const coh_batch *batch,
                  const float *weights, float *gradient, coh_step_part *parts,
                  double *seconds)
{
    const net *self = net_of(compute);
    coh_step_sums sums;
    const coh_run run = { .batch = batch, .sums = &sums };

    COH_ASSERT(self->train != NULL && batch->capacity == self->train->batch);
    set_up_threads(self);
    coh_graph_point(self->train, batch->images, weights, gradient);
    begin_sums(batch, &sums);
    *seconds = coh_profile_run(self->train, &run, parts);
}

/* --- life --------------------------------------------------------------- */

/* Everything but the arena. */
static coh_status make(const coh_model *model, int64_t train_batch,
                       int64_t infer_batch, uint64_t seed, int threads,
                       const coh_choices *choices, net **out, coh_err *err)
{
    net *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the network");

    *out = self;
    self->threads = threads;
    set_up_threads(self); /* before primitives are made for so many */
    coh_status status = note_quiet(self, model, err);
    if (status == COH_OK)
        status = coh_dnn_new(&self->dnn, err);
    if (status == COH_OK)
        status = new_graph(self->dnn, model, train_batch, true, seed, choices,
                           &self->train, err);
    if (status == COH_OK)
        status = new_graph(self->dnn, model, infer_batch, false, seed, choices,
                           &self->infer, err);
    return status;
}

coh_status coh_net_new(const coh_model *model, int64_t train_batch,
                       int64_t infer_batch, uint64_t seed, int threads,
                       const coh_choices *choices, coh_compute *out,
                       coh_err *err)
{
    net *self = NULL;
    coh_status status = make(model, train_batch, infer_batch, seed, threads,
                             choices, &self, err);

    if (status == COH_OK)
        status = place(self, model, err);
    if (status != COH_OK) {
        void *thing = self;
        destroy(&thing);
        return status;
    }
    *out = (coh_compute){ self, train, infer, destroy };
    return COH_OK;
}

static int64_t bytes_of_op(const coh_op *op)
{
    int64_t sum = 0;

    for (int arg = 0; arg < COH_ARG_COUNT; arg++) {
        const coh_layout *layout = coh_op_layout(op, (coh_arg)arg);
        sum += layout != NULL ? (int64_t)coh_layout_bytes(layout) : 0;
    }
    return sum;
}

/* Of a tape; not less than `largest`. */
static int64_t largest_op(const coh_tape *tape, int64_t largest)
{
    for (int i = 0; i < tape->count; i++) {
        const coh_action *action = &tape->actions[i];
        const int64_t bytes = action->op != NULL && !action->is_copy
                                  ? bytes_of_op(action->op)
                                  : 0;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

static int64_t largest_of(const coh_graph *graph, int64_t largest)
{
    if (graph == NULL)
        return largest;
    return largest_op(&graph->backward, largest_op(&graph->forward, largest));
}

coh_status coh_net_predict(const coh_model *model, int64_t train_batch,
                           int64_t infer_batch, int threads,
                           const coh_choices *choices, coh_net_bytes *out,
                           coh_err *err)
{
    net *self = NULL;
    const coh_status status =
        make(model, train_batch, infer_batch, 0, threads, choices, &self, err);

    if (status == COH_OK)
        *out = (coh_net_bytes){
            (int64_t)coh_pages_bytes(bytes_of(self->train)),
            (int64_t)coh_pages_bytes(bytes_of(self->infer)),
            largest_of(self->train, largest_of(self->infer, 0)),
        };
    void *thing = self;
    destroy(&thing);
    return status;
}
