/* dataset_normal.h - applying a normalisation, and what measuring one must know
 * of a set. Internal to dataset*.c.
 */
#ifndef COH_WORKER_DATASET_NORMAL_H
#define COH_WORKER_DATASET_NORMAL_H

#include "worker/dataset.h"

/* Normalise one image[C, H, W] in place. */
void coh_normal_apply(const coh_normal *self, coh_shape shape, float *image);

coh_shape coh_dataset_input(const coh_dataset *self);
const coh_normal *coh_dataset_normal(const coh_dataset *self); /* borrowed */

#endif
