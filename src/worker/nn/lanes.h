/* lanes.h - loops over the values of some channels that lie side by side: what
 * batch_norm.c is made of.
 *
 * Lane l at position p is x[p lanes + l], and so for dy and out; all else is a
 * number a lane. A single lane is a row of positions.
 * Results: sums in an order that is a function of n and lanes.
 * Threads: any, each its values.   MPI: none.
 */
#ifndef COH_WORKER_NN_LANES_H
#define COH_WORKER_NN_LANES_H

#include <stdint.h>

typedef struct coh_lanes {
    int64_t n, lanes; /* positions, lanes */
    const float *x, *dy;
    float *out; /* NULL if only sums are wanted */
    const float *center, *factor, *tilt, *shift;
    float slope;
    double *first, *second;
} coh_lanes;

typedef void coh_lanes_loop(const coh_lanes *it);

/* first += sum of dy, second += sum of dy (x - center). */
coh_lanes_loop coh_lanes_sum;

/* out = v, or slope v where v < 0, with v = factor (x - center) + shift. */
coh_lanes_loop coh_lanes_move;

/* out = factor out + tilt (x - center) + shift. */
coh_lanes_loop coh_lanes_turn;

#endif
