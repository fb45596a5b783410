/* local.h - steps that a group makes on weights of its own, and what it sends of
 * them: exchange.every, exchange.elastic.
 *
 * Every member updates its copy of all weights by the sum of the group's
 * gradients, as without servers. In a step that exchanges, once a block is
 * updated, what is to be sent takes the place of its gradient. Letters: x the
 * group's weights, c the servers'.
 *
 * every k    What is sent is how x changed since c came: the servers add it,
 *            and x becomes the new c. Of running statistics (statistics.h) x
 *            itself is sent, and becomes c: changes of several groups, added
 *            up, would make variances negative. With policy sync, which is then the
 *            averaging of models (McMahan et al., arXiv 1602.05629), groups
 *            count by the samples of these steps. Without it, this is Downpour
 *            SGD's n_push = n_fetch = k (Dean et al. 2012), with the group's
 *            rule.
 * elastic a  EASGD (Zhang, Choromanska and LeCun, arXiv 1412.6651, Algorithm 1;
 *            with optimizer.momentum, EAMSGD, Algorithm 2): x is sent, and by
 *            d = a (x - c), of c before,
 *                c = c + d          x = x - d
 *            The answer is the new c: d = a / (1 - a) (x - c), of c after.
 *
 *     new -> { begin -> { keep -> fill -> arrive } for each block }* -> destroy
 *
 * Shapes   P parameters: weights[P] are borrowed, and gradient[P] from begin()
 *          until the next or, if elastic, take_back(); every k owns a copy of P.
 * MPI      none.   Threads: one caller.
 */
#ifndef COH_WORKER_LOCAL_H
#define COH_WORKER_LOCAL_H

#include "common/config.h"
#include "common/plan.h"
#include "common/statistics.h"
#include "common/wire.h"

typedef struct coh_local coh_local;

/* statistics of the model and weights are borrowed. Fails with COH_E_NOMEM. */
coh_status coh_local_new(const coh_config *config,
                         const coh_statistics *statistics, int64_t parameters,
                         float *weights, coh_local **out, coh_err *err);
void coh_local_destroy(coh_local **self);

/* A step of this grant begins. It exchanges if the grant says so, and after
 * every k steps: with policy sync only the former, or groups would wait for each
 * other; if elastic, which has nothing to lose by waiting, only the latter. */
void coh_local_begin(coh_local *self, const coh_grant *grant, float *gradient);

/* Does it exchange? */
bool coh_local_exchanges(const coh_local *self);

/* Before the step's update of some weights. */
void coh_local_keep(coh_local *self, coh_range range);

/* After the update, in a step that exchanges: what is sent of them is in the
 * gradient. weight: of the samples of this step. */
void coh_local_fill(coh_local *self, coh_range range, double weight);

/* The weight of what is sent: 0 if no samples counted since the last time
 * (policy sync). */
double coh_local_weight(const coh_local *self, double weight);

/* The step has ended, with samples of this weight. */
void coh_local_end(coh_local *self, double weight);

/* The servers' weights have come in the place of ours. */
void coh_local_arrive(coh_local *self, coh_range range);

/* Put the weights aside while the servers' are measured, and take them back.
 * Between two steps, after all has arrived. False: there is nothing to keep. */
bool coh_local_put_aside(coh_local *self);
void coh_local_take_back(coh_local *self);

/* Floats that a worker has for this. */
int64_t coh_local_floats(const coh_config *config, int64_t parameters);

#endif
