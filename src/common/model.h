/* model.h - the network: layers with shapes, and the flat parameter vector.
 *
 * All parameters lie in one float32 vector in forward layer order, weights then
 * bias, then running statistics (statistics.h). A layer's weights are row-major:
 * [O, I/groups, KH, KW] (conv2d), [I, O/groups, KH, KW] (deconv2d, as ONNX and
 * PyTorch have it), [O, I] (dense, with I in [C, H, W] order), [C, H, W]
 * (layer_norm), [C] (batch_norm); its bias [O], or as the weights of the norms.
 * batch_norm's statistics are mean [C], then variance [C].
 *
 *     new -> read -> destroy         no MPI, no oneDNN
 *
 * The layers are a directed acyclic graph in an order in which each stands
 * behind those it takes from. A value that several layers take has the sum of
 * their gradients.
 *
 * Losses: of a sample, each is a mean (or sum) over what counts in it, a
 * function of that sample alone; the sample's loss is their sum, each times its
 * weight. Samples without labels have the losses that say `unlabelled`.
 *
 *     softmax_cross_entropy   sum_p m_p (log sum_c exp x_cp - x_yp) / sum_p m_p
 *     sigmoid_cross_entropy   sum_i m_i (max(x, 0) - x t + log(1 + exp -|x|)) / ...
 *     mean_squared_error      sum_i m_i (x_i - t_i)^2 / sum_i m_i
 *     smooth_l1               sum_i m_i s(x_i - t_i) / sum_i m_i
 *
 * with p over the positions [H, W], i over the values [C, H, W], y_p a label, m
 * the mask (>= 0; 1 without; positions that are ignored have 0), s(d) = d^2 / 2
 * where |d| < 1, else |d| - 1/2. Nothing that counts: 0. mean: false leaves the
 * division out.
 *
 * Flop: multiply and add are two; forward of conv2d 2 O OH OW (I/g) KH KW,
 * deconv2d 2 I IH IW (O/g) KH KW, dense 2 O I, all else 0. A training step is
 * three forwards, less the input gradients of layers that stand behind no other
 * with weights: nobody needs them.
 */
#ifndef COH_COMMON_MODEL_H
#define COH_COMMON_MODEL_H

#include <stdint.h>

#include "common/config.h"
#include "common/statistics.h"
#include "common/status.h"

/* One sample's shape. A flat vector of n values is {n, 1, 1}. */
typedef struct coh_shape {
    int64_t c, h, w;
} coh_shape;

/* Where a loss finds what it compares with. */
enum {
    COH_TARGET_LABEL = -1, /* the class of the sample */
    COH_TARGET_INPUT = -2, /* the images themselves */
    COH_TARGET_NONE = -3   /* no mask */
};

/* What a sample is compared with, and by which losses: generated data are made
 * to fit. */
typedef struct coh_target {
    char name[COH_NAME_MAX];
    coh_shape shape;
    int64_t first;   /* in a sample's targets */
    int64_t classes; /* > 0: labels of so many classes */
    bool is_map;     /* a number in [0, 1] for each value: sigmoid's */
    bool is_mask;    /* factors of a loss */
} coh_target;

typedef struct coh_layer {
    coh_layer_spec spec;
    int ninputs;
    int inputs[COH_FROM_MAX];      /* layers before this one; -1: the images */
    bool needs_diff[COH_FROM_MAX]; /* that input leads to weights */
    bool leads;                    /* it has weights, or leads to some */
    coh_shape in, out;             /* in: of the first input */
    int64_t pad_before[2], pad_after[2]; /* top and left; bottom and right; of
                                            deconv2d what is cut off, negative:
                                            what is added */
    int64_t weight_first, weight_count;  /* in the flat vector; count 0: none */
    int64_t bias_first, bias_count;
    int64_t statistic_first, statistic_count;
    int64_t flop; /* forward, one sample */
    /* Of a loss: */
    int target, mask; /* in the model's targets, or COH_TARGET_... */
    int64_t target_first,
        mask_first; /* where they begin in a sample's targets */
    int64_t mask_channels;
    int term;           /* its number among the losses */
    bool is_classifier; /* it is the model's */
} coh_layer;

typedef struct coh_model {
    coh_shape input;
    int nlayers;
    coh_layer *layers; /* [nlayers], owned; the last is a loss */
    int ntargets;
    coh_target *targets;  /* [ntargets], owned */
    int64_t target_count; /* numbers of a sample's targets, one after another */
    int nlosses;
    int losses[COH_LOSSES_MAX]; /* layers, in order */
    int classifier;     /* the last softmax_cross_entropy on labels; -1: none */
    int64_t classes;    /* of it; 0: none, labels do not count */
    int64_t parameters; /* length of the flat vector */
    int64_t trained;    /* of them; the others are running statistics */
    coh_statistics statistics; /* owned */
    int64_t flop_forward;
    int64_t flop_step;      /* training, without needless input gradients */
    int64_t flop_step_full; /* 3 x forward */
} coh_model;

/* Infer shapes from config->model. On COH_OK *out is the caller's, to end with
 * coh_model_destroy(); nothing of config is kept.
 * Fails with COH_E_CONFIG: the layer, its line and both shapes. */
coh_status coh_model_new(const coh_config *config, coh_model **out,
                         coh_err *err);
void coh_model_destroy(coh_model **self);

/* values[parameters]: weights normal with variance 2 / fan-in (He et al.,
 * arXiv 1502.01852, eq. 10; of deconv2d the mean fan-in, I/g KH KW / stride^2),
 * biases and running means 0, weights of layer_norm and batch_norm and running
 * variances 1. A pure function of seed and index. */
void coh_model_init(const coh_model *self, uint64_t seed, float *values);

/* Can a worker train on steps of so few samples? Fails with COH_E_CONFIG: the
 * batch_norm whose channels would have one value each, and no variance. */
coh_status coh_model_check_share(const coh_model *self, int64_t samples,
                                 coh_err *err);

/* The shape of a layer's output, or of the images for -1. */
coh_shape coh_model_shape(const coh_model *self, int layer);

/* How many layers take a layer's output; an input named twice counts twice.
 * *user is one of them, if there is any. */
int coh_model_users(const coh_model *self, int layer, int *user);

/* A number that differs, almost surely, between models whose parameters mean
 * different things. */
int64_t coh_model_fingerprint(const coh_model *self);

static inline int64_t coh_shape_count(coh_shape s)
{
    return s.c * s.h * s.w;
}

static inline int64_t coh_layer_parameters(const coh_layer *layer)
{
    return layer->weight_count + layer->bias_count + layer->statistic_count;
}

#endif
