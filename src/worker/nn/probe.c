/* probe.c - see probe.h. */
#include "worker/nn/probe.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "worker/nn/pages.h"

enum { ALIGN_BYTES = 64 };

struct coh_probe {
    coh_op *op;
    coh_tensor *tensors[COH_ARG_COUNT];
    coh_arena *arena; /* borrowed */
};

static coh_status no_memory(size_t bytes, coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM,
                    "no memory to time a pass of it: %.3f GiB; use a smaller "
                    "train.batch, or compute.algorithm: direct",
                    (double)bytes / (1 << 30));
}

/* What an operand takes of the arena. */
static size_t bytes_of(const coh_tensor *tensor)
{
    const size_t bytes = coh_layout_bytes(coh_tensor_layout(tensor));
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

static coh_status reserve(coh_probe *self, coh_err *err)
{
    size_t bytes = ALIGN_BYTES;

    for (int arg = 0; arg < COH_ARG_COUNT; arg++)
        bytes += self->tensors[arg] != NULL ? bytes_of(self->tensors[arg]) : 0;
    return coh_arena_reserve(self->arena, bytes) ? COH_OK
                                                 : no_memory(bytes, err);
}

/* Bind what the op has besides what is bound already. */
static coh_status bind_rest(coh_probe *self, coh_dnn *dnn, coh_err *err)
{
    for (int arg = 0; arg < COH_ARG_COUNT; arg++) {
        const coh_layout *layout = coh_op_layout(self->op, (coh_arg)arg);
        if (layout == NULL || self->tensors[arg] != NULL)
            continue;
        const coh_status status =
            coh_tensor_new(dnn, layout, &self->tensors[arg], err);
        if (status != COH_OK)
            return status;
        coh_op_bind(self->op, (coh_arg)arg, self->tensors[arg]);
    }
    return reserve(self, err);
}

/* Hand the probe out, or end it. */
static coh_status finish(coh_probe *self, coh_status status, coh_probe **out)
{
    if (status == COH_OK)
        *out = self;
    else
        coh_probe_destroy(&self);
    return status;
}

coh_status coh_probe_new(coh_dnn *dnn, const coh_op_spec *spec,
                         coh_arena *arena, coh_probe **out, coh_err *err)
{
    coh_probe *self = calloc(1, sizeof *self);
    if (self == NULL)
        return no_memory(sizeof *self, err);

    self->arena = arena;
    coh_status status = coh_op_new(dnn, spec, &self->op, err);
    if (status == COH_OK) {
        status = bind_rest(self, dnn, err);
        if (status != COH_OK)
            coh_err_context(err, "layer %s", spec->name);
    }
    return finish(self, status, out);
}

coh_status coh_probe_new_reorder(coh_dnn *dnn, const coh_layout *from,
                                 const coh_layout *to, coh_arena *arena,
                                 coh_probe **out, coh_err *err)
{
    coh_probe *self = calloc(1, sizeof *self);
    if (self == NULL)
        return no_memory(sizeof *self, err);

    self->arena = arena;
    coh_status status =
        coh_tensor_new(dnn, from, &self->tensors[COH_ARG_SRC], err);
    if (status == COH_OK)
        status = coh_tensor_new(dnn, to, &self->tensors[COH_ARG_DST], err);
    if (status == COH_OK)
        status = coh_op_new_reorder(dnn, "reorder", self->tensors[COH_ARG_SRC],
                                    self->tensors[COH_ARG_DST], &self->op, err);
    if (status == COH_OK)
        status = bind_rest(self, dnn, err);
    return finish(self, status, out);
}

void coh_probe_destroy(coh_probe **self)
{
    coh_probe *probe = *self;
    if (probe == NULL)
        return;

    coh_op_destroy(&probe->op);
    for (int arg = 0; arg < COH_ARG_COUNT; arg++)
        coh_tensor_destroy(&probe->tensors[arg]);
    free(probe);
    *self = NULL;
}

/* The arena may have moved since the last time. */
double coh_probe_time(coh_probe *self)
{
    char *at = self->arena->memory;

    for (int arg = 0; arg < COH_ARG_COUNT; arg++) {
        if (self->tensors[arg] == NULL)
            continue;
        coh_tensor_point(self->tensors[arg], at);
        at += bytes_of(self->tensors[arg]);
    }
    const double start = coh_clock_now_s();
    coh_op_run(self->op);
    return coh_clock_now_s() - start;
}

const coh_op *coh_probe_op(const coh_probe *self)
{
    return self->op;
}
