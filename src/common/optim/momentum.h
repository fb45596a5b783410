/* momentum.h - momentum, where groups do not wait for each other.
 *
 * G asynchronous groups act, in the mean, like one with a momentum of 1 - 1/G
 * (Mitliagkas et al., arXiv 1605.09774: where the length of a step is random and
 * without memory), besides the momentum of the rule. optimizer.momentum_auto
 * takes it off the configured momentum mu0, and keeps what a gradient moves the
 * weights by in the end, rate / (1 - momentum), by a higher rate:
 *     mu = max(0, mu0 - (1 - 1/G))       rate x min((1 - mu) / (1 - mu0), most)
 * with most = optimizer.momentum_auto_factor. One group: nothing changes.
 *
 * Pure: no MPI.   Threads: any.
 */
#ifndef COH_COMMON_OPTIM_MOMENTUM_H
#define COH_COMMON_OPTIM_MOMENTUM_H

#include <stdbool.h>

#include "common/config.h"

typedef struct coh_momentum {
    double implied;     /* by asynchrony; 0 for one group */
    double value;       /* the rule's */
    double rate_factor; /* of every rate of the schedule */
} coh_momentum;

coh_momentum coh_momentum_of(const coh_config *config);

/* Does the rule have a momentum? */
bool coh_momentum_counts(const coh_config *config);

enum { COH_MOMENTUM_TEXT = 256 };

/* What momentum_auto made of the momentum and the rate, for people. False if
 * it is off or changes nothing. */
bool coh_momentum_describe(const coh_config *config,
                           char out[COH_MOMENTUM_TEXT]);

/* A warning: so many groups, and a momentum of 0.5 or more that is left as it
 * is. False if there is none. */
bool coh_momentum_warn(const coh_config *config, char out[COH_MOMENTUM_TEXT]);

#endif
