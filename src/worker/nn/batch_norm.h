/* batch_norm.h - batch normalisation (Ioffe, Szegedy, arXiv 1502.03167), our own
 * code: a library averages over all rows of a batch, padding included.
 *
 *     new -> { measure | take -> forward -> weights -> data }* -> free()
 *
 * The values x of a channel, N = rows x positions of them, with factor g and
 * bias h:
 *     mean = sum x / N        variance = sum (x - mean)^2 / N
 *     u = (x - mean) / sqrt(variance + epsilon)        y = relu(g u + h)
 *     dh = sum dy        dg = sum dy u
 *     dx = g (dy - (dh + u dg) / N) / sqrt(variance + epsilon)
 * where dy is the gradient of g u + h, and relu has a slope for negative values,
 * 1 without relu. Or mean and variance are given, and constants.
 *
 * Rows behind `rows` are padding: they count nowhere, their y and dx are 0.
 * Letters  C channels, B rows there is room for.
 * Results  a pure function of the input: sums in double, in an order that the
 *          number of threads does not change.
 * Threads  one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_BATCH_NORM_H
#define COH_WORKER_NN_BATCH_NORM_H

#include "worker/nn/dnn.h"

typedef struct coh_batch_norm coh_batch_norm;

/* For values that lie so. NULL: no memory. */
coh_batch_norm *coh_batch_norm_new(const coh_channels *at, double epsilon,
                                   float slope);

/* Mean and variance of x, or mean[C] and variance[C]. 0 rows: mean 0, variance
 * 0. */
void coh_batch_norm_measure(coh_batch_norm *self, int64_t rows, const float *x);
void coh_batch_norm_take(coh_batch_norm *self, const float *mean,
                         const float *variance);

/* What was measured, times `weight`: mean[C] and variance[C], the latter
 * unbiased, times N / (N - 1). False if N < 2, and nothing is written. */
bool coh_batch_norm_tell(const coh_batch_norm *self, int64_t rows,
                         double weight, float *mean, float *variance);

void coh_batch_norm_forward(coh_batch_norm *self, int64_t rows, const float *x,
                            const float *g, const float *h, float *y);

/* dg[C] and dh[C]. */
void coh_batch_norm_weights(coh_batch_norm *self, int64_t rows, const float *x,
                            const float *dy, float *dg, float *dh);

/* After weights(): dy becomes dx. */
void coh_batch_norm_data(coh_batch_norm *self, int64_t rows, const float *x,
                         const float *g, float *dy);

#endif
