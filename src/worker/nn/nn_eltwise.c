/* nn_eltwise.c - relu, leaky_relu, sigmoid, tanh, and softmax. They keep their input's
 * layout, and their backward pass works in place, from dst alone: so a relu
 * may be done by the layer before, and leave nothing to do in forward.
 *
 * A maxpool behind a relu hands its gradient to the largest value of each
 * window, which is what it made: the relu's backward pass may be done on the
 * pool's fewer values, before the pool's, with the same result to the bit. */
#include "worker/nn/graph.h"

static coh_op_spec spec_of(const coh_layer *of, const coh_value *data,
                           coh_pass pass, const coh_op *forward)
{
    const coh_layer_spec *layer = &of->spec;
    coh_op_spec spec = {
        .name = layer->name,
        .kind = COH_OP_RELU,
        .pass = pass,
        .src = coh_operand_of(data),
        .dst = coh_operand_of(data),
        .forward = forward,
    };

    if (layer->kind == COH_LAYER_LEAKY_RELU)
        spec.slope = (float)layer->slope;
    if (layer->kind == COH_LAYER_SIGMOID)
        spec.kind = COH_OP_SIGMOID;
    if (layer->kind == COH_LAYER_TANH)
        spec.kind = COH_OP_TANH;
    if (layer->kind == COH_LAYER_SOFTMAX)
        spec.kind = COH_OP_SOFTMAX;
    return spec;
}

coh_status coh_eltwise_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_pass pass = graph->training ? COH_PASS_TRAIN : COH_PASS_INFER;
    const coh_op_spec spec = spec_of(node->layer, node->src, pass, NULL);

    /* Also if it is never run: oneDNN makes backward from forward. */
    COH_TRY(coh_graph_op(graph, &spec, &node->op, err));
    node->dst = node->src;
    if (node->done_before)
        return COH_OK;
    COH_TRY(coh_graph_value(graph, coh_op_layout(node->op, COH_ARG_DST),
                            coh_graph_forward_slot(graph, node->src),
                            &node->dst, err));
    coh_op_bind(node->op, COH_ARG_SRC, node->src->tensor);
    coh_op_bind(node->op, COH_ARG_DST, node->dst->tensor);
    return coh_graph_append_op(graph, &graph->forward, node->op, err);
}

static coh_status append_backward(coh_graph *graph, const coh_layer *layer,
                                  const coh_value *made, const coh_op *forward,
                                  coh_value **diff, coh_err *err)
{
    const coh_op_spec spec = spec_of(layer, made, COH_PASS_DATA, forward);
    coh_op *op = NULL;

    COH_TRY(coh_graph_op(graph, &spec, &op, err));
    COH_TRY(coh_graph_convert(graph, &graph->backward, layer->spec.name,
                              coh_op_layout(op, COH_ARG_DIFF_DST),
                              coh_graph_other_slot(*diff), diff, err));
    coh_op_bind(op, COH_ARG_DST, made->tensor);
    coh_op_bind(op, COH_ARG_DIFF_DST, (*diff)->tensor);
    coh_op_bind(op, COH_ARG_DIFF_SRC, (*diff)->tensor);
    return coh_graph_append_op(graph, &graph->backward, op, err);
}

coh_status coh_eltwise_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    if (node->done_behind)
        return COH_OK;
    return append_backward(graph, node->layer, node->dst, node->op, &node->diff,
                           err);
}

coh_status coh_relu_backward(coh_graph *graph, const coh_layer *relu,
                             const coh_value *made, coh_value **diff,
                             coh_err *err)
{
    const coh_op_spec spec = spec_of(relu, made, COH_PASS_TRAIN, NULL);
    coh_op *forward = NULL;

    COH_TRY(coh_graph_op(graph, &spec, &forward, err)); /* never run */
    return append_backward(graph, relu, made, forward, diff, err);
}
