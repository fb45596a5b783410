/* exchange.h - from the members' gradients to the next weights.
 *
 * Without servers: every block's gradient is summed over the group, and each
 * member applies the same update to its own copy of all weights.
 * With servers: every block's gradient is summed at the root, pushed to the
 * server that owns it, answered with new weights, and spread to the group.
 *
 *     new -> pull -> { step | pull }* -> destroy
 *
 * Letters: P = model parameters. All calls are collective over the group.
 */
#ifndef COH_WORKER_EXCHANGE_H
#define COH_WORKER_EXCHANGE_H

#include "common/optim/shard.h"
#include "common/roles.h"
#include "common/wire.h"
#include "worker/compute.h"

typedef struct coh_exchange coh_exchange;

/* Blocks that a group adds up at a time: MPI holds a copy or two of each
 * (without this limit, measured with MPICH 4.0: twice the parameters). */
enum { COH_SUMS_AT_ONCE = 16 };

/* statistics of the model, weights[P], gradient[P] and shard (NULL with
 * servers; without, weights are the shard's values) are borrowed. Fails with
 * COH_E_NOMEM. */
coh_status coh_exchange_new(const coh_config *config, const coh_plan *plan,
                            const coh_roles *roles,
                            const coh_schedule *schedule,
                            const coh_statistics *statistics, coh_shard *shard,
                            float *weights, float *gradient, coh_exchange **out,
                            coh_err *err);
void coh_exchange_destroy(coh_exchange **self);

/* Add the members' sums up; afterwards all hold the group's. `stop` and
 * `failed` become true if they are on any member. Fails with COH_E_PEER. */
typedef struct coh_exchange_sums {
    coh_step_sums step;
    bool stop, failed;
} coh_exchange_sums;
coh_status coh_exchange_add_up(coh_exchange *self, coh_exchange_sums *sums,
                               coh_err *err);

/* Turn gradient[P], a sum over `weight` samples of the whole group, into new
 * weights[P]. weight 0 is allowed where other groups take the step, too
 * (grant->groups > 1): they wait for the push. *norm: L2 norm of the mean gradient, without running statistics.
 * Fails with COH_E_PEER, and
 * on all members with COH_E_DIVERGED if the gradient is not finite: such
 * blocks are not applied. */
coh_status coh_exchange_step(coh_exchange *self, const coh_grant *grant,
                             double weight, double *norm, coh_err *err);

/* With servers: fresh weights[P]. Without: nothing to do. */
coh_status coh_exchange_pull(coh_exchange *self, coh_err *err);

/* The root's weights[P] to all members. Fails with COH_E_PEER. */
coh_status coh_exchange_spread(coh_exchange *self, coh_err *err);

#endif
