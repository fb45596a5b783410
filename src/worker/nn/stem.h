/* stem.h - a first convolution with its relu and pool, in one go: our own code,
 * where the library's passes over a large output cost more than the sums.
 *
 * Convolution 3x3, stride 1, of 1 to 3 channels to a multiple of 32; relu, or
 * leaky, or none; maxpool 2x2. What the convolution makes is never written: the
 * pooled values are, and where each came from. Its weights' gradient is taken
 * from the pooled gradient: a lane of the vector is a filter, and its input
 * values lie in the 4x4 patch that the pool's window sees, one register.
 *
 * Needs AVX-512; elsewhere coh_stem_can_run() says no.
 * Letters: B rows, C channels, H, W padded input, O filters, P, Q pooled size.
 * Results: a pure function of the input and, in backward, of `threads`.
 * Threads: one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_STEM_H
#define COH_WORKER_NN_STEM_H

#include "common/model.h"

typedef struct coh_stem {
    int64_t batch, channels, height, width; /* B, C, H, W */
    int64_t filters, rows, columns;         /* O, P, Q */
    coh_shape image;                        /* without padding */
    int64_t top, left;                      /* padding before it */
    float slope;                            /* of relu below 0; 1: no relu */
    int threads; /* of OpenMP, when this was made: no more are used */
} coh_stem;

/* Do `layer` and those behind it, up to the pool, make a stem? The last layer
 * of the model must be behind them. *pool: how many layers behind it stands. */
bool coh_stem_fits(const coh_layer *layer, int *pool);

/* Of layers that fit. */
coh_stem coh_stem_of(const coh_layer *layer, int64_t batch);

bool coh_stem_can_run(void);

/* Floats of the padded images [B, C, H, W], and of what a pass works in. */
int64_t coh_stem_padded_count(const coh_stem *self);
int64_t coh_stem_work_count(const coh_stem *self);

/* images[B, C, image.h, image.w] -> padded; pooled[B, O / 16, P, Q, 16], which
 * is nChw16c; places[B, O / 16, P, Q, 16]. bias may be NULL. */
void coh_stem_forward(const coh_stem *self, const float *images,
                      const float *weights, const float *bias, float *padded,
                      float *work, float *pooled, uint8_t *places);

/* From the gradient of pooled, in its layout. diff_bias may be NULL. */
void coh_stem_backward(const coh_stem *self, const float *padded,
                       const uint8_t *places, const float *gradient,
                       float *work, float *diff_weights, float *diff_bias);

/* Seconds of one forward and one backward, the least of some; infinite if
 * memory is short. */
double coh_stem_time(const coh_stem *self);

#endif
