/* sums.h - the blocks of a gradient, added up over the group.
 *
 * Begun as their gradients are complete, a few at a time, and made in the same
 * order on all members: from the last block to the first.
 *
 *     new -> { begin -> { ready -> next* }* }* -> destroy
 *
 * begin() and next() are collective over the group: what one member's next()
 * gives, those of all do, sooner or later.
 * Threads: one caller.
 */
#ifndef COH_WORKER_SUMS_H
#define COH_WORKER_SUMS_H

#include "common/roles.h"
#include "common/xfer.h"

typedef struct coh_sums coh_sums;

/* Blocks that a group adds up at a time: MPI holds a copy or two of each
 * (without this limit, measured with MPICH 4.0: twice the parameters), a team of
 * our own has room for one. */
enum { COH_SUMS_AT_ONCE = 16 };

/* for_all: each member gets each sum; else a block's speaker alone. plan and
 * roles are borrowed. Fails with COH_E_NOMEM. */
coh_status coh_sums_new(const coh_plan *plan, const coh_roles *roles,
                        bool for_all, coh_sums **out, coh_err *err);
void coh_sums_destroy(coh_sums **self);

/* Another gradient[parameters], borrowed until all is made: the sums take its
 * place, and elsewhere than at the speaker parts of them may. */
void coh_sums_begin(coh_sums *self, float *gradient);

/* gradient[first, parameters) is complete. */
void coh_sums_ready(coh_sums *self, int64_t first);

/* Begin what can be, and give the next block whose sum is made, each once; -1:
 * none is, or with `must`, none that is ready is left. Waits only with `must`,
 * counted in *wait. Fails with COH_E_PEER. */
coh_status coh_sums_next(coh_sums *self, bool must, coh_wait *wait,
                         int64_t *block, coh_err *err);

/* Are all made? */
bool coh_sums_done(const coh_sums *self);

#endif
