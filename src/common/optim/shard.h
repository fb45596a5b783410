/* shard.h - parameters with their optimizer state and versions: what a server
 * owns of the model, or all of it where a worker updates its own weights.
 *
 *     new -> load -> { apply | read values }* -> destroy
 *
 * Shapes   the owned blocks (plan.h), one behind the other: values [count] and
 *          each slot [count], float32. A block's version counts the updates
 *          applied to it since the start of training.
 * Memory   the shard owns its vectors; what accessors return is borrowed.
 * Threads  one caller at a time, or several that apply() to different blocks.
 * MPI      none.
 */
#ifndef COH_COMMON_OPTIM_SHARD_H
#define COH_COMMON_OPTIM_SHARD_H

#include "common/optim/rule.h"
#include "common/optim/schedule.h"
#include "common/plan.h"
#include "common/statistics.h"

typedef struct coh_shard coh_shard;

/* The blocks of `server` (-1: all) as zeros at version 0. plan and rule are
 * copied; what plan points to, and statistics, of the model, are borrowed while
 * it lives. On COH_OK *out is the caller's. Fails with COH_E_NOMEM. */
coh_status coh_shard_new(const coh_plan *plan, int server, const coh_rule *rule,
                         const coh_statistics *statistics, coh_shard **out,
                         coh_err *err);
void coh_shard_destroy(coh_shard **self);

/* Take the owned blocks out of the whole vector values[plan.parameters];
 * slots become zero and versions 0. */
void coh_shard_load(coh_shard *self, const float *values);

/* Apply the gradient of block `block` (a global number that it owns), given as
 * a sum over `weight` samples; its version goes up by 1. weight > 0. Running
 * statistics have an update of their own (rule.h); their slots stay zero. A rule
 * that takes weights is given those, or their change, as if it were a gradient;
 * of statistics always their values. */
void coh_shard_apply(coh_shard *self, int64_t block, const float *gradient,
                     double weight, float rate);

/* The same, if the gradient was computed from the weights seen[block]: a rule
 * that compensates corrects it for what has changed since. NULL: nothing has. */
void coh_shard_apply_late(coh_shard *self, int64_t block, const float *gradient,
                          const float *seen, double weight, float rate);

int64_t coh_shard_count(const coh_shard *self);   /* parameters */
int64_t coh_shard_nblocks(const coh_shard *self); /* owned */
int coh_shard_nslots(const coh_shard *self);

/* The whole vectors, and versions[nblocks] in the order of the blocks. */
float *coh_shard_values(coh_shard *self);
float *coh_shard_slot(coh_shard *self, int slot);
int64_t *coh_shard_versions(coh_shard *self);

/* One block: its values, where they start in the vectors, and its version. */
float *coh_shard_block(coh_shard *self, int64_t block);
int64_t coh_shard_version(const coh_shard *self, int64_t block);

#endif
