/* batch.c - see batch.h. */
#include "worker/batch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/memory.h"

coh_status coh_batch_new(coh_shape input, int64_t targets, int64_t capacity,
                         coh_batch **out, coh_err *err)
{
    COH_ASSERT(capacity >= 0 && coh_shape_count(input) > 0);
    const size_t rows = (size_t)capacity + 1; /* never nothing */
    int64_t floats, numbers;
    coh_batch *self = calloc(1, sizeof *self);
    if (self == NULL ||
        __builtin_mul_overflow(capacity, coh_shape_count(input), &floats) ||
        __builtin_mul_overflow(capacity, targets, &numbers))
        goto no_memory;

    self->capacity = capacity;
    self->samples = malloc(rows * sizeof *self->samples);
    self->labels = calloc(rows, sizeof *self->labels);
    self->loss_weights = calloc(rows, sizeof *self->loss_weights);
    self->metric_weights = calloc(rows, sizeof *self->metric_weights);
    self->is_labelled = calloc(rows, sizeof *self->is_labelled);
    self->images = coh_floats(floats);
    self->targets = coh_floats(numbers);
    self->target_count = targets;
    if (self->samples == NULL || self->labels == NULL ||
        self->loss_weights == NULL || self->metric_weights == NULL ||
        self->is_labelled == NULL || self->images == NULL ||
        self->targets == NULL)
        goto no_memory;

    for (int64_t i = 0; i < capacity; i++)
        self->samples[i] = -1;
    *out = self;
    return COH_OK;

no_memory:
    coh_batch_destroy(&self);
    return coh_fail(err, COH_E_NOMEM,
                    "no memory for a batch of %" PRId64 " samples of %" PRId64
                    "x%" PRId64 "x%" PRId64 ": lower train.batch, eval.batch "
                    "or data.prefetch",
                    capacity, input.c, input.h, input.w);
}

void coh_batch_destroy(coh_batch **self)
{
    coh_batch *batch = *self;
    if (batch == NULL)
        return;

    free(batch->samples);
    free(batch->images);
    free(batch->targets);
    free(batch->is_labelled);
    free(batch->labels);
    free(batch->loss_weights);
    free(batch->metric_weights);
    free(batch);
    *self = NULL;
}

double coh_batch_weight(const coh_batch *self)
{
    double sum = 0;

    for (int64_t b = 0; b < self->capacity; b++)
        sum += (double)self->loss_weights[b];
    return sum;
}
