/* winograd.h - convolutions in fewer multiplications: our own code.
 *
 * The minimal filtering of Winograd (Arithmetic Complexity of Computations,
 * 1980; for networks: Lavin and Gray, arXiv 1509.09308), F(m x m, r x r) with
 * m + r = 9: eight points in each direction, 0, +-1, +-2, +-1/2 and infinity,
 * serve every r from 2 to 5. Tiles of 8 x 8 values are transformed, multiplied
 * channel by channel as 64 matrix products, and transformed back.
 *
 * A convolution with stride 2 is the sum of four with stride 1, one for each
 * parity of the row and the column of its input (a phase). In the transformed
 * values the sum is one over more channels: 7 x 7 with stride 2 takes 4.8 times
 * fewer multiplications, 3 x 3 with stride 1 takes 5.1.
 *
 * The two sides of a layer are named by their size: the fine one is the input
 * of a convolution and the output of a transposed one, the coarse one the
 * other. With stride 1 both are as fine.
 *
 *     forward of conv2d, gradient of deconv2d's input      to_coarse
 *     forward of deconv2d, gradient of conv2d's input      to_fine
 *     gradient of the weights of either                    to_weights
 *
 * Accuracy: relative differences from the direct sums of some 1e-5.
 * Needs AVX-512; elsewhere coh_winograd_can_run() says no.
 * Values: fine[B, I / 16, H, W, 16], coarse[B, O / 16, P, Q, 16], which is
 * nChw16c; weights[O, I, KH, KW]. Those written to are 64-byte aligned.
 * Results: a pure function of the arguments; a gradient of weights also of the
 * number of threads.
 * Threads: one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_WINOGRAD_H
#define COH_WORKER_NN_WINOGRAD_H

#include "common/model.h"
#include "worker/nn/pages.h"

typedef struct coh_winograd {
    int64_t batch, fine_channels, coarse_channels; /* B, I, O */
    int64_t fine[2], coarse[2];                    /* [H, W], [P, Q] */
    int64_t kernel[2], before[2], stride;
    int64_t first[2]; /* row, column in a phase where a coarse value's taps
                         begin, from its own */
    int taps;         /* r: the largest number of taps in a phase */
    int threads;      /* of OpenMP, when this was made: no more are used */
} coh_winograd;

typedef enum coh_winograd_pass {
    COH_WINOGRAD_COARSE,
    COH_WINOGRAD_FINE,
    COH_WINOGRAD_WEIGHTS
} coh_winograd_pass;

/* What is done to a sum before it is written. */
typedef struct coh_winograd_end {
    const float *bias; /* a channel each; NULL: none */
    float slope;       /* below 0; 1: no relu */
} coh_winograd_end;

/* Is it a convolution, transposed or not, that can be done so? */
bool coh_winograd_fits(const coh_layer *layer);

/* Of a layer that fits. */
coh_winograd coh_winograd_of(const coh_layer *layer, int64_t batch);

bool coh_winograd_can_run(void);

/* Floats that a pass works in; 64-byte aligned. */
int64_t coh_winograd_work_count(const coh_winograd *self,
                                coh_winograd_pass pass);

/* Products of the direct sum for each one that a pass makes. */
double coh_winograd_saving(const coh_winograd *self, coh_winograd_pass pass);

void coh_winograd_to_coarse(const coh_winograd *self, const float *fine,
                            const float *weights, coh_winograd_end end,
                            float *work, float *coarse);
void coh_winograd_to_fine(const coh_winograd *self, const float *coarse,
                          const float *weights, coh_winograd_end end,
                          float *work, float *fine);
void coh_winograd_to_weights(const coh_winograd *self, const float *fine,
                             const float *coarse, float *work,
                             float *diff_weights);

/* sums[channels] of values[B, channels / 16, plane, 16]: the gradient of a
 * bias, from that of its side. */
void coh_winograd_sum(const float *values, int64_t batch, int64_t channels,
                      int64_t plane, float *sums);

/* Seconds of one pass, on whatever `arena` holds; infinite if memory is short.
 */
double coh_winograd_time(const coh_winograd *self, coh_winograd_pass pass,
                         coh_arena *arena);

#endif
