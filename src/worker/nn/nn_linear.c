/* nn_linear.c - conv2d, deconv2d and dense: the layers with ways.
 *
 * A way (choice.h) leaves every layout to the op, or asks for one; dense takes
 * its input as it comes: [B, C, H, W] or [B, I]. The order of its weights is
 * that of [C, H, W] whatever the layout in memory, so nothing needs to be
 * flattened for it. Weights are brought into the op's layout in every step;
 * gradients are written straight into the flat vector if the op can, else from
 * a copy.
 */
#include "worker/nn/graph.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/winograd.h"

static bool is_dense(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_DENSE;
}

static coh_dims src_dims(const coh_layer *layer, int64_t batch)
{
    if (is_dense(layer) && layer->in.h == 1 && layer->in.w == 1)
        return (coh_dims){ 2, { batch, layer->in.c } };
    return coh_dims_of(batch, layer->in);
}

static coh_dims dst_dims(const coh_layer *layer, int64_t batch)
{
    if (is_dense(layer))
        return (coh_dims){ 2, { batch, layer->out.c } };
    return coh_dims_of(batch, layer->out);
}

/* `src` is that of dense. */
static coh_dims weight_dims(const coh_layer *layer, coh_dims src)
{
    const coh_layer_spec *spec = &layer->spec;
    const int64_t groups = spec->groups;

    if (is_dense(layer)) { /* [O] and its input's [C, H, W] */
        src.size[0] = spec->filters;
        return src;
    }
    const int64_t kh = spec->kernel[0], kw = spec->kernel[1];
    if (groups == 1)
        return (coh_dims){ 4, { spec->filters, layer->in.c, kh, kw } };
    return (coh_dims){
        5, { groups, spec->filters / groups, layer->in.c / groups, kh, kw }
    };
}

/* The bias or its gradient; count 0 if the layer has none. */
static coh_dims bias_dims(const coh_layer *layer)
{
    return (coh_dims){ layer->bias_count > 0, { layer->bias_count } };
}

bool coh_linear_has_way(const coh_layer *layer, coh_way way)
{
    if (way == COH_WAY_STEM || way == COH_WAY_WINOGRAD)
        return false; /* not an op */
    return way == COH_WAY_DIRECT || is_dense(layer) == (way == COH_WAY_PLAIN);
}

bool coh_linear_can_winograd(const coh_layer *layer)
{
    return coh_winograd_can_run() && coh_dnn_block() == 16 &&
           coh_winograd_fits(layer);
}

coh_op_spec coh_linear_spec(const coh_layer *layer, int64_t batch,
                            coh_pass pass, coh_way way)
{
    const coh_dims src = src_dims(layer, batch);
    coh_op_spec spec = {
        .name = layer->spec.name,
        .kind = is_dense(layer)                          ? COH_OP_DENSE
                : layer->spec.kind == COH_LAYER_DECONV2D ? COH_OP_DECONV
                                                         : COH_OP_CONV,
        .pass = pass,
        .src = { .dims = src },
        .weights = { .dims = weight_dims(layer, src) },
        .dst = { .dims = dst_dims(layer, batch) },
    };

    /* What is before dense is most often a convolution; few channels are not
     * blocked there, and would be filled up here, with their weights. */
    if (is_dense(layer))
        spec.src.format = way == COH_WAY_PLAIN || src.count == 2 ||
                                  layer->in.c % coh_dnn_block() != 0
                              ? COH_FORMAT_PLAIN
                              : COH_FORMAT_BLOCKED;
    if (pass != COH_PASS_DATA)
        spec.bias = (coh_operand){ .dims = bias_dims(layer),
                                   .format = COH_FORMAT_PLAIN };
    if (!coh_linear_has_way(layer, way))
        way = COH_WAY_DIRECT;
    if (way == COH_WAY_LAST)
        spec.src.format = spec.dst.format = COH_FORMAT_LAST;
    if (way == COH_WAY_PLAIN)
        spec.weights.format = COH_FORMAT_PLAIN;
    for (int i = 0; i < 2; i++) {
        spec.window.kernel[i] = layer->spec.kernel[i];
        spec.window.stride[i] = layer->spec.stride[i];
        spec.window.dilation[i] = layer->spec.dilation[i];
        spec.window.before[i] = layer->pad_before[i];
        spec.window.after[i] = layer->pad_after[i];
    }
    return spec;
}

/* --- in a graph --------------------------------------------------------- */

static coh_op_spec spec_of(const coh_graph *graph, const coh_node *node,
                           coh_pass pass, coh_way way)
{
    coh_op_spec spec = coh_linear_spec(node->layer, graph->batch, pass, way);

    if (is_dense(node->layer)) {
        spec.src.dims = coh_tensor_dims(node->src->tensor);
        spec.weights.dims = weight_dims(node->layer, spec.src.dims);
        if (way != COH_WAY_PLAIN)
            spec.src.layout = coh_tensor_layout(node->src->tensor);
    }
    spec.then_relu = node->then_relu && pass <= COH_PASS_TRAIN;
    spec.slope = node->slope;
    spec.forward = node->op;
    return spec;
}

static coh_way way_of(const coh_graph *graph, const coh_node *node,
                      coh_chosen pass)
{
    const coh_way way = coh_choices_way(graph->choices, node->index, pass);

    if (way == COH_WAY_WINOGRAD && !coh_linear_can_winograd(node->layer))
        return COH_WAY_DIRECT;
    return way;
}

/* The pass in the way that was chosen; direct if oneDNN refuses that, as
 * another one than it was chosen for may. */
static coh_status make_op(coh_graph *graph, const coh_node *node, coh_pass pass,
                          coh_op **out, coh_err *err)
{
    const coh_chosen chosen = pass == COH_PASS_DATA      ? COH_CHOSEN_DATA
                              : pass == COH_PASS_WEIGHTS ? COH_CHOSEN_WEIGHTS
                                                         : COH_CHOSEN_FORWARD;
    const coh_way way = way_of(graph, node, chosen);
    coh_op_spec spec = spec_of(graph, node, pass, way);

    if (coh_linear_has_way(node->layer, way) && way != COH_WAY_DIRECT &&
        coh_graph_op(graph, &spec, out, NULL) == COH_OK &&
        !coh_op_is_reference(*out))
        return COH_OK;
    spec = spec_of(graph, node, pass, COH_WAY_DIRECT);
    return coh_graph_op(graph, &spec, out, err);
}

/* The layer's bias in one of the two flat vectors; NULL if it has none. */
static coh_status view_bias(coh_graph *graph, const coh_node *node, int slot,
                            coh_value **out, coh_err *err)
{
    *out = NULL;
    if (node->layer->bias_count == 0)
        return COH_OK;
    return coh_graph_plain(graph, bias_dims(node->layer), slot,
                           node->layer->bias_first, out, err);
}

static coh_dims weights_of(const coh_node *node)
{
    return weight_dims(node->layer, coh_tensor_dims(node->src->tensor));
}

/* The layer's weights in one of the two flat vectors (model.h). */
static coh_status view_weights(coh_graph *graph, const coh_node *node, int slot,
                               coh_value **out, coh_err *err)
{
    const coh_layer *layer = node->layer;

    if (layer->spec.kind == COH_LAYER_DECONV2D)
        return coh_graph_swapped(graph, weights_of(node), slot,
                                 layer->weight_first, out, err);
    return coh_graph_plain(graph, weights_of(node), slot, layer->weight_first,
                           out, err);
}

/* The layer's weights, in the layout of `op`, bound to it. */
static coh_status bind_weights(coh_graph *graph, const coh_node *node,
                               coh_tape *tape, coh_op *op, coh_err *err)
{
    coh_value *weights = NULL;

    COH_TRY(view_weights(graph, node, COH_SLOT_PARAMETERS, &weights, err));
    COH_TRY(coh_graph_convert(graph, tape, node->layer->spec.name,
                              coh_op_layout(op, COH_ARG_WEIGHTS),
                              COH_SLOT_WEIGHTS, &weights, err));
    coh_op_bind(op, COH_ARG_WEIGHTS, weights->tensor);
    return COH_OK;
}

coh_status coh_linear_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const char *name = layer->spec.name;
    coh_tape *tape = &graph->forward;
    coh_value *bias = NULL;

    if (node->is_stem)
        return coh_stem_build_forward(graph, node, err);
    if (layer->spec.kind != COH_LAYER_DENSE)
        COH_TRY(coh_graph_reshape(
            graph, tape, name, coh_dims_of(graph->batch, layer->in),
            coh_graph_forward_slot(graph, node->src), &node->src, err));
    const coh_pass pass = graph->training ? COH_PASS_TRAIN : COH_PASS_INFER;
    COH_TRY(make_op(graph, node, pass, &node->op, err));
    if (way_of(graph, node, COH_CHOSEN_FORWARD) == COH_WAY_WINOGRAD)
        return coh_winograd_build_forward(graph, node, err); /* op: a hint */

    COH_TRY(view_bias(graph, node, COH_SLOT_PARAMETERS, &bias, err));
    node->backup = node->src;
    COH_TRY(coh_graph_convert(
        graph, tape, name, coh_op_layout(node->op, COH_ARG_SRC),
        graph->training ? COH_SLOT_OWN : COH_SLOT_SRC, &node->backup, err));
    COH_TRY(bind_weights(graph, node, tape, node->op, err));
    COH_TRY(coh_graph_value(graph, coh_op_layout(node->op, COH_ARG_DST),
                            node->only_pooled
                                ? COH_SLOT_SHARED
                                : coh_graph_forward_slot(graph, node->src),
                            &node->dst, err));
    coh_op_bind(node->op, COH_ARG_SRC, node->backup->tensor);
    coh_op_bind(node->op, COH_ARG_DST, node->dst->tensor);
    if (bias != NULL)
        coh_op_bind(node->op, COH_ARG_BIAS, bias->tensor);
    return coh_graph_append_op(graph, tape, node->op, err);
}

/* Append `op` and have the weights' gradient in the flat vector after it. */
static coh_status append_diff_weights(coh_graph *graph, const coh_node *node,
                                      coh_op *op, coh_err *err)
{
    const coh_layout *layout = coh_op_layout(op, COH_ARG_DIFF_WEIGHTS);
    coh_value *flat = NULL, *written = NULL;

    COH_TRY(view_weights(graph, node, COH_SLOT_GRADIENT, &flat, err));
    written = flat;
    if (!coh_layout_equal(layout, coh_tensor_layout(flat->tensor)))
        COH_TRY(coh_graph_value(graph, layout, COH_SLOT_DIFF_WEIGHTS, &written,
                                err));
    coh_op_bind(op, COH_ARG_DIFF_WEIGHTS, written->tensor);
    COH_TRY(coh_graph_append_op(graph, &graph->backward, op, err));
    if (written == flat)
        return COH_OK;
    return coh_graph_copy(graph, &graph->backward, node->layer->spec.name,
                          written, flat, err);
}

/* *diff is the gradient of dst; afterwards, as the op has it. */
static coh_status backward_weights(coh_graph *graph, coh_node *node,
                                   coh_value **diff, coh_err *err)
{
    const char *name = node->layer->spec.name;
    coh_tape *tape = &graph->backward;
    coh_value *bias = NULL, *src = node->backup;
    coh_op *op = NULL;

    if (way_of(graph, node, COH_CHOSEN_WEIGHTS) == COH_WAY_WINOGRAD)
        return coh_winograd_build_weights(graph, node, diff, err);
    COH_TRY(view_bias(graph, node, COH_SLOT_GRADIENT, &bias, err));
    COH_TRY(make_op(graph, node, COH_PASS_WEIGHTS, &op, err));

    const coh_layout *layout = coh_op_layout(op, COH_ARG_SRC);
    if (!coh_layout_equal(layout, coh_tensor_layout(src->tensor)))
        src = node->src;
    COH_TRY(
        coh_graph_convert(graph, tape, name, layout, COH_SLOT_SRC, &src, err));
    COH_TRY(coh_graph_convert(graph, tape, name,
                              coh_op_layout(op, COH_ARG_DIFF_DST),
                              COH_SLOT_DIFF_DST, diff, err));
    coh_op_bind(op, COH_ARG_SRC, src->tensor);
    coh_op_bind(op, COH_ARG_DIFF_DST, (*diff)->tensor);
    if (bias != NULL)
        coh_op_bind(op, COH_ARG_DIFF_BIAS, bias->tensor);
    return append_diff_weights(graph, node, op, err);
}

/* `diff` is the gradient of dst, or a copy for another op. */
static coh_status backward_data(coh_graph *graph, coh_node *node,
                                coh_value *diff, coh_err *err)
{
    coh_tape *tape = &graph->backward;
    const int slot = coh_graph_other_slot(node->diff);
    coh_op *op = NULL;

    if (way_of(graph, node, COH_CHOSEN_DATA) == COH_WAY_WINOGRAD)
        return coh_winograd_build_data(graph, node, diff, err);
    COH_TRY(make_op(graph, node, COH_PASS_DATA, &op, err));
    COH_TRY(bind_weights(graph, node, tape, op, err));
    const coh_layout *layout = coh_op_layout(op, COH_ARG_DIFF_DST);
    if (!coh_layout_equal(layout, coh_tensor_layout(diff->tensor)))
        diff = node->diff;
    COH_TRY(coh_graph_convert(graph, tape, node->layer->spec.name, layout,
                              COH_SLOT_DIFF_DST, &diff, err));
    coh_op_bind(op, COH_ARG_DIFF_DST, diff->tensor);

    COH_TRY(coh_graph_value(graph, coh_op_layout(op, COH_ARG_DIFF_SRC), slot,
                            &node->diff, err));
    coh_op_bind(op, COH_ARG_DIFF_SRC, node->diff->tensor);
    return coh_graph_append_op(graph, tape, op, err);
}

coh_status coh_linear_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    coh_value *diff = node->diff;

    graph->backward.pass = COH_PASS_WEIGHTS;
    if (node->is_stem)
        return coh_stem_build_backward(graph, node, err);
    COH_TRY(backward_weights(graph, node, &diff, err));
    graph->backward.pass = COH_PASS_DATA;
    if (!node->needs_diff_src)
        return COH_OK;
    return backward_data(graph, node, diff, err);
}
