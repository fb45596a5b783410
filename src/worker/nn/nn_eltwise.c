/* nn_eltwise.c - relu, leaky_relu, sigmoid, tanh, and softmax. They keep their input's
 * layout, and their backward pass works in place, from dst alone: so a relu
 * may be done by the layer before, and leave nothing to do in forward. */
#include "worker/nn/graph.h"

static coh_op_spec spec_of(const coh_node *node, const coh_value *data,
                           coh_pass pass)
{
    const coh_layer_spec *layer = &node->layer->spec;
    coh_op_spec spec = {
        .name = layer->name,
        .kind = COH_OP_RELU,
        .pass = pass,
        .src = coh_operand_of(data),
        .dst = coh_operand_of(data),
        .forward = node->op,
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
    const coh_op_spec spec = spec_of(node, node->src, pass);

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

coh_status coh_eltwise_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_op_spec spec = spec_of(node, node->dst, COH_PASS_DATA);
    coh_op *op = NULL;

    COH_TRY(coh_graph_op(graph, &spec, &op, err));
    COH_TRY(coh_graph_convert(graph, &graph->backward, node->layer->spec.name,
                              coh_op_layout(op, COH_ARG_DIFF_DST),
                              coh_graph_other_slot(node->diff), &node->diff,
                              err));
    coh_op_bind(op, COH_ARG_DST, node->dst->tensor);
    coh_op_bind(op, COH_ARG_DIFF_DST, node->diff->tensor);
    coh_op_bind(op, COH_ARG_DIFF_SRC, node->diff->tensor);
    return coh_graph_append_op(graph, &graph->backward, op, err);
}
