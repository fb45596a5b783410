/* dnn_v2.h - for dnn.c alone: what it calls of oneDNN 3, in terms of oneDNN 2.
 *
 * oneDNN 3 makes a primitive descriptor in one call and hides memory
 * descriptors behind a pointer. oneDNN 2 fills an operation descriptor first,
 * and a memory descriptor is an open struct. The names are oneDNN 3's; hints
 * of a backward pass and attributes mean the same in both.
 */
#ifndef COH_WORKER_NN_DNN_V2_H
#define COH_WORKER_NN_DNN_V2_H

/* How values lie: a stride for each axis, in values, then blocks inside. */
typedef struct blocking {
    int64_t stride[COH_DIMS_MAX];
    int nblocks;
    int64_t block[COH_DIMS_MAX], axis[COH_DIMS_MAX]; /* [nblocks] */
} blocking;

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t owned_md;

static coh_dims md_dims(const_dnnl_memory_desc_t md)
{
    coh_dims dims = { 0 };
    const dnnl_dims_t *size = NULL;

    dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &dims.count);
    dnnl_memory_desc_query(md, dnnl_query_dims, &size);
    for (int i = 0; i < dims.count && i < COH_DIMS_MAX; i++)
        dims.size[i] = (*size)[i];
    return dims;
}

/* False if the layout is not one of strides and blocks. */
static bool md_blocking(const_dnnl_memory_desc_t md, blocking *out)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    const dnnl_dims_t *strides = NULL, *blocks = NULL, *axes = NULL;

    dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind);
    if (kind != dnnl_blocked)
        return false;
    dnnl_memory_desc_query(md, dnnl_query_strides, &strides);
    dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &out->nblocks);
    dnnl_memory_desc_query(md, dnnl_query_inner_blks, &blocks);
    dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &axes);
    for (int i = 0; i < COH_DIMS_MAX; i++) {
        out->stride[i] = (*strides)[i];
        out->block[i] = i < out->nblocks ? (*blocks)[i] : 0;
        out->axis[i] = i < out->nblocks ? (*axes)[i] : 0;
    }
    return true;
}

#else

typedef dnnl_memory_desc_t *owned_md;
typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;

static coh_dims md_dims(const_dnnl_memory_desc_t md)
{
    coh_dims dims = { .count = md->ndims };

    for (int i = 0; i < dims.count && i < COH_DIMS_MAX; i++)
        dims.size[i] = md->dims[i];
    return dims;
}

static bool md_blocking(const_dnnl_memory_desc_t md, blocking *out)
{
    const dnnl_blocking_desc_t *from = &md->format_desc.blocking;

    if (md->format_kind != dnnl_blocked)
        return false;
    out->nblocks = from->inner_nblks;
    for (int i = 0; i < COH_DIMS_MAX; i++) {
        out->stride[i] = from->strides[i];
        out->block[i] = i < out->nblocks ? from->inner_blks[i] : 0;
        out->axis[i] = i < out->nblocks ? from->inner_idxs[i] : 0;
    }
    return true;
}

static dnnl_status_t dnnl_memory_desc_create_with_tag(owned_md *md, int count,
                                                      const dnnl_dims_t dims,
                                                      dnnl_data_type_t type,
                                                      dnnl_format_tag_t tag)
{
    *md = malloc(sizeof **md);
    return *md == NULL
               ? dnnl_out_of_memory
               : dnnl_memory_desc_init_by_tag(*md, count, dims, type, tag);
}

static dnnl_status_t dnnl_memory_desc_destroy(owned_md md)
{
    free(md);
    return dnnl_success;
}

/* The second half of every constructor below. `init` is what filling the
 * operation descriptor `op` returned. */
static dnnl_status_t pd_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                               dnnl_status_t init, const_dnnl_op_desc_t op,
                               const_dnnl_primitive_desc_t hint,
                               const_dnnl_primitive_attr_t attr)
{
    return init != dnnl_success
               ? init
               : dnnl_primitive_desc_create(pd, op, attr, engine, hint);
}

static dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t op;
    const dnnl_status_t init = dnnl_dilated_convolution_forward_desc_init(
        &op, prop, alg, src, weights, bias, dst, strides, dilates, before,
        after);
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t weights,
    const_dnnl_memory_desc_t diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t op;
    const dnnl_status_t init = dnnl_dilated_convolution_backward_data_desc_init(
        &op, alg, diff_src, weights, diff_dst, strides, dilates, before, after);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t diff_weights,
    const_dnnl_memory_desc_t diff_bias, const_dnnl_memory_desc_t diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t op;
    const dnnl_status_t init =
        dnnl_dilated_convolution_backward_weights_desc_init(
            &op, alg, src, diff_weights, diff_bias, diff_dst, strides, dilates,
            before, after);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_deconvolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    dnnl_deconvolution_desc_t op;
    const dnnl_status_t init = dnnl_dilated_deconvolution_forward_desc_init(
        &op, prop, alg, src, weights, bias, dst, strides, dilates, before,
        after);
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_deconvolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t weights,
    const_dnnl_memory_desc_t diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_deconvolution_desc_t op;
    const dnnl_status_t init =
        dnnl_dilated_deconvolution_backward_data_desc_init(
            &op, alg, diff_src, weights, diff_dst, strides, dilates, before,
            after);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_deconvolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t diff_weights,
    const_dnnl_memory_desc_t diff_bias, const_dnnl_memory_desc_t diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    dnnl_deconvolution_desc_t op;
    const dnnl_status_t init =
        dnnl_dilated_deconvolution_backward_weights_desc_init(
            &op, alg, src, diff_weights, diff_bias, diff_dst, strides, dilates,
            before, after);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_inner_product_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights,
    const_dnnl_memory_desc_t bias, const_dnnl_memory_desc_t dst,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t op;
    const dnnl_status_t init = dnnl_inner_product_forward_desc_init(
        &op, prop, src, weights, bias, dst);
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_inner_product_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t weights,
    const_dnnl_memory_desc_t diff_dst, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t op;
    const dnnl_status_t init = dnnl_inner_product_backward_data_desc_init(
        &op, diff_src, weights, diff_dst);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_inner_product_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t diff_weights,
    const_dnnl_memory_desc_t diff_bias, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t op;
    const dnnl_status_t init = dnnl_inner_product_backward_weights_desc_init(
        &op, src, diff_weights, diff_bias, diff_dst);
    return pd_create(pd, engine, init, &op, hint, attr);
}

/* Dilated pools would need the v2 calls of oneDNN 2; we have none. */
static dnnl_status_t dnnl_pooling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t op;
    const dnnl_status_t init = dnnl_pooling_forward_desc_init(
        &op, prop, alg, src, dst, strides, kernel, before, after);
    COH_ASSERT(dilates[0] == 0 && dilates[1] == 0);
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_pooling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t kernel,
    const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t op;
    const dnnl_status_t init = dnnl_pooling_backward_desc_init(
        &op, alg, diff_src, diff_dst, strides, kernel, before, after);
    COH_ASSERT(dilates[0] == 0 && dilates[1] == 0);
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t dnnl_resampling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const float *factors, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t dst, const_dnnl_primitive_attr_t attr)
{
    dnnl_resampling_desc_t op;
    const dnnl_status_t init =
        dnnl_resampling_forward_desc_init(&op, prop, alg, factors, src, dst);
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_resampling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const float *factors, const_dnnl_memory_desc_t diff_src,
    const_dnnl_memory_desc_t diff_dst, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_resampling_desc_t op;
    const dnnl_status_t init = dnnl_resampling_backward_desc_init(
        &op, alg, factors, diff_src, diff_dst);
    return pd_create(pd, engine, init, &op, hint, attr);
}

/* oneDNN 2 knows one layout for both sides of a softmax, and one algorithm. */
static dnnl_status_t dnnl_softmax_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t dst, int axis, const_dnnl_primitive_attr_t attr)
{
    dnnl_softmax_desc_t op;
    const dnnl_status_t init =
        dnnl_softmax_forward_desc_init(&op, prop, src, axis);
    (void)alg;
    (void)dst;
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_softmax_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_memory_desc_t dst, int axis, const_dnnl_primitive_desc_t hint,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_softmax_desc_t op;
    const dnnl_status_t init =
        dnnl_softmax_backward_desc_init(&op, diff_dst, dst, axis);
    (void)alg;
    (void)diff_src;
    return pd_create(pd, engine, init, &op, hint, attr);
}

/* oneDNN 2 knows one layout for both sides of an eltwise. */
static dnnl_status_t dnnl_eltwise_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    dnnl_alg_kind_t alg, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t dst, float alpha, float beta,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_eltwise_desc_t op;
    const dnnl_status_t init =
        dnnl_eltwise_forward_desc_init(&op, prop, alg, src, alpha, beta);
    (void)dst;
    return pd_create(pd, engine, init, &op, NULL, attr);
}

static dnnl_status_t dnnl_eltwise_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_memory_desc_t data, float alpha, float beta,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr)
{
    dnnl_eltwise_desc_t op;
    const dnnl_status_t init =
        dnnl_eltwise_backward_desc_init(&op, alg, diff_dst, data, alpha, beta);
    (void)diff_src;
    return pd_create(pd, engine, init, &op, hint, attr);
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg,
                                    float alpha, float beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta);
}
#define dnnl_post_ops_append_eltwise append_eltwise

#endif
#endif
