/* schedule.h - the learning rate as a function of the samples seen.
 *
 * Samples, not updates: the number of groups does not change the schedule.
 *
 *     constant   rate
 *     step       rate x step_factor ^ floor(samples / step_every)
 *     cosine     final + (rate - final) (1 + cos(pi progress)) / 2, progress
 *                from the end of the warm-up to the end of the run
 *                (Loshchilov and Hutter, arXiv 1608.03983, eq. 5, no restart)
 * During the warm-up this is multiplied by (samples + batch) / warmup, where
 * batch is what a step takes, so that the first step is not lost (Goyal et
 * al., arXiv 1706.02677, section 2.2, from 0 instead of a base rate).
 * rate and final_rate are those of the config times what momentum.h asks for.
 */
#ifndef COH_COMMON_OPTIM_SCHEDULE_H
#define COH_COMMON_OPTIM_SCHEDULE_H

#include <stdint.h>

#include "common/config.h"

typedef struct coh_schedule {
    coh_schedule_kind kind;
    coh_staleness_kind staleness;
    double rate, step_factor, final_rate;
    double warmup, step_every; /* samples */
    double total;              /* samples of the run */
    double step_samples;       /* samples of one group's step */
} coh_schedule;

/* epoch_samples: size of the training set; step_samples: of a group's step. */
coh_schedule coh_schedule_of(const coh_config *config, int64_t epoch_samples,
                             int64_t step_samples);

/* How many samples the run trains on, by train.epochs and train.steps. */
int64_t coh_schedule_total(const coh_config *config, int64_t epoch_samples,
                           int64_t step_samples);

/* The rate of a step that begins when `samples` have been seen. */
float coh_schedule_rate(const coh_schedule *self, int64_t samples);

/* The same for a gradient that comes `staleness` updates late: divided by it,
 * but for 0, if optimizer.staleness says inverse (Zhang et al., arXiv
 * 1511.05950). */
float coh_schedule_late_rate(const coh_schedule *self, int64_t samples,
                             int64_t staleness);

#endif
