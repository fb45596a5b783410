/* graph.c - see graph.h. */
#include "worker/nn/graph.h"

#include <stdlib.h>

#include "common/simd.h"

enum { ALIGN_BYTES = 64 }; /* one cache line, one AVX-512 register */

struct coh_kept {
    coh_kept *next;
    void *thing;
    coh_op *op; /* if thing is NULL */
};

static coh_status no_memory(coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM, "no memory for the network's graph");
}

coh_status coh_graph_new(coh_dnn *dnn, int64_t batch, bool training,
                         uint64_t seed, coh_graph **out, coh_err *err)
{
    coh_graph *self = calloc(1, sizeof *self);
    if (self == NULL)
        return no_memory(err);

    *self = (coh_graph){ .dnn = dnn,
                         .batch = batch,
                         .training = training,
                         .seed = seed,
                         .nslots = COH_SLOT_SHARED + 1 };
    *out = self;
    return COH_OK;
}

void coh_graph_destroy(coh_graph **self)
{
    coh_graph *graph = *self;
    if (graph == NULL)
        return;

    for (coh_kept *kept = graph->kept, *next; kept != NULL; kept = next) {
        next = kept->next;
        coh_op_destroy(&kept->op);
        free(kept->thing);
        free(kept);
    }
    for (coh_value *value = graph->values, *next; value != NULL; value = next) {
        next = value->next;
        coh_tensor_destroy(&value->tensor);
        free(value);
    }
    free(graph->forward.actions);
    free(graph->backward.actions);
    free(graph->shares);
    free(graph);
    *self = NULL;
}

/* --- building ----------------------------------------------------------- */

/* A value without tensor, in the graph's list; NULL: no memory. */
static coh_value *add_value(coh_graph *self, int slot, int64_t first)
{
    coh_value *value = calloc(1, sizeof *value);
    if (value == NULL)
        return NULL;

    value->slot = slot == COH_SLOT_OWN ? self->nslots++ : slot;
    value->first = first;
    value->next = self->values;
    self->values = value;
    return value;
}

/* Of the free shared slots the one that wastes least: of those that are large
 * enough the smallest, else the largest. NULL: all are taken. */
static coh_share *find_free(const coh_graph *self, size_t bytes)
{
    coh_share *best = NULL;

    for (int i = 0; i < self->nshares; i++) {
        coh_share *share = &self->shares[i];
        if (share->is_taken)
            continue;
        const bool fits = share->bytes >= bytes;
        if (best == NULL ||
            (best->bytes >= bytes ? fits && share->bytes < best->bytes
                                  : share->bytes > best->bytes))
            best = share;
    }
    return best;
}

static coh_share *new_share(coh_graph *self)
{
    coh_share *shares = realloc(self->shares, (size_t)(self->nshares + 1) *
                                                  sizeof *self->shares);
    if (shares == NULL)
        return NULL;
    self->shares = shares;
    shares[self->nshares] = (coh_share){ .slot = self->nslots++ };
    return &shares[self->nshares++];
}

/* Give a value of COH_SLOT_SHARED its slot. */
static coh_status settle(coh_graph *self, coh_value *value, coh_err *err)
{
    if (value->slot != COH_SLOT_SHARED)
        return COH_OK;
    const size_t bytes = coh_layout_bytes(coh_tensor_layout(value->tensor));
    coh_share *share = find_free(self, bytes);
    if (share == NULL)
        share = new_share(self);
    if (share == NULL)
        return no_memory(err);
    share->is_taken = true;
    share->bytes = bytes > share->bytes ? bytes : share->bytes;
    value->slot = share->slot;
    return COH_OK;
}

coh_status coh_graph_value(coh_graph *self, const coh_layout *layout, int slot,
                           coh_value **out, coh_err *err)
{
    coh_value *value = add_value(self, slot, 0);
    if (value == NULL)
        return no_memory(err);

    *out = value;
    COH_TRY(coh_tensor_new(self->dnn, layout, &value->tensor, err));
    return settle(self, value, err);
}

coh_status coh_graph_in(coh_graph *self, coh_dims dims, coh_format format,
                        int slot, coh_value **out, coh_err *err)
{
    coh_value *value = add_value(self, slot, 0);
    if (value == NULL)
        return no_memory(err);

    *out = value;
    COH_TRY(coh_tensor_new_in(self->dnn, dims, format, &value->tensor, err));
    return settle(self, value, err);
}

coh_status coh_graph_plain(coh_graph *self, coh_dims dims, int slot,
                           int64_t first, coh_value **out, coh_err *err)
{
    coh_value *value = add_value(self, slot, first);
    if (value == NULL)
        return no_memory(err);

    *out = value;
    COH_TRY(coh_tensor_new_plain(self->dnn, dims, &value->tensor, err));
    return settle(self, value, err);
}

coh_status coh_graph_view(coh_graph *self, int slot, int64_t first,
                          int64_t count, const coh_tensor **out, coh_err *err)
{
    coh_value *value = NULL;

    if (count == 0)
        return COH_OK;
    COH_TRY(coh_graph_plain(self, (coh_dims){ 1, { count } }, slot, first,
                            &value, err));
    *out = value->tensor;
    return COH_OK;
}

coh_status coh_graph_swapped(coh_graph *self, coh_dims dims, int slot,
                             int64_t first, coh_value **out, coh_err *err)
{
    coh_value *value = add_value(self, slot, first);
    if (value == NULL)
        return no_memory(err);

    *out = value;
    COH_TRY(coh_tensor_new_swapped(self->dnn, dims, &value->tensor, err));
    return settle(self, value, err);
}

int coh_graph_other_slot(const coh_value *from)
{
    (void)from;
    return COH_SLOT_SHARED;
}

int coh_graph_forward_slot(const coh_graph *self, const coh_value *from)
{
    return self->training ? COH_SLOT_OWN : coh_graph_other_slot(from);
}

void coh_graph_release(coh_graph *self)
{
    for (int i = 0; i < self->nshares; i++)
        self->shares[i].is_taken = false;
}

void coh_graph_hold(coh_graph *self, const coh_value *value)
{
    for (int i = 0; i < self->nshares; i++)
        if (self->shares[i].slot == value->slot)
            self->shares[i].is_taken = true;
}

static coh_status keep(coh_graph *self, void *thing, coh_op *op, coh_err *err)
{
    coh_kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL) {
        coh_op_destroy(&op);
        free(thing);
        return no_memory(err);
    }
    *kept = (coh_kept){ self->kept, thing, op };
    self->kept = kept;
    return COH_OK;
}

coh_status coh_graph_keep(coh_graph *self, void *thing, coh_err *err)
{
    return keep(self, thing, NULL, err);
}

coh_status coh_graph_op(coh_graph *self, const coh_op_spec *spec, coh_op **out,
                        coh_err *err)
{
    COH_TRY(coh_op_new(self->dnn, spec, out, err));
    return keep(self, NULL, *out, err);
}

coh_status coh_graph_append(coh_tape *tape,
                            void (*run)(void *self, const coh_run *run),
                            void *thing, coh_err *err)
{
    if (tape->count == tape->room) {
        const int room = 2 * tape->room + 16;
        coh_action *actions =
            realloc(tape->actions, (size_t)room * sizeof *actions);
        if (actions == NULL)
            return no_memory(err);
        tape->actions = actions;
        tape->room = room;
    }
    tape->actions[tape->count++] = (coh_action){
        .run = run,
        .self = thing,
        .layer = tape->layer,
        .pass = tape->pass,
        .algorithm = "cohort",
        .saving = 1,
    };
    return COH_OK;
}

void coh_graph_describe(coh_tape *tape, const char *algorithm, double saving)
{
    coh_action *last = &tape->actions[tape->count - 1];

    last->algorithm = algorithm;
    last->saving = saving;
}

static void run_op(void *self, const coh_run *run)
{
    (void)run;
    coh_op_run(self);
}

coh_status coh_graph_append_op(coh_graph *self, coh_tape *tape, coh_op *op,
                               coh_err *err)
{
    const coh_layout *layout = coh_op_layout(op, COH_ARG_SCRATCHPAD);
    coh_value *scratchpad = NULL;

    if (layout != NULL) {
        COH_TRY(coh_graph_value(self, layout, COH_SLOT_SCRATCHPAD, &scratchpad,
                                err));
        coh_op_bind(op, COH_ARG_SCRATCHPAD, scratchpad->tensor);
    }
    COH_TRY(coh_graph_append(tape, run_op, op, err));
    tape->actions[tape->count - 1].op = op;
    return COH_OK;
}

coh_status coh_graph_copy(coh_graph *self, coh_tape *tape, const char *name,
                          const coh_value *from, const coh_value *to,
                          coh_err *err)
{
    coh_op *op = NULL;

    COH_TRY(coh_op_new_reorder(self->dnn, name, from->tensor, to->tensor, &op,
                               err));
    COH_TRY(keep(self, NULL, op, err));
    COH_TRY(coh_graph_append_op(self, tape, op, err));
    tape->actions[tape->count - 1].is_copy = true;
    return COH_OK;
}

coh_status coh_graph_convert(coh_graph *self, coh_tape *tape, const char *name,
                             const coh_layout *layout, int slot,
                             coh_value **value, coh_err *err)
{
    coh_value *from = *value;

    if (coh_layout_equal(coh_tensor_layout(from->tensor), layout))
        return COH_OK;
    COH_ASSERT(slot != from->slot);
    COH_TRY(coh_graph_value(self, layout, slot, value, err));
    return coh_graph_copy(self, tape, name, from, *value, err);
}

coh_status coh_graph_unblock(coh_graph *self, coh_tape *tape, const char *name,
                             int slot, coh_value **value, coh_err *err)
{
    coh_value *from = *value, *plain = NULL;

    /* in place, if it is row-major */
    COH_TRY(coh_graph_plain(self, coh_tensor_dims(from->tensor), from->slot, 0,
                            &plain, err));
    return coh_graph_convert(self, tape, name, coh_tensor_layout(plain->tensor),
                             slot, value, err);
}

coh_status coh_graph_flatten(coh_graph *self, coh_tape *tape, const char *name,
                             coh_dims dims, int slot, coh_value **value,
                             coh_err *err)
{
    COH_TRY(coh_graph_unblock(self, tape, name, slot, value, err));
    return coh_graph_plain(self, dims, (*value)->slot, 0, value, err);
}

coh_status coh_graph_reshape(coh_graph *self, coh_tape *tape, const char *name,
                             coh_dims dims, int slot, coh_value **value,
                             coh_err *err)
{
    if (coh_dims_equal(coh_tensor_dims((*value)->tensor), dims))
        return COH_OK;
    return coh_graph_flatten(self, tape, name, dims, slot, value, err);
}

/* sum[count] += more[count], of one layout: the zeros that fill it up too. */
typedef struct addition {
    const coh_tensor *sum, *more;
    int64_t count;
} addition;

COH_SIMD
static void add_up(float *sum, const float *more, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        sum[i] += more[i];
}

static void run_addition(void *thing, const coh_run *run)
{
    enum { PIECE = 16384 };
    const addition *self = thing;
    float *sum = coh_tensor_data(self->sum);
    const float *more = coh_tensor_data(self->more);

    (void)run;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->count; i += PIECE) {
        const int64_t left = self->count - i;
        add_up(sum + i, more + i, left < PIECE ? left : PIECE);
    }
}

coh_status coh_graph_add_to(coh_graph *self, coh_tape *tape, const char *name,
                            coh_value *more, coh_value **sum, coh_err *err)
{
    if (*sum == NULL) {
        *sum = more;
        return COH_OK;
    }
    const coh_layout *layout = coh_tensor_layout((*sum)->tensor);
    COH_TRY(coh_graph_reshape(self, tape, name, coh_tensor_dims((*sum)->tensor),
                              COH_SLOT_SHARED, &more, err));
    COH_TRY(coh_graph_convert(self, tape, name, layout, COH_SLOT_SHARED, &more,
                              err));
    addition *thing = calloc(1, sizeof *thing);
    if (thing == NULL)
        return no_memory(err);
    *thing = (addition){ (*sum)->tensor, more->tensor,
                         (int64_t)(coh_layout_bytes(layout) / sizeof(float)) };
    COH_TRY(coh_graph_keep(self, thing, err));
    return coh_graph_append(tape, run_addition, thing, err);
}

/* --- running ------------------------------------------------------------ */

/* Bytes of `slot`: its largest value, rounded up to whole lines. */
static size_t slot_bytes(const coh_graph *self, int slot)
{
    size_t most = 0;

    for (const coh_value *value = self->values; value; value = value->next) {
        const size_t bytes = coh_layout_bytes(coh_tensor_layout(value->tensor));
        if (value->slot == slot && bytes > most)
            most = bytes;
    }
    return (most + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t coh_graph_bytes(const coh_graph *self)
{
    size_t bytes = 0;

    for (int slot = COH_SLOT_WEIGHTS; slot < self->nslots; slot++)
        bytes += slot_bytes(self, slot);
    return bytes;
}

static void point_slot(coh_graph *self, int slot, char *data)
{
    for (coh_value *value = self->values; value; value = value->next) {
        if (value->slot == slot)
            coh_tensor_point(value->tensor,
                             data + (size_t)value->first * sizeof(float));
    }
}

void coh_graph_place(coh_graph *self, void *arena)
{
    char *data = arena;

    for (int slot = COH_SLOT_WEIGHTS; slot < self->nslots; slot++) {
        point_slot(self, slot, data);
        data += slot_bytes(self, slot);
    }
}

/* Images and parameters are only read: oneDNN has no const. */
void coh_graph_point(coh_graph *self, const float *images,
                     const float *parameters, float *gradient)
{
    point_slot(self, COH_SLOT_IMAGES, (char *)images);
    point_slot(self, COH_SLOT_PARAMETERS, (char *)parameters);
    if (gradient != NULL)
        point_slot(self, COH_SLOT_GRADIENT, (char *)gradient);
}

void coh_graph_run_forward(const coh_graph *self, const coh_run *run)
{
    const coh_watch *watch = run->watch;

    for (int i = 0; i < self->forward.count; i++) {
        const coh_action *it = &self->forward.actions[i];
        if (watch != NULL)
            watch->need(watch->user, it->needs);
        it->run(it->self, run);
    }
}

void coh_graph_run_backward(const coh_graph *self, const coh_run *run)
{
    const coh_watch *watch = run->watch;

    for (int i = 0; i < self->backward.count; i++) {
        const coh_action *it = &self->backward.actions[i];
        it->run(it->self, run);
        if (watch != NULL)
            watch->have(watch->user, it->has);
    }
}
