/* loss.h - the mathematics of a loss, for nn_loss*.c: a piece of one row.
 *
 * The losses are those of model.h. A piece is a run of positions (labels) or
 * of values; what it adds up does not depend on the number of threads.
 */
#ifndef COH_WORKER_NN_LOSS_H
#define COH_WORKER_NN_LOSS_H

#include "common/model.h"

/* One row, C channels of P positions. */
typedef struct coh_loss_row {
    coh_layer_kind kind;
    int64_t channels, positions;
    int64_t ignore;
    const float *x;      /* [C, P] */
    const float *target; /* numbers [C, P], or labels [P] */
    int32_t label;       /* if target is NULL: of the only position */
    const float *mask;   /* [mask_channels, P], or NULL */
    int64_t mask_channels;
    double scale; /* of the sum: loss weight, factor, 1 / what counts */
    float *diff;  /* [C, P] or NULL */
} coh_loss_row;

/* How much the piece [first, end) counts: the sum of its mask. */
double coh_loss_count(const coh_loss_row *row, int64_t first, int64_t end);

/* scale x the loss of the piece [first, end); its gradient in diff. */
double coh_loss_piece(const coh_loss_row *row, int64_t first, int64_t end);

/* log sum exp of x[count], `stride` apart. Not finite if an x is not. */
double coh_log_sum_exp(const float *x, int64_t count, int64_t stride);

#endif
