/* nn_pool.c - maxpool, avgpool, global_avgpool, and upsample. They keep their
 * input's layout. */
#include "worker/nn/graph.h"
#include "worker/nn/layer_ops.h"

static coh_window window_of(const coh_layer *layer)
{
    const bool global = layer->spec.kind == COH_LAYER_GLOBAL_AVGPOOL;
    const int64_t whole[2] = { layer->in.h, layer->in.w };
    coh_window window = { 0 };

    for (int i = 0; i < 2; i++) {
        window.kernel[i] = global ? whole[i] : layer->spec.kernel[i];
        window.stride[i] = global ? 1 : layer->spec.stride[i];
        window.before[i] = global ? 0 : layer->pad_before[i];
        window.after[i] = global ? 0 : layer->pad_after[i];
    }
    return window;
}

static coh_op_kind kind_of(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_MAXPOOL    ? COH_OP_MAXPOOL
           : layer->spec.kind == COH_LAYER_UPSAMPLE ? COH_OP_UPSAMPLE
                                                    : COH_OP_AVGPOOL;
}

coh_op_spec coh_pool_spec(const coh_layer *layer, int64_t batch, coh_pass pass)
{
    return (coh_op_spec){
        .name = layer->spec.name,
        .kind = kind_of(layer),
        .pass = pass,
        .dst = coh_operand_any(coh_dims_of(batch, layer->out)),
        .window = window_of(layer),
    };
}

/* Values of 1 x 1 pixels are row-major and channels-last at once. oneDNN 3.7
 * upsamples them into the one as if they were the other, so it is told. */
static coh_status settle_order(coh_graph *graph, coh_node *node,
                               coh_op_spec *spec, coh_err *err)
{
    const coh_layer *layer = node->layer;

    if (spec->kind != COH_OP_UPSAMPLE || layer->in.h * layer->in.w > 1)
        return COH_OK;
    COH_TRY(coh_graph_unblock(graph, &graph->forward, layer->spec.name,
                              coh_graph_forward_slot(graph, node->src),
                              &node->src, err));
    COH_TRY(coh_graph_plain(graph, coh_dims_of(graph->batch, layer->out),
                            coh_graph_forward_slot(graph, node->src), 0,
                            &node->dst, err));
    spec->src = coh_operand_of(node->src);
    spec->dst = coh_operand_of(node->dst);
    return COH_OK;
}

coh_status coh_pool_forward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    const int slot = coh_graph_forward_slot(graph, node->src);

    if (node->done_before) {
        node->dst = node->src;
        return COH_OK;
    }
    COH_TRY(coh_graph_reshape(graph, &graph->forward, layer->spec.name,
                              coh_dims_of(graph->batch, layer->in), slot,
                              &node->src, err));
    coh_op_spec spec = coh_pool_spec(
        layer, graph->batch, graph->training ? COH_PASS_TRAIN : COH_PASS_INFER);
    spec.src = coh_operand_of(node->src);
    COH_TRY(settle_order(graph, node, &spec, err));
    COH_TRY(coh_graph_op(graph, &spec, &node->op, err));
    if (node->dst == NULL)
        COH_TRY(coh_graph_value(graph, coh_op_layout(node->op, COH_ARG_DST),
                                coh_graph_forward_slot(graph, node->src),
                                &node->dst, err));
    coh_op_bind(node->op, COH_ARG_SRC, node->src->tensor);
    coh_op_bind(node->op, COH_ARG_DST, node->dst->tensor);

    const coh_layout *places = coh_op_layout(node->op, COH_ARG_WORKSPACE);
    if (places != NULL) { /* of the largest values */
        COH_TRY(
            coh_graph_value(graph, places, COH_SLOT_OWN, &node->backup, err));
        coh_op_bind(node->op, COH_ARG_WORKSPACE, node->backup->tensor);
    }
    return coh_graph_append_op(graph, &graph->forward, node->op, err);
}

coh_status coh_pool_backward(coh_graph *graph, coh_node *node, coh_err *err)
{
    const coh_layer *layer = node->layer;
    coh_op_spec spec = coh_pool_spec(layer, graph->batch, COH_PASS_DATA);
    coh_op *op = NULL;

    if (node->done_before)
        return COH_OK;
    if (node->relu != NULL) {
        const int between = (int)(layer - node->relu);
        graph->backward.layer -= between; /* for the profile: the relu's time */
        COH_TRY(
            coh_relu_backward(graph, node->relu, node->dst, &node->diff, err));
        graph->backward.layer += between;
    }
    spec.src = coh_operand_of(node->src);
    spec.dst = coh_operand_of(node->dst);
    spec.forward = node->op;
    COH_TRY(coh_graph_op(graph, &spec, &op, err));
    COH_TRY(coh_graph_convert(graph, &graph->backward, layer->spec.name,
                              coh_op_layout(op, COH_ARG_DIFF_DST),
                              coh_graph_other_slot(node->diff), &node->diff,
                              err));
    coh_op_bind(op, COH_ARG_DIFF_DST, node->diff->tensor);
    if (node->backup != NULL)
        coh_op_bind(op, COH_ARG_WORKSPACE, node->backup->tensor);
    COH_TRY(coh_graph_value(graph, coh_op_layout(op, COH_ARG_DIFF_SRC),
                            coh_graph_other_slot(node->diff), &node->diff,
                            err));
    coh_op_bind(op, COH_ARG_DIFF_SRC, node->diff->tensor);
    return coh_graph_append_op(graph, &graph->backward, op, err);
}
