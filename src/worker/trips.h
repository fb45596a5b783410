/* trips.h - the blocks' way to their servers, and of their new weights back to
 * the whole group.
 *
 * A block's speaker pushes its gradient, and is answered with new weights. They
 * come back from the first block to the last: each is spread to the group when
 * its answer is here and all before it were spread, since collectives must begin
 * in one order on all members. Blocks that nobody pushed are spread as they are.
 *
 * Without servers a speaker makes them itself (exchange.update: owners), and
 * puts them here to be spread.
 *
 *     new -> { push* | pull* | put* -> back -> wait* }* -> destroy
 *
 * On their way gradients are what exchange.push says, and weights what
 * exchange.reply says (narrow.h); both are float32 in the group.
 *
 * back() and wait() are collective over the group, in the same order on all
 * members; push(), pull() and put() are the speaker's alone.
 * Threads: one caller.
 */
#ifndef COH_WORKER_TRIPS_H
#define COH_WORKER_TRIPS_H

#include "common/roles.h"
#include "common/wire.h"

typedef struct coh_trips coh_trips;

/* Between wait() for all and the next push, weights[P] are the caller's. All is
 * borrowed. Fails with COH_E_NOMEM. */
coh_status coh_trips_new(const coh_config *config, const coh_plan *plan,
                         const coh_roles *roles, float *weights,
                         coh_trips **out, coh_err *err);
void coh_trips_destroy(coh_trips **self);

/* Is this member the one that pushes the block? */
bool coh_trips_speaks(const coh_trips *self, int64_t block);

/* Send a head and the block's gradient, and be ready for the answer. Of the
 * head: what the step decides, and the version; the rest is filled in. gradient
 * is borrowed until the block is back, and used up: it is made narrow where it
 * lies. */
void coh_trips_push(coh_trips *self, int64_t block, const coh_push *head,
                    float *gradient);

/* Ask for the block's weights as they are now. exact: float32, whatever
 * exchange.reply. */
void coh_trips_pull(coh_trips *self, int64_t block, bool exact);

/* Take weights of the block's size, of no version, as if they were answered. */
void coh_trips_put(coh_trips *self, int64_t block, const float *weights);

/* Of the weights last answered. */
int64_t coh_trips_version(const coh_trips *self, int64_t block);

/* All are pushed that will be: they come back. Fails with COH_E_PEER. */
coh_status coh_trips_back(coh_trips *self, coh_err *err);

/* Wait for weights[0, end), and send on what else has come. Nothing to do if
 * they are here. Fails with COH_E_PEER. */
coh_status coh_trips_wait(coh_trips *self, int64_t end, coh_err *err);

/* Seconds waited so far. */
double coh_trips_waited_s(const coh_trips *self);

#endif
