/* dnn.h - oneDNN 2.6 and 3, behind one interface. No other file of the project
 * includes dnnl.h.
 *
 *     dnn   new -> destroy            an engine (the CPU) and its stream
 *     tensor new -> point -> read     a shape, a layout, and borrowed memory
 *     op    new -> bind -> { run }* -> destroy
 *
 * An op is one primitive, made once: whatever can fail, fails in coh_op_new().
 * An operand whose layout is left to the op (NULL) gets the layout that suits
 * the op; ask for it by coh_op_layout() and make a tensor of it.
 *
 * Data     float32, except workspaces and scratchpads, which are bytes.
 * Memory   none is allocated for data: tensors are pointed at the caller's.
 *          Nothing is allocated in coh_op_run(), except inside oneDNN.
 * Errors   at new COH_E_FAILED (layer, pass, oneDNN's status) or COH_E_NOMEM;
 *          in run a panic that names the layer.
 * Threads  one caller; an op uses the OpenMP threads there were at new.
 * MPI      none.
 */
#ifndef COH_WORKER_NN_DNN_H
#define COH_WORKER_NN_DNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

typedef struct coh_dnn coh_dnn;
typedef struct coh_layout coh_layout; /* always borrowed: of an op or tensor */
typedef struct coh_tensor coh_tensor;
typedef struct coh_op coh_op;

/* N, C, H, W of values; O, I, KH, KW of weights, with the groups before. */
enum { COH_DIMS_MAX = 12 }; /* the length of oneDNN's own arrays */
typedef struct coh_dims {
    int count; /* 0: no such operand */
    int64_t size[COH_DIMS_MAX];
} coh_dims;

/* An order of values in memory, where no layout is at hand. */
typedef enum coh_format {
    COH_FORMAT_ANY,    /* the op chooses */
    COH_FORMAT_PLAIN,  /* row-major */
    COH_FORMAT_LAST,   /* channels last: nhwc */
    COH_FORMAT_BLOCKED /* nChw16c; nChw8c where vectors have 8 floats */
} coh_format;

typedef struct coh_operand {
    coh_dims dims;
    const coh_layout *layout; /* NULL: `format` counts */
    coh_format format;        /* of 4 axes if it is LAST or BLOCKED */
} coh_operand;

typedef enum coh_op_kind {
    COH_OP_CONV,
    COH_OP_DECONV,
    COH_OP_DENSE,
    COH_OP_MAXPOOL,
    COH_OP_AVGPOOL,  /* padding not counted */
    COH_OP_UPSAMPLE, /* nearest; by as much as dst is larger than src */
    COH_OP_RELU,     /* and leaky: uses `slope` */
    COH_OP_SIGMOID,
    COH_OP_TANH,
    COH_OP_SOFTMAX /* over the channels */
} coh_op_kind;

typedef enum coh_pass {
    COH_PASS_INFER,  /* forward, nothing kept for backward */
    COH_PASS_TRAIN,  /* forward */
    COH_PASS_DATA,   /* backward, gradient of src */
    COH_PASS_WEIGHTS /* backward, gradient of weights and bias */
} coh_pass;

/* In a backward pass src, weights, bias, dst are the gradients, except what
 * is read: weights in PASS_DATA, src in PASS_WEIGHTS. The backward pass of
 * relu, sigmoid, tanh and softmax is calculated from the forward pass's dst. */
typedef enum coh_arg {
    COH_ARG_SRC,
    COH_ARG_WEIGHTS,
    COH_ARG_BIAS,
    COH_ARG_DST,
    COH_ARG_DIFF_SRC,
    COH_ARG_DIFF_WEIGHTS,
    COH_ARG_DIFF_BIAS,
    COH_ARG_DIFF_DST,
    COH_ARG_WORKSPACE,
    COH_ARG_SCRATCHPAD,
    COH_ARG_COUNT
} coh_arg;

/* Height, width. dilation: distance of the taps, 1 is dense. */
typedef struct coh_window {
    int64_t kernel[2], stride[2], dilation[2], before[2], after[2];
} coh_window;

typedef struct coh_op_spec {
    const char *name; /* of the layer, for messages; copied */
    coh_op_kind kind;
    coh_pass pass;
    coh_operand src, weights, bias, dst;
    coh_window window; /* conv, deconv and pools */
    float slope;       /* of relu below 0 */
    bool then_relu;    /* forward of conv, dense: relu with `slope` on top */
    const coh_op *forward; /* of a backward pass: its COH_PASS_TRAIN; borrowed
                              while this op lives */
} coh_op_spec;

/* "3.7.2": the library that is loaded, not the one built with. */
void coh_dnn_version(char *out, size_t size);

/* Channels in a block of COH_FORMAT_BLOCKED: 16 or 8. */
int coh_dnn_block(void);

/* On COH_OK *out is the caller's. Fails with COH_E_FAILED, COH_E_NOMEM. */
coh_status coh_dnn_new(coh_dnn **out, coh_err *err);
void coh_dnn_destroy(coh_dnn **self);

/* A tensor that points nowhere yet; its layout is copied. */
coh_status coh_tensor_new(coh_dnn *dnn, const coh_layout *layout,
                          coh_tensor **out, coh_err *err);
/* The same in that order, which is not COH_FORMAT_ANY. */
coh_status coh_tensor_new_in(coh_dnn *dnn, coh_dims dims, coh_format format,
                             coh_tensor **out, coh_err *err);
/* The same, row-major. */
coh_status coh_tensor_new_plain(coh_dnn *dnn, coh_dims dims, coh_tensor **out,
                                coh_err *err);
/* Weights [O, I, KH, KW], or with the groups before, in memory row-major with O
 * and I changed round: [I, O, KH, KW]. */
coh_status coh_tensor_new_swapped(coh_dnn *dnn, coh_dims dims, coh_tensor **out,
                                  coh_err *err);
void coh_tensor_destroy(coh_tensor **self);

/* From now on the values are at `data`: coh_layout_bytes() bytes, borrowed. */
void coh_tensor_point(coh_tensor *self, void *data);
void *coh_tensor_data(const coh_tensor *self);
const coh_layout *coh_tensor_layout(const coh_tensor *self);
coh_dims coh_tensor_dims(const coh_tensor *self);

/* Where the channels of a value lie: blocks of `lanes` channels side by side,
 * the last one filled up, with zeros if blocks are larger than 1 and fewer than
 * the channels. Lane l of block k at position p of row b is float number
 *     b row_stride + k block_stride + p lanes + l
 * Row-major: blocks of 1. Channels last: one block. */
typedef struct coh_channels {
    int64_t rows, channels, positions; /* B, C, H W */
    int64_t lanes, nblocks;
    int64_t row_stride, block_stride;
} coh_channels;

size_t coh_layout_bytes(const coh_layout *self);
/* COH_FORMAT_PLAIN or _LAST if it is that, else _BLOCKED. */
coh_format coh_layout_format(const coh_layout *self);
/* Of values [B, C] or [B, C, H, W]. False: they lie in no such way. */
bool coh_layout_channels(const coh_layout *self, coh_channels *out);
bool coh_layout_equal(const coh_layout *self, const coh_layout *other);
bool coh_dims_equal(coh_dims self, coh_dims other);

/* On COH_OK *out is the caller's, to end with coh_op_destroy(). */
coh_status coh_op_new(coh_dnn *dnn, const coh_op_spec *spec, coh_op **out,
                      coh_err *err);
/* Copies src to dst in dst's layout. */
coh_status coh_op_new_reorder(coh_dnn *dnn, const char *name,
                              const coh_tensor *src, const coh_tensor *dst,
                              coh_op **out, coh_err *err);
void coh_op_destroy(coh_op **self);

/* NULL if the op has no such argument. */
const coh_layout *coh_op_layout(const coh_op *self, coh_arg arg);

/* oneDNN's name of what it runs: "jit:avx512_core". Borrowed from the op. */
const char *coh_op_algorithm(const coh_op *self);

/* Is that the plain loops oneDNN falls back on? They take 1000 times longer. */
bool coh_op_is_reference(const coh_op *self);

/* The order of the values in memory, outermost first, and the block: "nchw",
 * "nhwc", "nChw16c"; "packed" if only oneDNN knows. */
void coh_layout_write(const coh_layout *self, char *out, size_t size);

/* The tensor is borrowed, and may be pointed elsewhere between runs. */
void coh_op_bind(coh_op *self, coh_arg arg, const coh_tensor *tensor);

/* Returns when the result is there. Every argument must be bound. */
void coh_op_run(coh_op *self);

#endif
