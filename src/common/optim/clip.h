/* clip.h - a gradient that is no longer than allowed: clipping by its norm
 * (Pascanu et al., arXiv 1211.5063, Algorithm 1).
 *
 *     g <- g min(1, most / |g|)
 *
 * where |g| is the L2 norm over all parameters: so its direction is kept, and
 * all blocks must be known before the first is scaled. Running statistics
 * (statistics.h) are no gradient: they count in neither.
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_OPTIM_CLIP_H
#define COH_COMMON_OPTIM_CLIP_H

#include "common/plan.h"
#include "common/statistics.h"

/* The factor for a gradient of this norm, which is finite. most > 0. */
double coh_clip_factor(double most, double norm);

/* Scale gradient[range.count], of these parameters. With factor 1 it keeps its
 * bits. */
void coh_clip(const coh_statistics *statistics, coh_range range, double factor,
              float *gradient);

#endif
