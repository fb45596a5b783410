/* dnn.c - see dnn.h. Longer than other files, because no other may include
 * dnnl.h. */
#include "worker/nn/dnn.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include "worker/nn/dnn_v2.h"

/* A coh_layout is oneDNN's memory descriptor under a name of ours. */
#define MD(layout) ((const_dnnl_memory_desc_t)(layout))
#define LAYOUT(md) ((const coh_layout *)(md))

struct coh_dnn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

struct coh_tensor {
    dnnl_memory_t memory;
};

struct coh_op {
    char name[96]; /* layer and pass */
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    dnnl_stream_t stream; /* borrowed */
    int nargs;
    dnnl_exec_arg_t args[COH_ARG_COUNT];
};

static const int arg_numbers[COH_ARG_COUNT] = {
    [COH_ARG_SRC] = DNNL_ARG_SRC,
    [COH_ARG_WEIGHTS] = DNNL_ARG_WEIGHTS,
    [COH_ARG_BIAS] = DNNL_ARG_BIAS,
    [COH_ARG_DST] = DNNL_ARG_DST,
    [COH_ARG_DIFF_SRC] = DNNL_ARG_DIFF_SRC,
    [COH_ARG_DIFF_WEIGHTS] = DNNL_ARG_DIFF_WEIGHTS,
    [COH_ARG_DIFF_BIAS] = DNNL_ARG_DIFF_BIAS,
    [COH_ARG_DIFF_DST] = DNNL_ARG_DIFF_DST,
    [COH_ARG_WORKSPACE] = DNNL_ARG_WORKSPACE,
    [COH_ARG_SCRATCHPAD] = DNNL_ARG_SCRATCHPAD,
};

static coh_status fail(coh_err *err, dnnl_status_t code, const char *name)
{
    const coh_status status =
        code == dnnl_out_of_memory ? COH_E_NOMEM : COH_E_FAILED;

    return coh_fail(err, status, "%s: oneDNN %d.%d: %s", name,
                    dnnl_version()->major, dnnl_version()->minor,
                    dnnl_status2str(code));
}

/* --- engine ------------------------------------------------------------- */

void coh_dnn_version(char *out, size_t size)
{
    const dnnl_version_t *version = dnnl_version();

    snprintf(out, size, "%d.%d.%d", version->major, version->minor,
             version->patch);
}

int coh_dnn_block(void)
{
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    const unsigned wide = (unsigned)dnnl_cpu_isa_avx512_core;

    return (isa & wide) == wide ? 16 : 8;
}

coh_status coh_dnn_new(coh_dnn **out, coh_err *err)
{
    coh_dnn *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for oneDNN's engine");

    dnnl_status_t code = dnnl_engine_create(&self->engine, dnnl_cpu, 0);
    if (code == dnnl_success)
        code = dnnl_stream_create(&self->stream, self->engine,
                                  dnnl_stream_default_flags);
    if (code != dnnl_success) {
        coh_dnn_destroy(&self);
        return fail(err, code, "CPU engine");
    }
    *out = self;
    return COH_OK;
}

void coh_dnn_destroy(coh_dnn **self)
{
    coh_dnn *dnn = *self;
    if (dnn == NULL)
        return;

    if (dnn->stream != NULL)
        dnnl_stream_destroy(dnn->stream);
    if (dnn->engine != NULL)
        dnnl_engine_destroy(dnn->engine);
    free(dnn);
    *self = NULL;
}

/* --- layouts and tensors ------------------------------------------------ */

size_t coh_layout_bytes(const coh_layout *self)
{
    return dnnl_memory_desc_get_size(MD(self));
}

bool coh_layout_equal(const coh_layout *self, const coh_layout *other)
{
    return dnnl_memory_desc_equal(MD(self), MD(other)) != 0;
}

bool coh_dims_equal(coh_dims self, coh_dims other)
{
    if (self.count != other.count)
        return false;
    for (int i = 0; i < self.count; i++) {
        if (self.size[i] != other.size[i])
            return false;
    }
    return true;
}

/* An axis that is cut into blocks is a capital letter; its blocks stand behind,
 * with their size. Axes of length 1 may come in any format. */
static void name_blocks(const blocking *how, coh_dims dims, const char *letters,
                        FILE *out)
{
    bool done[COH_DIMS_MAX] = { false };

    for (int n = 0; n < dims.count; n++) {
        int next = -1;
        for (int i = 0; i < dims.count; i++) {
            if (!done[i] && (next < 0 || how->stride[i] > how->stride[next]))
                next = i;
        }
        bool is_cut = false;
        for (int b = 0; b < how->nblocks; b++)
            is_cut = is_cut || how->axis[b] == next;
        done[next] = true;
        fputc(is_cut ? toupper(letters[next]) : letters[next], out);
    }
    for (int b = 0; b < how->nblocks; b++)
        fprintf(out, "%d%c", (int)how->block[b], letters[how->axis[b]]);
}

void coh_layout_write(const coh_layout *self, char *out, size_t size)
{
    static const char *const letters[] = {
        "", "x", "nc", "ncw", "nchw", "goihw"
    };
    const coh_dims dims = md_dims(MD(self));
    blocking how;

    FILE *text = fmemopen(out, size, "w");
    COH_ASSERT(text != NULL);
    if (md_blocking(MD(self), &how) && dims.count <= 5)
        name_blocks(&how, dims, letters[dims.count], text);
    else
        fputs("packed", text);
    fclose(text);
    out[size - 1] = '\0';
}

static dnnl_format_tag_t tag_of(coh_format format, int count)
{
    static const dnnl_format_tag_t row_major[] = {
        dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde
    };

    COH_ASSERT(count <= 5 && (count == 4 || format <= COH_FORMAT_PLAIN));
    switch (format) {
    case COH_FORMAT_PLAIN:
        return row_major[count];
    case COH_FORMAT_LAST:
        return dnnl_acdb;
    case COH_FORMAT_BLOCKED:
        return coh_dnn_block() == 16 ? dnnl_aBcd16b : dnnl_aBcd8b;
    default:
        return dnnl_format_tag_any;
    }
}

/* A descriptor of float32 values. No dims: *out is NULL. */
static dnnl_status_t describe(coh_dims dims, coh_format format, owned_md *out)
{
    *out = NULL;
    if (dims.count == 0)
        return dnnl_success;
    return dnnl_memory_desc_create_with_tag(
        out, dims.count, dims.size, dnnl_f32, tag_of(format, dims.count));
}

coh_format coh_layout_format(const coh_layout *self)
{
    const coh_dims dims = md_dims(MD(self));
    const coh_format formats[] = { COH_FORMAT_PLAIN, COH_FORMAT_LAST };

    for (int i = 0; i < (dims.count == 4 ? 2 : 1); i++) {
        owned_md md = NULL;
        const bool is_it = describe(dims, formats[i], &md) == dnnl_success &&
                           dnnl_memory_desc_equal(md, MD(self)) != 0;
        if (md != NULL)
            dnnl_memory_desc_destroy(md);
        if (is_it)
            return formats[i];
    }
    return COH_FORMAT_BLOCKED;
}

/* The distance of two neighbours in H x W; 0 if it is not one distance. */
static int64_t step_of(const coh_dims *dims, const blocking *how)
{
    const int64_t h = dims->size[2], w = dims->size[3];

    if (w == 1)
        return how->stride[2];
    return h == 1 || how->stride[2] == w * how->stride[3] ? how->stride[3] : 0;
}

bool coh_layout_channels(const coh_layout *self, coh_channels *out)
{
    const coh_dims dims = md_dims(MD(self));
    const bool flat = dims.count == 2;
    blocking how;

    if ((!flat && dims.count != 4) || !md_blocking(MD(self), &how))
        return false;
    coh_channels it = { .rows = dims.size[0],
                        .channels = dims.size[1],
                        .positions = flat ? 1 : dims.size[2] * dims.size[3],
                        .row_stride = how.stride[0],
                        .block_stride = how.stride[1] };
    const bool is_cut = how.nblocks == 1 && how.axis[0] == 1;
    if (is_cut)
        it.lanes = how.block[0];
    else if (how.nblocks == 0)
        it.lanes = how.stride[1] == 1 ? it.channels : 1;
    else
        return false;
    it.nblocks = (it.channels - 1) / it.lanes + 1;
    *out = it;
    return it.positions == 1 || step_of(&dims, &how) == it.lanes;
}

coh_status coh_tensor_new(coh_dnn *dnn, const coh_layout *layout,
                          coh_tensor **out, coh_err *err)
{
    coh_tensor *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a tensor");

    const dnnl_status_t code = dnnl_memory_create(
        &self->memory, MD(layout), dnn->engine, DNNL_MEMORY_NONE);
    if (code != dnnl_success) {
        coh_tensor_destroy(&self);
        return fail(err, code, "tensor");
    }
    *out = self;
    return COH_OK;
}

coh_status coh_tensor_new_in(coh_dnn *dnn, coh_dims dims, coh_format format,
                             coh_tensor **out, coh_err *err)
{
    owned_md md = NULL;
    const dnnl_status_t code = describe(dims, format, &md);
    const coh_status status = code == dnnl_success
                                  ? coh_tensor_new(dnn, LAYOUT(md), out, err)
                                  : fail(err, code, "tensor");

    if (md != NULL)
        dnnl_memory_desc_destroy(md);
    return status;
}

coh_status coh_tensor_new_plain(coh_dnn *dnn, coh_dims dims, coh_tensor **out,
                                coh_err *err)
{
    return coh_tensor_new_in(dnn, dims, COH_FORMAT_PLAIN, out, err);
}

coh_status coh_tensor_new_swapped(coh_dnn *dnn, coh_dims dims, coh_tensor **out,
                                  coh_err *err)
{
    const dnnl_format_tag_t swapped = dims.count == 5 ? dnnl_acbde : dnnl_bacd;
    owned_md md = NULL;

    COH_ASSERT(dims.count == 4 || dims.count == 5);
    const dnnl_status_t code = dnnl_memory_desc_create_with_tag(
        &md, dims.count, dims.size, dnnl_f32, swapped);
    const coh_status status = code == dnnl_success
                                  ? coh_tensor_new(dnn, LAYOUT(md), out, err)
                                  : fail(err, code, "tensor");

    dnnl_memory_desc_destroy(md);
    return status;
}

void coh_tensor_destroy(coh_tensor **self)
{
    if (*self == NULL)
        return;
    if ((*self)->memory != NULL)
        dnnl_memory_destroy((*self)->memory);
    free(*self);
    *self = NULL;
}

void coh_tensor_point(coh_tensor *self, void *data)
{
    const dnnl_status_t code = dnnl_memory_set_data_handle(self->memory, data);
    COH_ASSERT(code == dnnl_success);
}

void *coh_tensor_data(const coh_tensor *self)
{
    void *data = NULL;
    const dnnl_status_t code = dnnl_memory_get_data_handle(self->memory, &data);

    COH_ASSERT(code == dnnl_success);
    return data;
}

const coh_layout *coh_tensor_layout(const coh_tensor *self)
{
    const_dnnl_memory_desc_t md = NULL;
    const dnnl_status_t code = dnnl_memory_get_memory_desc(self->memory, &md);

    COH_ASSERT(code == dnnl_success);
    return LAYOUT(md);
}

coh_dims coh_tensor_dims(const coh_tensor *self)
{
    return md_dims(MD(coh_tensor_layout(self)));
}

/* --- ops ---------------------------------------------------------------- */

/* What the constructors of oneDNN want, from a coh_op_spec. */
typedef struct wanted {
    const coh_op_spec *spec;
    owned_md owned[4]; /* descriptors made here, or NULL */
    const_dnnl_memory_desc_t src, weights, bias, dst;
    dnnl_dims_t kernel, stride, dilate, before, after;
    dnnl_prop_kind_t forward;         /* which kind of forward */
    const_dnnl_primitive_desc_t hint; /* the forward pass of a backward one */
    dnnl_primitive_attr_t attr;
} wanted;

static dnnl_status_t make_conv(const wanted *w, dnnl_engine_t engine,
                               dnnl_primitive_desc_t *pd)
{
    const dnnl_alg_kind_t algorithm = dnnl_convolution_direct;

    switch (w->spec->pass) {
    case COH_PASS_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(
            pd, engine, algorithm, w->src, w->weights, w->dst, w->stride,
            w->dilate, w->before, w->after, w->hint, w->attr);
    case COH_PASS_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            pd, engine, algorithm, w->src, w->weights, w->bias, w->dst,
            w->stride, w->dilate, w->before, w->after, w->hint, w->attr);
    default:
        return dnnl_convolution_forward_primitive_desc_create(
            pd, engine, w->forward, algorithm, w->src, w->weights, w->bias,
            w->dst, w->stride, w->dilate, w->before, w->after, w->attr);
    }
}

static dnnl_status_t make_deconv(const wanted *w, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t *pd)
{
    const dnnl_alg_kind_t algorithm = dnnl_deconvolution_direct;

    switch (w->spec->pass) {
    case COH_PASS_DATA:
        return dnnl_deconvolution_backward_data_primitive_desc_create(
            pd, engine, algorithm, w->src, w->weights, w->dst, w->stride,
            w->dilate, w->before, w->after, w->hint, w->attr);
    case COH_PASS_WEIGHTS:
        return dnnl_deconvolution_backward_weights_primitive_desc_create(
            pd, engine, algorithm, w->src, w->weights, w->bias, w->dst,
            w->stride, w->dilate, w->before, w->after, w->hint, w->attr);
    default:
        return dnnl_deconvolution_forward_primitive_desc_create(
            pd, engine, w->forward, algorithm, w->src, w->weights, w->bias,
            w->dst, w->stride, w->dilate, w->before, w->after, w->attr);
    }
}

static dnnl_status_t make_dense(const wanted *w, dnnl_engine_t engine,
                                dnnl_primitive_desc_t *pd)
{
    switch (w->spec->pass) {
    case COH_PASS_DATA:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            pd, engine, w->src, w->weights, w->dst, w->hint, w->attr);
    case COH_PASS_WEIGHTS:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            pd, engine, w->src, w->weights, w->bias, w->dst, w->hint, w->attr);
    default:
        return dnnl_inner_product_forward_primitive_desc_create(
            pd, engine, w->forward, w->src, w->weights, w->bias, w->dst,
            w->attr);
    }
}

static dnnl_status_t make_pool(const wanted *w, dnnl_engine_t engine,
                               dnnl_primitive_desc_t *pd)
{
    const dnnl_alg_kind_t algorithm = w->spec->kind == COH_OP_MAXPOOL
                                          ? dnnl_pooling_max
                                          : dnnl_pooling_avg_exclude_padding;

    if (w->spec->pass == COH_PASS_DATA)
        return dnnl_pooling_backward_primitive_desc_create(
            pd, engine, algorithm, w->src, w->dst, w->stride, w->kernel,
            w->dilate, w->before, w->after, w->hint, w->attr);
    return dnnl_pooling_forward_primitive_desc_create(
        pd, engine, w->forward, algorithm, w->src, w->dst, w->stride, w->kernel,
        w->dilate, w->before, w->after, w->attr);
}

static dnnl_status_t make_upsample(const wanted *w, dnnl_engine_t engine,
                                   dnnl_primitive_desc_t *pd)
{
    const dnnl_alg_kind_t algorithm = dnnl_resampling_nearest;

    if (w->spec->pass == COH_PASS_DATA)
        return dnnl_resampling_backward_primitive_desc_create(
            pd, engine, algorithm, NULL, w->src, w->dst, w->hint, w->attr);
    return dnnl_resampling_forward_primitive_desc_create(
        pd, engine, w->forward, algorithm, NULL, w->src, w->dst, w->attr);
}

static dnnl_status_t make_softmax(const wanted *w, dnnl_engine_t engine,
                                  dnnl_primitive_desc_t *pd)
{
    enum { CHANNELS = 1 };
    const dnnl_alg_kind_t algorithm = dnnl_softmax_accurate;

    if (w->spec->pass == COH_PASS_DATA)
        return dnnl_softmax_backward_primitive_desc_create(
            pd, engine, algorithm, w->src, w->dst, w->dst, CHANNELS, w->hint,
            w->attr);
    return dnnl_softmax_forward_primitive_desc_create(
        pd, engine, w->forward, algorithm, w->src, w->src, CHANNELS, w->attr);
}

/* Backward from dst, so that a fused activation needs no src, and src and dst
 * may be one tensor. Right for relu because 0 <= slope. */
static dnnl_status_t make_eltwise(const wanted *w, dnnl_engine_t engine,
                                  dnnl_primitive_desc_t *pd)
{
    const coh_op_kind kind = w->spec->kind;
    const dnnl_alg_kind_t algorithm =
        kind == COH_OP_RELU      ? dnnl_eltwise_relu_use_dst_for_bwd
        : kind == COH_OP_SIGMOID ? dnnl_eltwise_logistic_use_dst_for_bwd
                                 : dnnl_eltwise_tanh_use_dst_for_bwd;

    if (w->spec->pass == COH_PASS_DATA)
        return dnnl_eltwise_backward_primitive_desc_create(
            pd, engine, algorithm, w->src, w->dst, w->dst, w->spec->slope, 0,
            w->hint, w->attr);
    return dnnl_eltwise_forward_primitive_desc_create(
        pd, engine, w->forward, algorithm, w->src, w->src, w->spec->slope, 0,
        w->attr);
}

static dnnl_status_t make_attr(const coh_op_spec *spec,
                               dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t ops = NULL;

    dnnl_status_t code = dnnl_primitive_attr_create(attr);
    if (code == dnnl_success)
        code = dnnl_primitive_attr_set_scratchpad_mode(
            *attr, dnnl_scratchpad_mode_user);
    if (code != dnnl_success || !spec->then_relu)
        return code;

    code = dnnl_post_ops_create(&ops);
    if (code == dnnl_success)
        code = dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, spec->slope,
                                            0);
    if (code == dnnl_success)
        code = dnnl_primitive_attr_set_post_ops(*attr, ops);
    dnnl_post_ops_destroy(ops);
    return code;
}

static dnnl_status_t want_operand(const coh_operand *operand, owned_md *owned,
                                  const_dnnl_memory_desc_t *out)
{
    dnnl_status_t code = dnnl_success;

    if (operand->layout == NULL)
        code = describe(operand->dims, operand->format, owned);
    *out = operand->layout != NULL ? MD(operand->layout) : *owned;
    return code;
}

/* Fill *w; release() it whatever is returned. */
static dnnl_status_t want(const coh_op_spec *spec, wanted *w)
{
    const coh_window *window = &spec->window;
    const bool dilates =
        spec->kind == COH_OP_CONV || spec->kind == COH_OP_DECONV;

    *w = (wanted){ .spec = spec };
    w->forward = spec->pass == COH_PASS_INFER ? dnnl_forward_inference
                                              : dnnl_forward_training;
    w->hint = spec->forward != NULL ? spec->forward->pd : NULL;
    for (int i = 0; i < 2; i++) {
        w->kernel[i] = window->kernel[i];
        w->stride[i] = window->stride[i];
        w->dilate[i] = dilates ? window->dilation[i] - 1 : 0;
        w->before[i] = window->before[i];
        w->after[i] = window->after[i];
    }
    dnnl_status_t code = make_attr(spec, &w->attr);
    if (code == dnnl_success)
        code = want_operand(&spec->src, &w->owned[0], &w->src);
    if (code == dnnl_success)
        code = want_operand(&spec->weights, &w->owned[1], &w->weights);
    if (code == dnnl_success)
        code = want_operand(&spec->bias, &w->owned[2], &w->bias);
    if (code == dnnl_success)
        code = want_operand(&spec->dst, &w->owned[3], &w->dst);
    return code;
}

static void release(wanted *w)
{
    for (int i = 0; i < 4; i++) {
        if (w->owned[i] != NULL)
            dnnl_memory_desc_destroy(w->owned[i]);
    }
    if (w->attr != NULL)
        dnnl_primitive_attr_destroy(w->attr);
}

static dnnl_status_t make_pd(const wanted *w, dnnl_engine_t engine,
                             dnnl_primitive_desc_t *pd)
{
    switch (w->spec->kind) {
    case COH_OP_CONV:
        return make_conv(w, engine, pd);
    case COH_OP_DECONV:
        return make_deconv(w, engine, pd);
    case COH_OP_DENSE:
        return make_dense(w, engine, pd);
    case COH_OP_MAXPOOL:
    case COH_OP_AVGPOOL:
        return make_pool(w, engine, pd);
    case COH_OP_UPSAMPLE:
        return make_upsample(w, engine, pd);
    case COH_OP_SOFTMAX:
        return make_softmax(w, engine, pd);
    default:
        return make_eltwise(w, engine, pd);
    }
}

/* An op without descriptor; NULL: no memory. */
static coh_op *make_op(const coh_dnn *dnn, const char *name, const char *pass)
{
    coh_op *self = calloc(1, sizeof *self);

    if (self == NULL)
        return NULL;
    snprintf(self->name, sizeof self->name, "layer %s: %s", name, pass);
    self->stream = dnn->stream;
    return self;
}

/* Make the primitive of self->pd and hand the op out, or end it. */
static coh_status finish_op(coh_op *self, dnnl_status_t code, coh_op **out,
                            coh_err *err)
{
    coh_status status = COH_OK;

    if (code == dnnl_success)
        code = dnnl_primitive_create(&self->primitive, self->pd);
    if (code != dnnl_success) {
        status = fail(err, code, self->name);
        coh_op_destroy(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

coh_status coh_op_new(coh_dnn *dnn, const coh_op_spec *spec, coh_op **out,
                      coh_err *err)
{
    static const char *const passes[] = {
        [COH_PASS_INFER] = "inference",
        [COH_PASS_TRAIN] = "forward",
        [COH_PASS_DATA] = "backward, data",
        [COH_PASS_WEIGHTS] = "backward, weights",
    };

    coh_op *self = make_op(dnn, spec->name, passes[spec->pass]);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory", spec->name);

    wanted w;
    dnnl_status_t code = want(spec, &w);
    if (code == dnnl_success)
        code = make_pd(&w, dnn->engine, &self->pd);
    release(&w);
    return finish_op(self, code, out, err);
}

coh_status coh_op_new_reorder(coh_dnn *dnn, const char *name,
                              const coh_tensor *src, const coh_tensor *dst,
                              coh_op **out, coh_err *err)
{
    dnnl_primitive_attr_t attr = NULL;
    const coh_op_spec plain = { .name = name };

    coh_op *self = make_op(dnn, name, "change of layout");
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "layer %s: no memory", name);

    dnnl_status_t code = make_attr(&plain, &attr);
    if (code == dnnl_success)
        code = dnnl_reorder_primitive_desc_create(
            &self->pd, MD(coh_tensor_layout(src)), dnn->engine,
            MD(coh_tensor_layout(dst)), dnn->engine, attr);
    if (attr != NULL)
        dnnl_primitive_attr_destroy(attr);
    coh_op_bind(self, COH_ARG_SRC, src); /* the same number as DNNL_ARG_FROM */
    coh_op_bind(self, COH_ARG_DST, dst); /* and DNNL_ARG_TO */
    return finish_op(self, code, out, err);
}

void coh_op_destroy(coh_op **self)
{
    coh_op *op = *self;
    if (op == NULL)
        return;

    if (op->primitive != NULL)
        dnnl_primitive_destroy(op->primitive);
    if (op->pd != NULL)
        dnnl_primitive_desc_destroy(op->pd);
    free(op);
    *self = NULL;
}

const coh_layout *coh_op_layout(const coh_op *self, coh_arg arg)
{
    const_dnnl_memory_desc_t md = dnnl_primitive_desc_query_md(
        self->pd, dnnl_query_exec_arg_md, arg_numbers[arg]);

    return md == NULL || dnnl_memory_desc_get_size(md) == 0 ? NULL : LAYOUT(md);
}

const char *coh_op_algorithm(const coh_op *self)
{
    const char *name = NULL;

    if (dnnl_primitive_desc_query(self->pd, dnnl_query_impl_info_str, 0,
                                  (void *)&name) != dnnl_success ||
        name == NULL)
        return "unknown";
    return name;
}

bool coh_op_is_reference(const coh_op *self)
{
    return strncmp(coh_op_algorithm(self), "ref", 3) == 0;
}

void coh_op_bind(coh_op *self, coh_arg arg, const coh_tensor *tensor)
{
    COH_ASSERT(self->nargs < COH_ARG_COUNT);
    self->args[self->nargs++] =
        (dnnl_exec_arg_t){ arg_numbers[arg], tensor->memory };
}

void coh_op_run(coh_op *self)
{
    char what[192];

    dnnl_status_t code = dnnl_primitive_execute(self->primitive, self->stream,
                                                self->nargs, self->args);
    if (code == dnnl_success)
        code = dnnl_stream_wait(self->stream);
    if (code == dnnl_success)
        return;
    snprintf(what, sizeof what, "%s: oneDNN: %s", self->name,
             dnnl_status2str(code));
    coh_panic(__FILE__, __LINE__, what);
}
