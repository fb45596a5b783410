/* batch.h - some samples in memory, as a step takes them.
 *
 * Letters: B = capacity, the rows there is room for, the same in every step;
 * C, H, W = the model's input; T = the numbers of a sample's targets. Rows
 * [count, B) are padding: zero images and targets, label 0, weight 0, not
 * labelled, so that a batch of any count costs and changes nothing more.
 */
#ifndef COH_WORKER_BATCH_H
#define COH_WORKER_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model.h"
#include "common/status.h"

typedef struct coh_batch {
    int64_t capacity;      /* B */
    int64_t count;         /* rows with a sample, 0 <= count <= B */
    uint32_t epoch;        /* the pass over the data set, from 0 */
    int64_t *samples;      /* [B] index in the data set, -1: padding, owned */
    float *images;         /* [B, C, H, W], owned, 64-byte aligned */
    int32_t *labels;       /* [B] in [0, classes), owned */
    float *loss_weights;   /* [B] factor in loss and gradient, owned */
    int64_t target_count;  /* T */
    float *targets;        /* [B, T] by the model's targets, owned */
    bool *is_labelled;     /* [B] has label and targets, owned */
    float *metric_weights; /* [B] factor in accuracy and AUC, owned */
} coh_batch;

/* An empty batch of `capacity` padding rows with T `targets`. On COH_OK *out is
 * the caller's.
 * Fails with COH_E_NOMEM. */
coh_status coh_batch_new(coh_shape input, int64_t targets, int64_t capacity,
                         coh_batch **out, coh_err *err);
void coh_batch_destroy(coh_batch **self);

/* The sum of loss_weights: what a step on this batch weighs. */
double coh_batch_weight(const coh_batch *self);

#endif
