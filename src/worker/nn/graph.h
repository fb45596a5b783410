/* graph.h - a network under construction, and then ready to run: for the files
 * of this room only; the others use net.h.
 *
 *     new -> build (net.c and a file a family of layers) -> place
 *         -> { point -> run }* -> destroy
 *
 * A graph is two tapes of actions, forward and backward, and the values that
 * go between them. Building decides every layout and records the changes of
 * layout where two neighbours differ; running plays the tapes.
 *
 * Memory plan: a value lives in a slot, and values that are never needed at
 * the same time share one. A shared slot is taken when a value is made, and is
 * free again when the layer is done, unless net.c holds a value in it: the
 * output or the gradient that a layer still to come will take. The arena, one
 * block that holds all slots, is the caller's; images, parameters and gradient
 * are used where the caller has them.
 *
 * A layer may change the gradient of its output in place: it is the only one
 * that has it. Its inputs it must leave as they are: others may take them too.
 *
 * Letters: B = batch, rows of every value.
 * Threads: one caller.   MPI: none.
 */
#ifndef COH_WORKER_NN_GRAPH_H
#define COH_WORKER_NN_GRAPH_H

#include "common/model.h"
#include "worker/compute.h"
#include "worker/nn/choice.h"
#include "worker/nn/dnn.h"

/* Leave the function with the status of what failed. */
#define COH_TRY(call)                    \
    do {                                 \
        const coh_status status_ = call; \
        if (status_ != COH_OK)           \
            return status_;              \
    } while (0)

typedef enum coh_slot {
    COH_SLOT_IMAGES, /* the caller's */
    COH_SLOT_PARAMETERS,
    COH_SLOT_GRADIENT,
    COH_SLOT_WEIGHTS, /* used within one layer: weights in its layout */
    COH_SLOT_DIFF_WEIGHTS,
    COH_SLOT_SRC,
    COH_SLOT_DIFF_DST,
    COH_SLOT_SCRATCHPAD,
    COH_SLOT_OWN,   /* kept to the end of the step: a new slot */
    COH_SLOT_SHARED /* kept while it is held: a slot that is free, or new */
    /* slots of their own, shared or not, have the numbers above */
} coh_slot;

typedef struct coh_value {
    struct coh_value *next; /* of the graph */
    coh_tensor *tensor;     /* owned */
    int slot;
    int64_t first; /* parameters and gradient: index in the flat vector */
} coh_value;

/* What a step is given, and where its result goes. */
typedef struct coh_run {
    const coh_batch *batch;
    coh_step_sums *sums;
    float *log_probs;       /* inference; NULL: not wanted */
    const coh_watch *watch; /* training; NULL: nobody watches */
} coh_run;

typedef struct coh_action {
    void (*run)(void *self, const coh_run *run);
    void *self; /* borrowed: kept by the graph */
    int layer;  /* in the model: for whom it is done */
    coh_pass pass;
    int64_t needs;    /* forward: it reads parameters before this one */
    int64_t has;      /* backward: gradients from this one on are complete */
    const coh_op *op; /* what `run` runs, if it is one; borrowed */
    bool is_copy;     /* a change of layout */
    const char *algorithm; /* of what is no op, for reports; a literal */
    double saving; /* products of the direct sum for each one that is made */
} coh_action;

typedef struct coh_tape {
    int count, room;
    coh_action *actions; /* [room], owned */
    int layer;           /* whose actions are appended now, */
    coh_pass pass;       /* and for which pass */
} coh_tape;

/* A slot that values share, one after the other. */
typedef struct coh_share {
    int slot;
    size_t bytes; /* of its largest value */
    bool is_taken;
} coh_share;

typedef struct coh_kept coh_kept; /* something to free at the end */

typedef struct coh_graph {
    coh_dnn *dnn; /* borrowed */
    int64_t batch;
    bool training;
    uint64_t seed;
    const coh_choices *choices; /* borrowed while it is built; NULL: direct */
    coh_tape forward, backward;
    coh_value *values; /* list, owned */
    coh_kept *kept;    /* list, owned */
    int nslots;        /* the next slot's number */
    int nshares;
    coh_share *shares; /* [nshares], owned */
} coh_graph;

/* A layer while the graph is built. Forward reads src and sets dst; backward
 * finds the gradient of dst in diff and leaves that of src there. A layer of
 * several inputs reads srcs, and leaves their gradients in diffs. */
typedef struct coh_node {
    const coh_layer *layer;
    int index;           /* in the model */
    bool needs_diff_src; /* there are weights behind its input */
    bool then_relu;      /* the layer that takes dst is done as part of this */
    bool done_before;    /* this layer is done as part of the one it takes */
    bool done_behind;    /* its backward pass is that of the one behind */
    bool is_stem;        /* done by stem.h, up to the pool */
    bool only_pooled;    /* backward does not need what it makes */
    const coh_layer *relu; /* of a pool: whose backward pass it does first */
    float slope;           /* of then_relu */
    coh_value *src, *dst, *diff;
    coh_value *srcs[COH_FROM_MAX], *diffs[COH_FROM_MAX];
    coh_op *op;        /* of forward */
    coh_value *backup; /* what forward keeps for backward */
    void *own;         /* the layer's own state, kept by the graph */
    int last_use;      /* the last layer that takes dst */
} coh_node;

/* One file a family. Each function adds the layer's actions to the graph.
 * They fail with COH_E_FAILED or COH_E_NOMEM, as dnn.h says. */
typedef coh_status coh_build(coh_graph *graph, coh_node *node, coh_err *err);
coh_build coh_linear_forward, coh_linear_backward; /* conv2d, deconv2d, dense */
coh_build coh_stem_build_forward, coh_stem_build_backward; /* a stem */
coh_build coh_winograd_build_forward;
coh_build coh_pool_forward, coh_pool_backward;       /* all pools, upsample */
coh_build coh_eltwise_forward, coh_eltwise_backward; /* relu, ..., softmax */
coh_build coh_crop_forward, coh_crop_backward;
coh_build coh_norm_forward, coh_norm_backward; /* layer_norm */
coh_build coh_batch_norm_build_forward, coh_batch_norm_build_backward;
coh_build coh_dropout_forward, coh_dropout_backward;
coh_build coh_add_forward, coh_add_backward;
coh_build coh_concat_forward, coh_concat_backward;
coh_build coh_loss_forward, coh_loss_backward;

/* The two backward passes by winograd.h. *diff is the gradient of dst;
 * afterwards, blocked. */
coh_status coh_winograd_build_weights(coh_graph *graph, coh_node *node,
                                      coh_value **diff, coh_err *err);
coh_status coh_winograd_build_data(coh_graph *graph, coh_node *node,
                                   coh_value *diff, coh_err *err);

/* The backward pass of `relu`, which made `made`: *diff, its gradient, is
 * changed in place, or in a copy in made's layout. */
coh_status coh_relu_backward(coh_graph *graph, const coh_layer *relu,
                             const coh_value *made, coh_value **diff,
                             coh_err *err);

/* On COH_OK *out is the caller's. Fails with COH_E_NOMEM. */
coh_status coh_graph_new(coh_dnn *dnn, int64_t batch, bool training,
                         uint64_t seed, coh_graph **out, coh_err *err);
void coh_graph_destroy(coh_graph **self);

/* --- building ----------------------------------------------------------- */

/* A value of the graph, in `slot` (COH_SLOT_OWN: a slot of its own). */
coh_status coh_graph_value(coh_graph *self, const coh_layout *layout, int slot,
                           coh_value **out, coh_err *err);

/* The same in that format. */
coh_status coh_graph_in(coh_graph *self, coh_dims dims, coh_format format,
                        int slot, coh_value **out, coh_err *err);

/* The same, row-major. `first` is for the two flat vectors, else 0. */
coh_status coh_graph_plain(coh_graph *self, coh_dims dims, int slot,
                           int64_t first, coh_value **out, coh_err *err);

/* The same for weights [O, I, KH, KW], or with the groups before, that are kept
 * as [I, O, KH, KW]. */
coh_status coh_graph_swapped(coh_graph *self, coh_dims dims, int slot,
                             int64_t first, coh_value **out, coh_err *err);

/* The same for `count` floats in a row: a part of a flat vector, or memory to
 * work in. *out stays as it is if count is 0. */
coh_status coh_graph_view(coh_graph *self, int slot, int64_t first,
                          int64_t count, const coh_tensor **out, coh_err *err);

/* The slot for what a layer makes of `from`: in training a forward value is
 * kept, everything else shares. */
int coh_graph_forward_slot(const coh_graph *self, const coh_value *from);
int coh_graph_other_slot(const coh_value *from);

/* All shared slots are free, but those that are held from now on. */
void coh_graph_release(coh_graph *self);
void coh_graph_hold(coh_graph *self, const coh_value *value);

/* An op of the graph, to be bound and appended. */
coh_status coh_graph_op(coh_graph *self, const coh_op_spec *spec, coh_op **out,
                        coh_err *err);

/* Free `thing` with the graph; freed at once if this fails. */
coh_status coh_graph_keep(coh_graph *self, void *thing, coh_err *err);

coh_status coh_graph_append(coh_tape *tape,
                            void (*run)(void *self, const coh_run *run),
                            void *thing, coh_err *err);
/* Say more of the action that was appended last. */
void coh_graph_describe(coh_tape *tape, const char *algorithm, double saving);
coh_status coh_graph_append_op(coh_graph *self, coh_tape *tape, coh_op *op,
                               coh_err *err);

/* Copy a value into another layout. */
coh_status coh_graph_copy(coh_graph *self, coh_tape *tape, const char *name,
                          const coh_value *from, const coh_value *to,
                          coh_err *err);

/* Give *value the wanted layout: nothing to do if it has it, else a copy in
 * `slot`, made at this point of the tape. */
coh_status coh_graph_convert(coh_graph *self, coh_tape *tape, const char *name,
                             const coh_layout *layout, int slot,
                             coh_value **value, coh_err *err);

/* The same for row-major order. */
coh_status coh_graph_unblock(coh_graph *self, coh_tape *tape, const char *name,
                             int slot, coh_value **value, coh_err *err);

/* The same for row-major order, with `dims` of as many values. */
coh_status coh_graph_flatten(coh_graph *self, coh_tape *tape, const char *name,
                             coh_dims dims, int slot, coh_value **value,
                             coh_err *err);

/* Flatten unless *value has these dims already, in whatever layout. */
coh_status coh_graph_reshape(coh_graph *self, coh_tape *tape, const char *name,
                             coh_dims dims, int slot, coh_value **value,
                             coh_err *err);

/* *sum += more, at this point of the tape; *sum keeps its layout. NULL as *sum
 * counts as 0: it becomes `more`. */
coh_status coh_graph_add_to(coh_graph *self, coh_tape *tape, const char *name,
                            coh_value *more, coh_value **sum, coh_err *err);

/* --- running ------------------------------------------------------------ */

/* Bytes of the arena; 64-byte aligned slots. */
size_t coh_graph_bytes(const coh_graph *self);

/* Use `arena`, zeroed, coh_graph_bytes() long, 64-byte aligned, borrowed. */
void coh_graph_place(coh_graph *self, void *arena);

/* Where the caller's vectors are in this step. gradient NULL in inference. */
void coh_graph_point(coh_graph *self, const float *images,
                     const float *parameters, float *gradient);

void coh_graph_run_forward(const coh_graph *self, const coh_run *run);
void coh_graph_run_backward(const coh_graph *self, const coh_run *run);

/* --- shapes ------------------------------------------------------------- */

static inline coh_dims coh_dims_of(int64_t batch, coh_shape shape)
{
    return (coh_dims){ 4, { batch, shape.c, shape.h, shape.w } };
}

static inline coh_operand coh_operand_of(const coh_value *value)
{
    return (coh_operand){ .dims = coh_tensor_dims(value->tensor),
                          .layout = coh_tensor_layout(value->tensor) };
}

static inline coh_operand coh_operand_any(coh_dims dims)
{
    return (coh_operand){ .dims = dims };
}

#endif
